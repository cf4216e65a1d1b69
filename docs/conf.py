"""The documentation site: `make docs` builds it into build/site, as static files that load nothing from other hosts.

The pages are those of this folder, which are also read beside the sources; `_ext` adds what the site makes from the code.
"""

from __future__ import annotations

import sys
from importlib.metadata import version as _version
from pathlib import Path

_HERE = Path(__file__).parent
sys.path[:0] = [str(_HERE / "_ext"), str(_HERE.parent)]

project = "skypane"
author = "The skypane authors"
copyright = author  # noqa: A001 - Sphinx fixes the name
version = release = _version("skypane")

extensions = ["myst_nb", "sphinx_copybutton", "site_pages", "api_pages", "job_page", "command_page"]
# The site shows notebooks with the outputs that `make notebooks` has stored: no build runs them.
exclude_patterns = ["_ext", "notebooks/*.md"]
nb_execution_mode = "off"
myst_heading_anchors = 3
smartquotes_action = "D"  # quotes are those of Python and of job files
nitpicky = True
# Types in signatures that are not public names: those of other packages, and of modules of ours.
nitpick_ignore_regex = [("py:.*", r"(?!skypane\.(\w+|[A-Z]\w*\.\w+)$).*")]
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88

html_theme = "pydata_sphinx_theme"
html_title = f"skypane {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": f"skypane {version}"},
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "start": [], "changelog": [], "contributing": []}
copybutton_exclude = ".linenos, .gp, .go"
