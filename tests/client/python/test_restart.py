"""Tests a server that is killed and comes back."""
import numpy as np

import phimap

# The package's own retry policy with more attempts, because the machine may be busy.
PATIENT = {"methodConfig": [{"name": [{}], "retryPolicy": {
    "maxAttempts": 100, "initialBackoff": "0.1s", "maxBackoff": "0.5s", "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE"]}}]}


def client_of(server, tmp_path):
    return phimap.Client(f"unix:{tmp_path}/socket", service_config=PATIENT)


def test_a_stream_goes_on_where_it_was(own_phimapd, tmp_path, rows):
    with client_of(own_phimapd, tmp_path) as client:
        version = client.build("m", rows, spec="f2(landmarks=20)", kernel="rbf(gamma=scale)")
        expected = client.transform("m", rows)
        blocks = client.transform_stream("m", rows, rows_per_request=10)
        got = [next(blocks) for _ in range(5)]
        own_phimapd.kill()
        own_phimapd.start()
        got.extend(blocks)
        assert (np.concatenate(got) == expected).all()
        # Later calls succeed, too.
        assert client.get_version("m").ref == version.ref
        assert (client.transform("m", rows) == expected).all()


def test_a_build_that_the_crash_took_gets_its_rows_again(own_phimapd, tmp_path):
    rows = np.random.default_rng(1).standard_normal((100_000, 5))
    crashed = []

    def crash_once(progress):
        if progress.rows > 50_000 and not crashed:
            crashed.append(progress.rows)
            own_phimapd.kill()
            own_phimapd.start()

    with client_of(own_phimapd, tmp_path) as client:
        version = client.build("m", rows, spec="f2(landmarks=20)", kernel="rbf(gamma=scale)", progress=crash_once)
        assert crashed and crashed[0] < 100_000
        assert version.ref.number == 1 and version.certificate.stream_rows == 100_000
