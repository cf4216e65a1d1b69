"""Answers as rows of a table of Delta Lake."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import ClassVar, Final

import pyarrow as pa

from skypane.locations import Location
from skypane.runtime.spark.sinks.client_options import check_option, without_named
from skypane.runtime.spark.sinks.delta_rows import check_names
from skypane.runtime.spark.sinks.delta_table import DeltaTable
from skypane.runtime.spark.sinks.open_table_sink import OpenTableSink
from skypane.types import ConfigError

_PLAIN: Final = re.compile(
    r"(aws_)?((default_)?region|endpoint(_url)?|endpoint_url_s3|allow_http|virtual_hosted_style_request|unsigned_payload"
    r"|skip_signature|imdsv1_fallback|metadata_endpoint|s3_express|request_payer|conditional_put|copy_if_not_exists"
    r"|checksum_algorithm|s3_locking_provider|s3_allow_unsafe_rename|server_side_encryption|sse_kms_key_id|sse_bucket_key_enabled)"
    r"|delta_dynamo_(table_name|override_endpoint)|dynamo_lock_[a-z_]+"
    r"|(azure_)?(storage_)?(account_name|client_id|tenant_id|authority_(id|host)|use_emulator|use_azure_cli"
    r"|use_fabric_endpoint|msi_endpoint|object_id|msi_resource_id|endpoint|disable_tagging|skip_signature)"
    r"|(google_)?(service_account(_path)?|application_credentials|base_url|skip_signature)"
    r"|timeout|connect_timeout|allow_invalid_certificates|default_content_type|user_agent|max_retries|retry_timeout"
    r"|backoff_config\.[a-z_]+|pool_(idle_timeout|max_idle_per_host)|http1_only|http2_[a-z_]+|randomize_addresses",
    re.IGNORECASE,
)
"""Options of the clients of object stores that hold no secret; others are "$NAME"."""

_BACKTRACE: Final = re.compile(r"\s+\d+: <unknown>")

_UNFIT: Final = re.compile(r"[\[\]|\\^\n]|%[0-9A-Fa-f]{2}")
"""Signs in a path that delta-rs does not take, or takes for others."""

_SCHEMES: Final = frozenset({"file", "s3", "gs", "abfs", "abfss"})


@dataclass(frozen=True)
class Delta(OpenTableSink):
    """Writes each micro-batch to a table of Delta Lake, exactly once, in one commit with its number.

    A table that does not exist is created. With amended or early answers, a version of a window replaces its rows. The
    driver writes through delta-rs, so Spark needs no jar.

    path     folder of the table, a local one or one of an object store
    options  of the client of an object store, such as aws_region; "$NAME" is an environment variable
    timeout  how long a batch is tried again while other writers of the table commit first

    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output=sp.Delta("best-table")
    ... )
    """

    path: str

    kind: ClassVar[str] = "Delta"
    remedy: ClassVar[str] = "check the path, the options, and what they allow this user"

    def __post_init__(self) -> None:
        if self.place_of_table.resolved().scheme not in _SCHEMES:
            raise ConfigError(
                f"path: {self.place_of_table.shown} must be a local folder, or one of s3://, gs:// or abfss://"
            )
        if found := _UNFIT.search(str(self.place_of_table)):
            raise ConfigError(
                f"path: {self.place_of_table.shown} has {found[0]!r} in it, which the client of Delta does not take: name "
                f"another folder"
            )
        object.__setattr__(self, "path", str(self.place_of_table))
        super().__post_init__()
        for name, value in self.options.items():
            check_option(f"table {self.name}: option {name}", value, is_plain=_PLAIN.fullmatch(name) is not None)
        if find_spec("deltalake") is None:
            raise ConfigError(
                "a table of Delta Lake needs the package deltalake, which is not installed: pip install 'skypane[delta]'"
            )

    @cached_property
    def place_of_table(self) -> Location:
        """The folder; a relative path is one of the working folder of now, even if that changes later."""
        return Location.of(self.path)

    @property
    def name(self) -> str:
        return "delta.`{}`".format(self.place_of_table.shown.replace("`", "``"))

    def check(self, schema: pa.Schema) -> None:
        super().check(schema)
        check_names(schema, self.name)

    def opened_table(self) -> DeltaTable:
        return DeltaTable(self.name, self.place_of_table, self.options)

    def reason(self, error: BaseException) -> str:
        text = " ".join(_BACKTRACE.sub("", str(error)).split()) or type(error).__name__
        return without_named(text, self.options)
