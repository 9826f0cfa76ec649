"""Tests that a client keeps using the first version that it got for a mapping's name, but follows an alias when it
moves."""
from phimap._pins import Pins, by_digest
from phimap.v1.mapping_pb2 import VersionRef

FIRST = VersionRef(name="m", number=1, digest="a")
SECOND = VersionRef(name="m", number=2, digest="b")


def test_a_bare_name_is_pinned_to_its_first_version_and_digest():
    pins = Pins()
    assert pins.resolve("m") == ("m", "")
    assert pins.observe("m", FIRST)
    assert pins.resolve("m") == ("m@1", "a")


def test_who_comes_second_with_another_version_is_told():
    pins = Pins()
    assert pins.observe("m", FIRST)
    assert not pins.observe("m", SECOND)
    assert pins.resolve("m") == ("m@1", "a")


def test_a_number_is_pinned_to_its_digest():
    pins = Pins()
    assert pins.observe("m@2", SECOND)
    assert pins.resolve("m@2") == ("m@2", "b")


def test_an_alias_is_not_pinned():
    pins = Pins()
    assert pins.observe("m@prod", FIRST)
    assert pins.observe("m@prod", SECOND)
    assert pins.resolve("m@prod") == ("m@prod", "")


def test_malformed_references_are_left_to_the_server():
    for reference in ("", "@", "m@", "m@1@2", "a\nb"):
        assert Pins().resolve(reference) == (reference, "")


def test_forgetting_a_version_keeps_the_others():
    pins = Pins()
    pins.observe("m", FIRST)
    pins.observe("m@2", SECOND)
    pins.forget("m@1")
    assert pins.resolve("m") == ("m", "")
    assert pins.resolve("m@2") == ("m@2", "b")
    pins.forget("m@sha256:a")
    assert pins.resolve("m@2") == ("m@2", "b")
    pins.forget("m@sha256:b")
    assert pins.resolve("m@2") == ("m@2", "")
    pins.observe("m@2", SECOND)
    pins.forget("m")
    assert pins.resolve("m@2") == ("m@2", "")


def test_pinned_lists_bare_names():
    pins = Pins()
    pins.observe("m", FIRST)
    pins.observe("m@2", SECOND)
    assert pins.pinned() == {"m": FIRST}


def test_the_same_digest_by_another_number_takes_the_place_of_the_first():
    pins = Pins()
    pins.observe("m", FIRST)
    assert pins.observe("m", VersionRef(name="m", number=5, digest="a"))
    assert pins.resolve("m") == ("m@5", "a")


def test_only_a_number_has_a_digest_to_fall_back_to():
    assert by_digest("m@1", "abc") == "m@sha256:abc"
    for reference in ("m", "m@prod", "m@sha256:abc", "", "@"):
        assert by_digest(reference, "abc") is None
    assert by_digest("m@1", "") is None


def test_a_digest_is_not_pinned():
    pins = Pins()
    assert pins.observe("m@sha256:abc", FIRST)
    assert pins.resolve("m@sha256:abc") == ("m@sha256:abc", "")
