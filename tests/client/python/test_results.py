"""Tests the results of calls: their short text, their tables for notebooks, and their fields as attributes."""
import copy
import keyword
import pickle
import uuid

import pytest

import phimap
from phimap.results import DenseRows, Result, result_of
from phimap.v1 import mapping_pb2 as mapping_pb
from phimap.v1 import mapping_service_pb2 as service_pb


@pytest.fixture
def version(client, rows):
    return client.build(f"m-{uuid.uuid4().hex}", rows, spec="f2(landmarks=30)", kernel="rbf(gamma=0.5)")


@pytest.fixture
def evaluation(client, version, rows):
    return client.evaluate(phimap.reference_to(version), rows, ["in" if row[0] < 0.5 else "<out>" for row in rows])


def test_a_version_is_a_line_a_text_and_a_table(version):
    name = phimap.reference_to(version)
    assert repr(version).startswith(f"<Version {name}: f2(landmarks=30, ") and repr(version).endswith("5 → 30 float32>")
    lines = str(version).splitlines()
    assert lines[0] == name and 8 < len(lines) < 20 and max(map(len, lines[:10])) < 180
    assert any(line.split() == ["rank", "30", "of", "30"] for line in lines)
    assert "residual mass" in str(version) and "eigenvalues" not in str(version)
    page = version._repr_html_()
    assert page.count("<tr>") == len(lines) - 1 and f"<caption>{name}</caption>" in page


def test_the_other_results_are_short_too(client, version, evaluation):
    name = version.ref.name
    alias = client.set_alias(f"{name}@1", "prod")
    [job] = client.list_builds(name)
    advice = client.advise(margin=0.2, error=0.1, confidence=0.95)
    assert repr(alias) == "<Alias prod: version 1>"
    assert repr(client.get_mapping(name)) == f"<Mapping {name}: 1 versions, newest 1, prod is 1>"
    assert repr(job).startswith(f"<BuildJob {name} ") and f": done, {name}@1" in repr(job)
    assert repr(version.certificate).startswith("<Certificate of 300 rows, rank 30 of 30, residual mass")
    assert "verdict" in str(advice) and "<th" in advice._repr_html_()
    assert len(repr(version.certificate.spectrum)) < 1000 and "eigenvalues=<30 of them>" in repr(version.certificate.spectrum)
    assert "tested rows" in repr(evaluation) and "&lt;out&gt;" in evaluation._repr_html_()
    for result in (alias, job, advice, evaluation, version.certificate, version):
        assert len(str(result).splitlines()) < 40


def test_fields_are_attributes_and_what_was_not_measured_is_none(client, version, rows):
    certificate = version.certificate
    assert certificate.rank == 30 and certificate.kernel_error.mean > 0 and len(certificate.pivots) == 30
    assert isinstance(certificate.pivots, tuple) and isinstance(certificate.spectrum.effective_dimensions[0], Result)
    assert "rank" in dir(certificate)
    f1 = client.build(f"m-{uuid.uuid4().hex}", rows, spec="f1(landmarks=5)", kernel="rbf(gamma=scale)")
    assert f1.certificate.rank is None and f1.certificate.landmarks == 5
    # F1 approximates no kernel and has no factor: what was not measured has no numbers, and no zeros.
    for absent in (f1.certificate.kernel_error, f1.certificate.spectrum, f1.certificate.residual_share):
        assert not absent and repr(absent).endswith(": absent>")
    assert f1.certificate.kernel_error.mean is None and f1.certificate.kernel_error.pair_bound.share is None
    assert f1.certificate.spectrum.residual is None and f1.certificate.spectrum.eigenvalues == ()
    assert f1.certificate.residual_share.median is None
    assert certificate.kernel_error and certificate.spectrum and certificate.kernel_error.pair_bound.share > 0
    [listed] = client.list_versions(version.ref.name)  # without its certificate
    for absent in (listed.certificate, pickle.loads(pickle.dumps(listed.certificate)), copy.deepcopy(listed.certificate)):
        assert not absent and absent.stream_rows is None and absent.kernel_error.mean is None and not absent.warnings
    weak = [line for line in client.advise(margin=0.2, error=0.1, confidence=0.95).lines if line.subject == "weak learner"]
    assert weak[0].tier == "literal" and weak[0].dimensions is None and weak[0].draws is None and weak[1].draws > 0
    with pytest.raises(AttributeError):
        certificate.no_such_field
    with pytest.raises(AttributeError, match="cannot be changed"):
        version.ref = None


def test_equal_content_is_equal_and_pickles_and_copies(client, version):
    again = client.get_version(phimap.reference_to(version))
    assert again == version and again == version.message
    assert again != phimap.Version() and phimap.Version() == mapping_pb.Version()
    for other in (pickle.loads(pickle.dumps(version)), copy.deepcopy(version)):
        assert other == version and type(other) is phimap.Version


def test_a_message_without_words_of_its_own_shows_its_fields():
    job = service_pb.GetBuildRequest(name="m", build_id="x")
    assert repr(result_of(job)) == str(result_of(job)) == "GetBuildRequest(name='m', build_id='x')"
    assert result_of(3) == 3


def test_no_zero_is_hidden(evaluation):
    assert repr(result_of(service_pb.EstimateBuildResponse(flops=2))).startswith(
        "BuildEstimate(peak_memory_bytes=0, artifact_size_bytes=0, flops=2.0")
    flawless = result_of(type(evaluation.message)(tested_rows=9))
    assert "error 0 % of 9 tested rows" in repr(flawless) and "0 of 9 tested rows" in str(flawless)
    certificate = result_of(mapping_pb.Certificate(stream_rows=5, kernel_error=mapping_pb.Certificate.Error(scale=1)))
    assert "kernel error  0 mean, 0 max, of at most 1" in str(certificate) and "landmarks     0" in str(certificate)


def test_a_version_is_named_as_calls_take_it(client, version):
    assert str(version.ref) == phimap.reference_to(version) == f"{version.ref.name}@1"
    assert client.get_version(str(version.ref)).ref == version.ref


def words(name):
    return {9: "str", 12: "bytes", 8: "bool", 1: "float", 2: "float"}.get(name, "int")


def declared(field):
    """The type of a field, as results.py must declare it."""
    if field.message_type is None:
        kind = "str" if field.enum_type else words(field.type)
    elif field.message_type.full_name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        return "datetime.datetime | None" if field.message_type.name == "Timestamp" else "datetime.timedelta | None"
    else:
        kind = Result._kinds[field.message_type.full_name].__qualname__
    if field.label == field.LABEL_REPEATED:
        return f"tuple[{kind}, ...]"
    return kind + (" | None" if field.message_type is None and field.containing_oneof else "")


@pytest.mark.parametrize("kind", [kind for kind in Result._kinds.values() if kind is not DenseRows], ids=lambda kind: kind.__qualname__)
def test_each_field_of_a_result_has_its_type(kind):
    fields = {f"{field.name}_" if keyword.iskeyword(field.name) else field.name: declared(field) for field in kind._type.DESCRIPTOR.fields}
    assert kind.__annotations__ == fields
