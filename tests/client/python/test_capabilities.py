"""Tests the list of a server's capabilities, and the estimator that works with every family in that list."""
import asyncio
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import phimap
from phimap.aio import AsyncClient
from phimap.sklearn import F2, FourierFeatures, KernelFeatures, from_version


def by_name(all):
    return {one.name: one for one in all}


def test_a_server_lists_what_it_offers_with_parameters(client):
    offered = client.list_capabilities()
    families, learners = by_name(offered.families), by_name(offered.learners)
    landmarks = by_name(families["f2"].parameters)["landmarks"]
    assert landmarks.type == "integer" and landmarks.least == 1 and landmarks.line
    assert "rbf" in by_name(offered.kernels) and "uniform" in by_name(offered.policies)
    assert [name for name, one in learners.items() if one.is_default] == ["linear_svm"]
    assert repr(families["f2"]).startswith("<Capability f2(landmarks") and "landmarks" in str(families["f2"])
    assert "fourier" in str(offered) and "families" in repr(offered)
    assert pickle.loads(pickle.dumps(offered)) == offered


def test_the_asynchronous_client_lists_the_same(phimapd, client):
    async def listed():
        async with AsyncClient(phimapd.address) as connected:
            return await connected.list_capabilities()
    assert asyncio.run(listed()) == client.list_capabilities()


# Kernels to try. Every family accepts at least one of them.
KERNELS = ("rbf(gamma=0.1)", "exp(0.1*linear())", "poly(degree=2, gamma=1, coef0=1)", "linear()")


def test_any_family_is_built_by_its_name(phimapd, client, rows):
    for family in client.list_capabilities().families:
        sizes = {one.name: 24 for one in family.parameters if one.required}
        assert any(is_built(family.name, sizes, kernel, phimapd, rows) for kernel in KERNELS), family


def is_built(name, sizes, kernel, phimapd, rows):
    with KernelFeatures(name, **sizes, kernel=kernel, server=phimapd.address) as features:
        try:
            assert len(features.fit_transform(rows)) == 300
        except phimap.InvalidArgument as refused:
            assert "kernel" in str(refused)
            return False
        assert features.spec_.startswith(f"{name}(") and features.get_feature_names_out()[0] == f"{name}_0"
        return True


def test_the_generic_estimator_gives_the_bits_of_the_mappings_own(phimapd, rows):
    own = FourierFeatures(64, orthogonal=True, gamma=0.1, seed=3, server=phimapd.address)
    generic = KernelFeatures("fourier", dimensions=64, orthogonal=True, gamma=0.1, seed=3, server=phimapd.address)
    text = KernelFeatures("fourier(dimensions=64, orthogonal=true)", kernel="rbf(gamma=0.1)", seed=3, server=phimapd.address)
    features = own.fit_transform(rows)
    np.testing.assert_array_equal(generic.fit_transform(rows), features)
    np.testing.assert_array_equal(text.fit_transform(rows), features)


def test_parameters_are_got_set_cloned_and_pickled(phimapd, rows):
    estimator = KernelFeatures("fourier", dimensions=32, server=phimapd.address)
    assert estimator.get_params()["dimensions"] == 32 and "dimensions=32" in repr(estimator)
    copy = clone(estimator).set_params(dimensions=16, form="phase", gamma=0.5)
    assert copy.get_params()["form"] == "phase" and estimator.get_params()["dimensions"] == 32
    with copy.fit(rows), pytest.warns(UserWarning, match="keep"):
        revived = pickle.loads(pickle.dumps(copy))
        assert revived.get_params() == copy.get_params()
        np.testing.assert_array_equal(revived.transform(rows), copy.transform(rows))


def test_a_grid_searches_over_the_mappings_parameters(phimapd, rows):
    model = make_pipeline(KernelFeatures("fourier", kernel="rbf(gamma=0.1)", server=phimapd.address), LinearSVC())
    grid = GridSearchCV(model, {"kernelfeatures__dimensions": [2, 64]}, cv=2)
    grid.fit(rows, (rows**2).sum(axis=1) > 4.5)
    assert grid.best_params_ == {"kernelfeatures__dimensions": 64}


def test_n_components_is_the_number_of_features(phimapd, rows):
    for spec, more in (("fourier", {}), ("f3", {"landmarks": 20}), ("f2", {})):
        with KernelFeatures(spec, n_components=8, **more, server=phimapd.address) as features:
            assert features.fit_transform(rows).shape == (300, 8)
    with KernelFeatures("fourier(dimensions=64)", n_components=8, server=phimapd.address) as features:
        assert features.fit_transform(rows).shape == (300, 8)
    with pytest.raises(ValueError, match="dimensions=4 and n_components=8 are the same parameter"):
        KernelFeatures("fourier", n_components=8, dimensions=4, server=phimapd.address).fit(rows)


def test_landmarks_are_cut_to_the_rows_with_a_warning(phimapd, rows):
    for estimator in (KernelFeatures("f2", landmarks=500), KernelFeatures("f2", landmarks=500, policy="given")):
        with pytest.warns(UserWarning, match="landmarks=500 is more"), estimator.set_params(server=phimapd.address):
            estimator.fit(rows)


@pytest.mark.parametrize("arguments, message", [
    ({"spec": "fuorier", "dimensions": 4}, "no family 'fuorier'; did you mean 'fourier'"),
    ({"spec": "fourier", "dimension": 4}, "fourier has no parameter 'dimension'; did you mean 'dimensions'"),
    ({"spec": "fourier(dimensions=4)", "dimensions": 5}, "dimensions is set twice"),
    ({"spec": "fourier(dimensions=4"}, "expected a family such as 'fourier'"),
    ({"spec": "fourier(dimensions 4)"}, "expected a family such as 'fourier'"),
    ({"spec": 5}, "expected a family such as 'fourier'")])
def test_what_is_wrong_is_said_before_anything_is_built(phimapd, rows, arguments, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        KernelFeatures(**arguments, server=phimapd.address).fit(rows)


def test_names_that_an_estimator_has_already_are_no_parameters():
    for name in ("fit", "_family", "reference_"):
        with pytest.raises(ValueError, match=name):
            KernelFeatures("fourier", **{name: 1})


def test_a_version_of_a_mapping_without_an_estimator_of_its_own_is_applied(phimapd, client, rows):
    version = client.build("exact", rows, spec="polynomial(dimensions=30)", kernel="poly(degree=2, gamma=1, coef0=1)")
    estimator = from_version(phimap.reference_to(version), server=phimapd.address)
    assert type(estimator) is KernelFeatures and estimator.spec == version.spec_text
    np.testing.assert_array_equal(estimator.transform(rows), client.transform("exact@1", rows))
    assert clone(estimator).fit(rows).digest_ == version.ref.digest
    with pytest.raises(ValueError, match="use KernelFeatures"):
        F2.from_version(phimap.reference_to(version), server=phimapd.address)
