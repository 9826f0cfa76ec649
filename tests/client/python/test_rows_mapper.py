"""Tests that a mapper can be sent to another process, and keeps using the version that its reference meant when the
mapper was created."""
import pickle
import subprocess
import sys

import cloudpickle
import numpy as np
import pandas
import pytest

import phimap

SPEC = {"spec": "f2(landmarks=20)", "kernel": "rbf(gamma=0.5)"}
IN_ANOTHER_PROCESS = """
import pickle, sys
mapper, rows = pickle.load(sys.stdin.buffer)
pickle.dump(mapper(rows), sys.stdout.buffer)
"""


def test_a_pickled_mapper_gives_the_same_bits_in_another_process(phimapd, client, rows):
    client.build("mapper-pickled", rows, **SPEC)
    mapper = phimap.rows_mapper("mapper-pickled", server=phimapd.address)
    run = subprocess.run([sys.executable, "-c", IN_ANOTHER_PROCESS], input=pickle.dumps((mapper, rows)),
                         stdout=subprocess.PIPE, check=True)
    np.testing.assert_array_equal(pickle.loads(run.stdout), client.transform("mapper-pickled", rows))


def test_a_mapper_keeps_the_version_of_an_alias_that_moves(phimapd, client, rows):
    client.build("mapper-moved", rows, **SPEC)
    client.build("mapper-moved", rows * 3, **SPEC)
    client.set_alias("mapper-moved@1", "prod")
    mapper = phimap.rows_mapper("mapper-moved@prod", server=phimapd.address)
    client.set_alias("mapper-moved@2", "prod")
    np.testing.assert_array_equal(mapper(rows), client.transform("mapper-moved@1", rows))
    assert not np.array_equal(mapper(rows), client.transform("mapper-moved@2", rows))


# A program that forks a child and exits with the child's status: 0 if the mapper works in the child, and 7 if it
# refuses to. With the argument "used", the parent calls the mapper once before the fork.
IN_A_FORKED_PROCESS = """
import os, pickle, sys
mapper, rows = pickle.load(sys.stdin.buffer)
if sys.argv[1] == "used":
    mapper(rows)
child = os.fork()
if child == 0:
    status = 1
    try:
        status = 0 if mapper(rows).shape[0] == len(rows) else 2
    except RuntimeError as error:
        status = 7 if "spawn or forkserver" in str(error) else 3
    finally:
        os._exit(status)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def status_in_a_forked_process(mapper, rows, first):
    return subprocess.run([sys.executable, "-c", IN_A_FORKED_PROCESS, first], input=pickle.dumps((mapper, rows)),
                          timeout=120, check=False).returncode


@pytest.mark.parametrize("first, status", [("unused", 0), ("used", 7)])
def test_a_forked_child_maps_unless_its_parent_called_a_server_and_then_refuses(phimapd, client, rows, first, status):
    client.build("mapper-forked", rows, **SPEC)
    mapper = phimap.rows_mapper("mapper-forked", server=phimapd.address)
    assert status_in_a_forked_process(mapper, rows, first) == status


@pytest.mark.parametrize("first", ["unused", "used"])
def test_a_forked_child_maps_by_the_artifact_whatever_its_parent_did(phimapd, client, engine_library, rows, first):
    client.build("mapper-forked-engine", rows, **SPEC)
    mapper = phimap.rows_mapper("mapper-forked-engine", server=phimapd.address, on_workers=True)
    assert status_in_a_forked_process(mapper, rows, first) == 0


def test_a_frame_keeps_its_index(phimapd, client, rows):
    client.build("mapper-frame", rows, **SPEC)
    frame = pandas.DataFrame(rows, index=np.arange(len(rows)) * 7)
    features = phimap.rows_mapper("mapper-frame", server=phimapd.address)(frame)
    assert list(features.index) == list(frame.index)
    assert list(features.columns[:2]) == ["f0", "f1"]


RECIPES_IN_ANOTHER_PROCESS = """
import pickle, sys
spark, ray, frames = pickle.load(sys.stdin.buffer)
pickle.dump((list(spark(iter(frames))), [ray(frame) for frame in frames]), sys.stdout.buffer)
"""


def test_the_recipes_of_spark_and_ray_work_in_another_process(phimapd, client, rows):
    client.build("mapper-recipes", rows, **SPEC)
    mapper = phimap.rows_mapper("mapper-recipes", server=phimapd.address)
    frames = [pandas.DataFrame(rows[:100]), pandas.DataFrame(rows[100:])]
    recipes = (lambda given: map(mapper, given), lambda frame: mapper(frame))
    run = subprocess.run([sys.executable, "-c", RECIPES_IN_ANOTHER_PROCESS], input=cloudpickle.dumps((*recipes, frames)),
                         stdout=subprocess.PIPE, check=True)
    expected = client.transform("mapper-recipes", rows)
    for answer in pickle.loads(run.stdout):
        np.testing.assert_array_equal(pandas.concat(answer).to_numpy(), expected)
    assert mapper.names(mapper.columns) == list(answer[0].columns)
    assert mapper.dtype == expected.dtype
