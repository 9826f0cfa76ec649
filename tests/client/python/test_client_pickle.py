"""Tests that pickling a client preserves the arguments with which it was created."""
import pickle
import subprocess
import sys
import uuid

import pytest

import phimap


def test_a_copy_has_the_server_the_access_and_the_options(phimapd):
    made = phimap.Client(phimapd.address, channels=3, token="a" * 20, options=[("grpc.max_send_message_length", 1 << 20)])
    with pickle.loads(pickle.dumps(made)) as copy:
        assert copy.server == made.server and copy._arguments == made._arguments
        assert copy.list_mappings() is not None


def test_a_token_that_a_function_gives_stays_here(phimapd):
    made = phimap.Client(phimapd.address)
    made._arguments["token"] = lambda: "secret"
    assert pickle.loads(pickle.dumps(made))._arguments["token"] is None


def test_another_process_gets_the_same_features_of_the_version_that_a_name_meant_first(client, rows):
    name = f"m-{uuid.uuid4().hex}"
    client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=1)")
    expected = client.transform(name, rows[:4])
    client.build(name, rows, spec="f1(landmarks=5)", kernel="rbf(gamma=1)")
    program = "import pickle, sys; client, name, rows = pickle.load(sys.stdin.buffer); " \
              "sys.stdout.buffer.write(client.transform(name, rows).tobytes())"
    done = subprocess.run([sys.executable, "-c", program], input=pickle.dumps((client, name, rows[:4])), capture_output=True,
                          check=True)
    assert done.stdout == expected.tobytes()


def test_a_closed_client_pickles_and_its_copy_is_open(phimapd):
    made = phimap.Client(phimapd.address)
    made.close()
    with pytest.raises(RuntimeError):
        made.list_mappings()
    assert pickle.loads(pickle.dumps(made)).list_mappings() is not None
