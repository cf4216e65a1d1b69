"""The site in a browser without a screen: wide and narrow, light and dark, and its search."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import as_file, files
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

HERE = Path(__file__).parent
BROWSER = shutil.which("chromium")
PAGES = (
    "index.html", "start.html", "progress.html", "reproductions.html", "reference.html", "api/functions.html",
    "api/classes.html", "job-files.html", "commands.html", "changelog.html", "decisions/README.html",
)  # fmt: skip

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="there is no browser chromium; on Debian: apt-get install chromium"
)


class Server(ThreadingHTTPServer):
    """A server that a browser may leave in the middle of an answer."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing."""


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder without a line for each request."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
        """Print nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The address of a server of the site, with the page that looks at it."""
    shutil.copy(HERE / "browser.html", site.parent)
    with as_file(files("axe_core_python") / "axe.min.js") as axe:
        shutil.copy(axe, site.parent)
    with Server(("127.0.0.1", 0), partial(Quiet, directory=str(site.parent))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def looked_at(address: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], list[str]]:
    """What the browser found on each page, and the lines of its console; other hosts do not exist for it."""
    assert BROWSER
    options = [
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--no-first-run", "--dump-dom",
        "--disable-background-networking", "--disable-component-update", "--enable-logging=stderr",
        "--window-size=1300,1000", "--virtual-time-budget=120000", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        f"--user-data-dir={tmp_path_factory.mktemp('browser')}",
    ]  # fmt: skip
    done = subprocess.run(
        [BROWSER, *options, f"{address}/browser.html?{','.join(PAGES)}"],
        check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    found = re.search(r'<pre id="found">(.+)</pre>', done.stdout)
    assert found, done.stdout[-2000:]
    return json.loads(html.unescape(found[1])), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_no_page_writes_to_the_console(looked_at):
    others = [line for line in looked_at[1] if "[PST]: " not in line]  # those are the theme's
    assert others == []


def test_no_page_is_wider_than_the_screen(looked_at):
    pages = looked_at[0]
    assert len(pages) == 4 * len(PAGES) + 1
    assert [(page["address"], page["wide"]) for page in pages if page["wide"] > page["width"]] == []
    assert all(page["title"] for page in pages)


def test_dark_pages_are_light_on_dark(looked_at):
    colours = {
        mode: {(page["background"], page["text"]) for page in looked_at[0] if page["mode"] == mode}
        for mode in ("light", "dark")
    }
    ((light, on_light),) = colours["light"]
    ((dark, on_dark),) = colours["dark"]
    assert brightness(light) - brightness(on_light) > 180
    assert brightness(on_dark) - brightness(dark) > 140


def test_pages_are_accessible(looked_at):
    found = {(page["address"], page["mode"]): page["violations"] for page in looked_at[0] if page["violations"]}
    assert found == {}


def brightness(colour: str) -> float:
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return (red + green + blue) / 3


def test_the_search_finds_a_term_of_the_glossary(looked_at):
    results = looked_at[0][-1]["results"]
    assert any("glossary.html" in result or "progress.html" in result for result in results), results
