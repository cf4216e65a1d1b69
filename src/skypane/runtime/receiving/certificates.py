"""TLS: whom a connection believes, and who it says that it is; from files in PEM, read when a connection comes about."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from skypane.places import Place
from skypane.types import ConfigError

_FILES = ("ca", "certificate", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """The files of an input that may be encrypted.

    ca           certificates of authorities that are believed, instead of those that this machine believes
    certificate  our own, with those between it and its authority
    key          the private key of our own; none: it stands in the file with the certificate
    """

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        raise NotImplementedError

    def settle(self) -> None:
        """Make the paths ones from the root; ConfigError for a key without a certificate."""
        if self.key is not None and self.certificate is None:
            raise ConfigError("key is that of a certificate; name the certificate's file as well")
        for name in _FILES:
            if (path := getattr(self, name)) is not None:
                object.__setattr__(self, name, Place.of(path, name).of_this_machine("a receiver reads"))

    def settle_for(self, asked: str) -> None:
        """The same, for an input that is only encrypted if that was asked for."""
        for name in _FILES:
            if getattr(self, name) is not None and not self.tls:
                raise ConfigError(f"{name} is for encrypted connections, {asked}; leave it out, or ask for that")
        self.settle()

    def context(self, *, server: bool = False) -> ssl.SSLContext | None:
        """Return what encrypts a connection, None if nothing is to; ConfigError for files that cannot be used."""
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
    """Closes itself where the handshake fails; clients that begin it themselves leave that to the collector."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


def _unusable(what: str, error: OSError) -> ConfigError:
    return ConfigError(f"{what} cannot be used: {error.strerror or error}")


def _no_password() -> str:
    raise ConfigError("the private key is encrypted, and nobody is asked for its password: give a file that is not")
