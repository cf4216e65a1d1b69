"""TLS settings of an input, from PEM files that are read when a connection is established."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from skypane.locations import Location
from skypane.types import ConfigError

_FILES = ("ca", "certificate", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """The TLS files of an input.

    ca           certificates of trusted authorities, instead of those that this machine trusts
    certificate  the receiver's certificate, with the intermediate certificates up to its authority
    key          the private key of the certificate; None: it is in the file of the certificate
    """

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        raise NotImplementedError

    def settle(self) -> None:
        """Make the paths absolute; raise ConfigError for a key without a certificate."""
        if self.key is not None and self.certificate is None:
            raise ConfigError("key needs certificate, the file of its certificate; set both")
        for name in _FILES:
            if (path := getattr(self, name)) is not None:
                object.__setattr__(self, name, Location.of(path, name).of_this_machine("a receiver reads"))

    def settle_for(self, setting: str) -> None:
        """Do the same for an input that uses TLS only on request; raise ConfigError for files without TLS."""
        for name in _FILES:
            if getattr(self, name) is not None and not self.tls:
                raise ConfigError(f"{name} is only for encrypted connections; leave it out, or use {setting}")
        self.settle()

    def context(self, *, server: bool = False) -> ssl.SSLContext | None:
        """Return the TLS context of a connection, None without TLS; raise ConfigError for files that cannot be used."""
        if not self.tls:
            return None
        purpose = ssl.Purpose.CLIENT_AUTH if server else ssl.Purpose.SERVER_AUTH
        try:
            made = ssl.create_default_context(purpose, cafile=self.ca)
        except OSError as error:
            raise _unusable(f"ca {self.ca}", error) from error
        made.sslsocket_class = _Closing
        if server and self.ca is not None:
            made.verify_mode = ssl.CERT_REQUIRED
        if self.certificate is not None:
            try:
                made.load_cert_chain(self.certificate, self.key, password=_no_password)
            except OSError as error:
                named = "" if self.key is None else f" with key {self.key}"
                raise _unusable(f"certificate {self.certificate}{named}", error) from error
        return made


class _Closing(ssl.SSLSocket):
    """A socket that closes itself if the handshake fails; client libraries leave this to the garbage collector."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


def _unusable(what: str, error: OSError) -> ConfigError:
    return ConfigError(f"{what} cannot be used: {error.strerror or error}")


def _no_password() -> str:
    raise ConfigError("the private key is encrypted, which is not supported; use an unencrypted file")
