"""Tests TLS and tokens against a server that requires them."""
import asyncio
import subprocess

import pytest

import phimap
import phimap.sklearn
from phimap._access import Tls, access_of, stays_on_this_machine
from phimap.aio import AsyncClient
from phimap.sklearn._clients import forget_clients
from phimapd import Phimapd

ADMIN, READER = "a" * 20, "r" * 20


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Returns a self-signed certificate for the name phimap.test."""
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-subj", "/CN=phimap.test", "-addext", "subjectAltName=DNS:phimap.test", "-days", "2",
                    "-keyout", folder / "key.pem", "-out", folder / "certificate.pem"], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def guarded(tmp_path_factory, certificate):
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.touch(mode=0o600)  # phimapd refuses a token file that other users may read
    tokens.write_text(f"admin {ADMIN}\nreader {READER}\n")
    with Phimapd(tmp_path_factory.mktemp("store"), f"--tls_certificate={certificate}/certificate.pem",
                 f"--tls_key={certificate}/key.pem", f"--token_file={tokens}") as server:
        yield server


@pytest.fixture
def tls(certificate):
    return Tls(str(certificate / "certificate.pem"), server_name="phimap.test")


def test_who_has_a_token_is_let_in_over_tls(guarded, tls, rows):
    with phimap.Client(guarded.address, tls=tls, token=ADMIN) as client:
        client.build("m", rows, spec="f2(landmarks=10)", kernel="rbf(gamma=scale)")
    with phimap.Client(guarded.address, tls=tls, token=READER) as client:
        assert client.transform("m", rows).shape == (300, 10)
        with pytest.raises(phimap.PermissionDenied):
            client.build("m", rows, spec="f2(landmarks=10)", kernel="rbf(gamma=scale)")
    with phimap.Client(guarded.address, tls=tls, token="x" * 20) as client:
        with pytest.raises(phimap.Unauthenticated):
            client.list_mappings()

    async def run():
        async with AsyncClient(guarded.address, tls=tls, token=READER) as client:
            return await client.transform("m", rows)

    assert asyncio.run(run()).shape == (300, 10)


def test_estimators_take_access_from_the_environment_and_never_keep_it(guarded, tls, rows, monkeypatch):
    monkeypatch.setenv("PHIMAP_TLS_CA", tls.ca_file)
    monkeypatch.setenv("PHIMAP_TLS_SERVER_NAME", "phimap.test")
    monkeypatch.setenv("PHIMAP_TOKEN", ADMIN)
    forget_clients()
    estimator = phimap.sklearn.F2(5, server=guarded.address).fit(rows)
    assert estimator.transform(rows).shape == (300, 5)
    assert ADMIN not in repr(vars(estimator))
    forget_clients()


def test_estimators_see_a_token_that_was_replaced(guarded, tls, rows, monkeypatch):
    monkeypatch.setenv("PHIMAP_TLS_CA", tls.ca_file)
    monkeypatch.setenv("PHIMAP_TLS_SERVER_NAME", "phimap.test")
    monkeypatch.setenv("PHIMAP_TOKEN", ADMIN)
    estimator = phimap.sklearn.F2(5, server=guarded.address).fit(rows)
    monkeypatch.setenv("PHIMAP_TOKEN", "y" * 20)
    with pytest.raises(phimap.Unauthenticated):
        estimator.transform(rows)
    monkeypatch.setenv("PHIMAP_TOKEN", READER)
    assert estimator.transform(rows).shape == (300, 5)
    with pytest.raises(phimap.PermissionDenied):
        estimator.fit(rows)


def test_the_clients_of_estimators_go_by_the_files_of_tls_too(tmp_path, monkeypatch):
    authorities = tmp_path / "ca.pem"
    authorities.write_text("one")
    monkeypatch.setenv("PHIMAP_TLS_CA", str(authorities))
    first = phimap._access.access_key()
    assert phimap._access.access_key() == first
    replaced = tmp_path / "new.pem"
    replaced.write_text("two")
    replaced.rename(authorities)
    assert phimap._access.access_key() != first
    authorities.unlink()
    assert phimap._access.access_key() != first


def test_a_server_that_is_not_trusted_is_not_talked_to(guarded):
    config = {"methodConfig": []}
    with phimap.Client(guarded.address, tls=Tls("/etc/ssl/certs/ca-certificates.crt"), service_config=config) as client:
        with pytest.raises(phimap.Unavailable):
            client.list_mappings()


@pytest.mark.parametrize("target, stays", [
    ("ipv4:127.0.0.1:1,127.0.0.2:1", True), ("ipv6:[::1]:1", True), ("ipv4:127.0.0.1:1,10.0.0.1:1", False),
    ("dns:///phimap:1", False), ("dns:///localhost:1", True), ("localhost:1", True), ("127.0.0.1:1", True), ("127.9.9.9:1", True), ("[::1]:1", True), ("unix:/x", True),
    ("10.0.0.1:1", False), ("example:1", False), ("localhost.example:1", False), ("[2001:db8::1]:1", False)])
def test_a_token_leaves_this_machine_only_encrypted(target, stays, tls):
    assert stays_on_this_machine(target) == stays
    access_of(target, tls, READER)
    if stays:
        access_of(target, None, READER)
    else:
        with pytest.raises(ValueError, match="token: it would be sent to .* unencrypted"):
            access_of(target, None, READER)


def test_what_contradicts_itself_or_is_not_there_is_refused(tls, monkeypatch):
    with pytest.raises(ValueError, match="tls: a client TLS certificate and its key must be given together"):
        access_of("h:1", Tls(tls.ca_file, certificate_file=tls.ca_file), None)
    with pytest.raises(FileNotFoundError):
        access_of("h:1", Tls("/nowhere.pem"), None)
    for token in ("a b", "a\n", "ä"):
        with pytest.raises(ValueError, match=r"token: expected letters, digits and -._~\+/= only"):
            access_of("localhost:1", None, token)
