"""Redaction of options: show the values only of options that are known to hold no secret.

A list of words for secrets ("password", "token") is never complete, so values of unknown options are hidden. Every
option that is printed, logged, reported or stored passes through shown().
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from skypane.addresses import HIDDEN, without_secrets
from skypane.runtime.environment import is_named

_SOURCES: Final = frozenset(
    # skypane's own
    "align arrival inputs inputcolumn malformedcolumn onloss parameters partitions rawtext readers rowspertrigger speedup timecolumn workload "
    # Spark's: files, rate, socket
    "header sep delimiter encoding charset quote escape comment multiline mode nullvalue nanvalue dateformat timestampformat "
    "timestampntzformat timezone locale linesep inferschema mergeschema columnnameofcorruptrecord recursivefilelookup "
    "pathglobfilter modifiedbefore modifiedafter maxfilespertrigger maxfileage maxbytespertrigger latestfirst "
    "filenameonly cleansource compression ignoreleadingwhitespace ignoretrailingwhitespace samplingratio "
    "rowspersecond rampuptime numpartitions rowsperbatch advancemillisperbatch startmillis includetimestamp host port "
    # Spark's: Kafka
    "subscribe subscribepattern assign startingoffsets startingtimestamp startingoffsetsbytimestamp endingoffsets "
    "endingtimestamp failondataloss maxoffsetspertrigger minoffsetspertrigger maxtriggerdelay minpartitions "
    "includeheaders groupidprefix fetchoffset.numretries fetchoffset.retryintervalms kafkaconsumer.polltimeoutms "
    "path format".split()
)
_KAFKA: Final = re.compile(
    r"(bootstrap\.servers|client\.(id|rack|dns\.lookup)|group\.id|security\.protocol|sasl\.(mechanisms?|username)|debug|log_level|check\.crcs"
    r"|ssl\.(ca|certificate|key|crl|keystore|truststore)\.(location|type)|ssl\.endpoint\.identification\.algorithm"
    r"|ssl\.(cipher\.suites|curves\.list|sigalgs\.list|protocol)|enable\.ssl\.certificate\.verification"
    r"|sasl\.kerberos\.(service\.name|principal|keytab)"
    r"|acks|partitioner|linger\.ms|batch\.(size|num\.messages)|compression\.(type|codec|level)"
    r"|(socket|fetch|broker|metadata|topic\.metadata|message|receive|queued|reconnect|retry|request|session|heartbeat|statistics"
    r"|max\.poll|queue|transaction|delivery|api\.version|connections|isolation|auto|allow)(\.[a-z]+)*"
    r"\.(ms|bytes|kbytes|messages|records|fails|max|min|ttl|enable|disable|nodelay|family|level|reset|commit|eof|request|topics))"
)


def is_plain(name: str) -> bool:
    """Return whether an option of this name is known to hold no secret."""
    lower = name.lower()
    return lower in _SOURCES or _KAFKA.fullmatch(lower.removeprefix("kafka.")) is not None


def shown(name: str, value: object) -> str:
    """Return the printable form of an option's value: the value, the name of its environment variable, or HIDDEN.

    >>> shown("subscribe", "prices"), shown("kafka.ssl.key.password", "hunter2"), shown("anything", "$SECRET")
    ('prices', '(not shown)', '$SECRET')
    """
    if is_named(value):
        return str(value)
    return without_secrets(str(value)) if is_plain(name) else HIDDEN


def all_shown(options: Mapping[str, object]) -> dict[str, str]:
    """Return the printable forms of options."""
    return {name: shown(name, value) for name, value in options.items()}
