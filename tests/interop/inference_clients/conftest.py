"""The server that others' clients call, and what phimap's own client gets of it."""
from __future__ import annotations

import numpy as np
import pytest

import phimap
from phimapd import Phimapd

ROWS = (np.arange(10, dtype=np.float32) / 8 - 0.5).reshape(2, 5)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Phimapd(tmp_path_factory.mktemp("store"), "--api_http=127.0.0.1:0") as one:
        rows = np.random.default_rng(1).normal(size=(400, 5))
        with phimap.Client(one.address) as client:
            client.build("m", rows, spec="f2(landmarks=30)", kernel="rbf(gamma=0.1)")
            client.train("m", rows, (rows[:, 0] > 0).astype(int), learner="ridge")
            one.features = client.transform("m@1", ROWS)
            one.predicted = client.predict("m", ROWS, probabilities=True)
        yield one
