"""How a client says who calls, and whom it trusts."""
from __future__ import annotations

import ipaddress
import os
import pathlib
import re
from dataclasses import dataclass
from typing import Any

import grpc

_TARGET = re.compile(r"unix:.+|(?!https?:).+:(\d{1,5})")
# What a header may carry (RFC 6750, section 2.1).
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")

DEFAULT_SERVER = "127.0.0.1:7450"


@dataclass(frozen=True)
class Tls:
    """An encrypted connection, by paths of PEM files.

    Attributes:
        ca_file: authorities that the server's certificate is trusted by; Debian's are in
            /etc/ssl/certs/ca-certificates.crt.
        certificate_file, key_file: the client's own, for a server that asks for them.
        server_name: what the server's certificate must hold for, when it is not the host of the address.
    """

    ca_file: str
    certificate_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None

    @staticmethod
    def of_environment() -> Tls | None:
        """From PHIMAP_TLS_CA, PHIMAP_TLS_CERTIFICATE, PHIMAP_TLS_KEY and PHIMAP_TLS_SERVER_NAME, as the command line
        has it; None without the first."""
        authorities = os.environ.get("PHIMAP_TLS_CA")
        if not authorities:
            return None
        return Tls(authorities, *(os.environ.get(f"PHIMAP_TLS_{name}") or None
                                  for name in ("CERTIFICATE", "KEY", "SERVER_NAME")))


@dataclass(frozen=True)
class Access:
    """What a channel and its calls are made with. See access_of."""

    target: str
    # None: not encrypted.
    credentials: grpc.ChannelCredentials | None
    options: tuple[tuple[str, Any], ...]
    metadata: tuple[tuple[str, str], ...]


def access_of(server: str | None, tls: Tls | None, token: str | None) -> Access:
    """Whatever is None is looked for in the environment. ValueError for what gRPC could not read, or should not do."""
    target = server_or_default(server)
    tls = tls if tls is not None else Tls.of_environment()
    token = token if token is not None else os.environ.get("PHIMAP_TOKEN", "")
    if token and not _TOKEN.fullmatch(token):
        raise ValueError("token: expected letters, digits and -._~+/= only")
    if token and tls is None and not stays_on_this_machine(target):
        raise ValueError(f"token: it would travel to {target} in the clear, for everyone on the way to use; connect with "
                         "TLS")
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    if tls is None:
        return Access(target, None, (), metadata)
    options = (("grpc.ssl_target_name_override", tls.server_name),) if tls.server_name else ()
    return Access(target, _credentials(tls), options, metadata)


def access_key(server: str | None) -> tuple[Any, ...]:
    """Equal as long as the environment, and the files it names, say that calls are made with the same."""
    tls = Tls.of_environment()
    files = () if tls is None else (tls.ca_file, tls.certificate_file, tls.key_file)
    return (server_or_default(server), os.environ.get("PHIMAP_TOKEN", ""), tls,
            tuple(_stamp(path) for path in files if path is not None))


def _stamp(path: str) -> tuple[int, int] | None:
    """What changes when a file is replaced or written; None if it is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def server_or_default(server: str | None) -> str:
    """`server`, or PHIMAP_SERVER of the environment, or the local one."""
    target = server or os.environ.get("PHIMAP_SERVER") or DEFAULT_SERVER
    found = _TARGET.fullmatch(target) if isinstance(target, str) else None
    if not found or (found[1] is not None and not 0 < int(found[1]) < 65_536):
        raise ValueError(f"server: expected HOST:PORT or unix:PATH, got {target!r}")
    return target


def stays_on_this_machine(target: str) -> bool:
    host = target.rpartition(":")[0].removeprefix("[").removesuffix("]")
    if target.startswith("unix:") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _credentials(tls: Tls) -> grpc.ChannelCredentials:
    if (tls.certificate_file is None) != (tls.key_file is None):
        raise ValueError("tls: a client certificate and its key go together")
    authorities, key, certificate = (
        pathlib.Path(path).read_bytes() if path is not None else None
        for path in (tls.ca_file, tls.key_file, tls.certificate_file))
    return grpc.ssl_channel_credentials(authorities, key, certificate)
