"""Tests the example kernel servers in Python and C++, whose kernel is based on the edit distance of words. The real
programs are started the way users start them."""
from __future__ import annotations

import os
import pathlib
import runpy
import subprocess
import sys

import numpy as np
import pytest

import phimap
from phimapd import Phimapd

SOURCE = pathlib.Path(os.environ["PHIMAP_SOURCE"])
EXAMPLE = SOURCE / "client/python/examples/edit_distance.py"
PROGRAMS = {"python": [sys.executable, str(EXAMPLE)], "cpp": [os.environ["EDIT_DISTANCE_KERNEL"]]}
KERNEL = "service(endpoint={}, kernel=edit)"

# The words: 27 stems, each with 8 endings.
WORDS = [a + b + c + ending for a in "dfl" for b in "aou" for c in "nrt"
         for ending in ("", "s", "ed", "er", "ing", "ings", "ers", "y")]


class KernelProgram:
    """A kernel server on a free port."""

    def __init__(self, language):
        self._process = subprocess.Popen(PROGRAMS[language], stdout=subprocess.PIPE, text=True)
        ready = self._process.stdout.readline()
        assert ready.startswith("kernel server ready: "), ready
        self.address = ready.split()[-1]

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture
def kernels():
    programs = {language: KernelProgram(language) for language in PROGRAMS}
    yield programs
    for program in programs.values():
        program.kill()


def test_words_have_the_features_of_their_kernel_and_a_program_that_dies_takes_nothing_with_it(kernels, tmp_path):
    example = runpy.run_path(str(EXAMPLE))
    gram = np.array(example["edit_kernel"](WORDS, WORDS))
    flags = [f"--kernel_service={name}={program.address}" for name, program in kernels.items()]
    with Phimapd(tmp_path, *flags) as phimapd, phimap.Client(phimapd.address) as client:
        features = {}
        for language in kernels:
            version = client.build(language, WORDS, spec="f2(landmarks=60, serving_type=float64)",
                                   kernel=KERNEL.format(language))
            assert version.certificate.policy == "uniform"
            assert version.input_columns == 0
            features[language], residuals, allowances = client.transform_with_residuals(language, WORDS, allowances=True)
            # F2 guarantees this bound for every pair of words.
            error = np.abs(gram - features[language] @ features[language].T)
            bound = np.sqrt(np.outer(residuals + allowances, residuals + allowances))
            assert (error <= bound * (1 + 1e-9) + 1e-12).all()
            # The 60 words that are landmarks have a residual of 0, except for rounding.
            assert (residuals < 1e-9).sum() >= 60
        np.testing.assert_allclose(features["python"], features["cpp"], rtol=0, atol=1e-6)

        # Words can also be given as bytes. This is another kind of example, but the kernel values are the same.
        octets = [word.encode() for word in WORDS]
        client.build("octets", octets, spec="f2(landmarks=60, serving_type=float64)", kernel=KERNEL.format("cpp"))
        np.testing.assert_allclose(client.transform("octets", octets), features["cpp"], rtol=0, atol=1e-6)

        with pytest.raises(phimap.InvalidArgument) as numbers:
            client.transform("cpp", np.zeros((2, 3)))
        assert numbers.value.reason == "EXAMPLE_KIND_MISMATCH"
        with pytest.raises(phimap.FailedPrecondition) as refused:
            client.build("numbers", np.zeros((20, 3)), spec="f2(landmarks=2)", kernel=KERNEL.format("cpp"))
        assert "edit compares words: send text or bytes" in str(refused.value)

        kernels["cpp"].kill()
        with pytest.raises(phimap.Unavailable) as gone:
            client.transform("cpp", WORDS[:3], timeout=60)
        assert gone.value.reason == "KERNEL_SERVICE_UNAVAILABLE"
        # The server has already retried the kernel service, so the client does not repeat the build.
        with pytest.raises(phimap.Unavailable) as gone:
            client.build("late", WORDS, spec="f2(landmarks=60)", kernel=KERNEL.format("cpp"))
        assert gone.value.reason == "KERNEL_SERVICE_UNAVAILABLE"
        np.testing.assert_array_equal(client.transform("python", WORDS), features["python"])
