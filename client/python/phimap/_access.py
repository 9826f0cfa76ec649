"""Target, credentials and TLS settings of a client."""
from __future__ import annotations

import ipaddress
import os
import pathlib
import re
from dataclasses import dataclass
from typing import Any

import grpc

_ADDRESS = re.compile(r"(?!https?:)[^,]+:(\d{1,5})")
# Prefixes of targets for several servers, in gRPC's syntax: a list of addresses, or a DNS name.
_LISTS = ("ipv4:", "ipv6:")
_DNS = "dns:///"
# Characters that a header may carry (RFC 6750, section 2.1).
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")

DEFAULT_SERVER = "127.0.0.1:7450"


@dataclass(frozen=True)
class Tls:
    """TLS settings of a connection. Files are given by their paths and are in PEM format.

    Attributes:
        ca_file: authorities that may sign the server's TLS certificate; Debian's are in
            /etc/ssl/certs/ca-certificates.crt.
        certificate_file, key_file: the client's own TLS certificate and key, for a server that
            requires them.
        server_name: host name that the server's TLS certificate must match; None means the host of
            the server's address.
    """

    ca_file: str
    certificate_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None

    @staticmethod
    def of_environment() -> Tls | None:
        """Returns the settings in PHIMAP_TLS_CA, PHIMAP_TLS_CERTIFICATE, PHIMAP_TLS_KEY and
        PHIMAP_TLS_SERVER_NAME, which the command line uses too; None if PHIMAP_TLS_CA is not
        set."""
        authorities = os.environ.get("PHIMAP_TLS_CA")
        if not authorities:
            return None
        return Tls(authorities, *(os.environ.get(f"PHIMAP_TLS_{name}") or None
                                  for name in ("CERTIFICATE", "KEY", "SERVER_NAME")))


@dataclass(frozen=True)
class Access:
    """Credentials and options of a channel and its calls. See access_of."""

    target: str
    # None if the connection is not encrypted.
    credentials: grpc.ChannelCredentials | None
    options: tuple[tuple[str, Any], ...]
    metadata: tuple[tuple[str, str], ...]


def access_of(server: str | None, tls: Tls | None, token: str | None) -> Access:
    """Returns the access for these arguments. An argument that is None is read from the
    environment. ValueError if an argument is malformed, or if the token would be sent unencrypted
    to another machine."""
    target = server_or_default(server)
    tls = tls if tls is not None else Tls.of_environment()
    token = token if token is not None else os.environ.get("PHIMAP_TOKEN", "")
    if token and not _TOKEN.fullmatch(token):
        raise ValueError("token: expected letters, digits and -._~+/= only")
    if token and tls is None and not stays_on_this_machine(target):
        raise ValueError(f"token: it would be sent to {target} unencrypted, so that others could read and use it; "
                         "connect with TLS")
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    options = (("grpc.lb_policy_name", "round_robin"),) if names_several_servers(target) else ()
    if tls is None:
        return Access(target, None, options, metadata)
    override = (("grpc.ssl_target_name_override", tls.server_name),) if tls.server_name else ()
    return Access(target, _credentials(tls), (*options, *override), metadata)


def access_key() -> tuple[Any, ...]:
    """Returns a key that changes when a change of the environment, or of a TLS file that it names,
    affects how calls are made."""
    tls = Tls.of_environment()
    files = () if tls is None else (tls.ca_file, tls.certificate_file, tls.key_file)
    return (os.environ.get("PHIMAP_TOKEN", ""), tls,
            tuple(_stamp(path) for path in files if path is not None))


def _stamp(path: str) -> tuple[int, int] | None:
    """Returns numbers that change when a file is replaced or written; None if it does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def server_or_default(server: str | None) -> str:
    """Returns `server`, or else PHIMAP_SERVER of the environment, or else the local server."""
    target = server or os.environ.get("PHIMAP_SERVER") or DEFAULT_SERVER
    if not isinstance(target, str) or not all(map(_has_port, _addresses(target))):
        raise ValueError(f"server: expected HOST:PORT, unix:PATH, or for several servers ipv4:ADDRESS:PORT,ADDRESS:PORT or "
                         f"dns:///HOST:PORT, got {target!r}")
    return target


def names_several_servers(target: str) -> bool:
    return target.startswith((*_LISTS, _DNS))


def _addresses(target: str) -> list[str]:
    """Returns the addresses in `target`. A unix: path has none; an empty path gives an invalid
    address."""
    if target.startswith("unix:"):
        return [] if target != "unix:" else [""]
    for scheme in _LISTS:
        if target.startswith(scheme):
            return target.removeprefix(scheme).split(",")
    return [target.removeprefix(_DNS)]


def _has_port(address: str) -> bool:
    found = _ADDRESS.fullmatch(address)
    return found is not None and 0 < int(found[1]) < 65_536


def stays_on_this_machine(target: str) -> bool:
    """Returns True if all addresses in `target` are on this machine."""
    return all(map(_is_loopback, _addresses(target)))


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].removeprefix("[").removesuffix("]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _credentials(tls: Tls) -> grpc.ChannelCredentials:
    if (tls.certificate_file is None) != (tls.key_file is None):
        raise ValueError("tls: a client TLS certificate and its key must be given together")
    authorities, key, certificate = (
        pathlib.Path(path).read_bytes() if path is not None else None
        for path in (tls.ca_file, tls.key_file, tls.certificate_file))
    return grpc.ssl_channel_credentials(authorities, key, certificate)
