"""Tests which versions an estimator leaves on the server and for how long, and that a pickled model finds its version
again."""
import io
import pickle
import uuid
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import phimap
from phimap.sklearn import F2


def expires(client, estimator):
    return client.get_version(estimator.reference_).expire_time is not None


def test_without_a_name_there_is_a_week_and_with_one_for_ever(phimapd, client, rows):
    unnamed = F2(5, server=phimapd.address).fit(rows)
    named = F2(5, name=f"m-{uuid.uuid4().hex}", server=phimapd.address).fit(rows)
    asked = F2(5, name=f"m-{uuid.uuid4().hex}", ttl=3600, server=phimapd.address).fit(rows)
    assert (expires(client, unnamed), expires(client, named), expires(client, asked)) == (True, False, True)
    assert (unnamed.ttl_, named.ttl_, asked.ttl_) == (7 * 86_400, None, 3600)
    assert unnamed.ttl is None and clone(asked).ttl == 3600


def test_pickling_what_will_be_deleted_warns_until_it_is_kept(phimapd, client, rows):
    fitted = F2(5, server=phimapd.address).fit(rows)
    with pytest.warns(UserWarning, match=r"the server deletes f2-\w+@1 after 7 days without use.*call keep\(\)"):
        pickle.dumps(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.dumps(fitted.keep())
        pickle.dumps(F2(5))  # not fitted, so there is no version to lose
    assert not expires(client, fitted)


def test_a_grid_leaves_one_version_that_is_kept(phimapd, client, rows):
    labels = (np.linalg.norm(rows, axis=1) > 2).astype(int)
    before = {mapping.name for mapping in client.list_mappings()}
    model = make_pipeline(F2(server=phimapd.address), LinearSVC(dual=False))
    search = GridSearchCV(model, {"f2__n_components": [5, 9, 20], "f2__gamma": [0.1, 1.0]}, cv=3).fit(rows, labels)
    search.best_estimator_["f2"].keep()
    made = [version for mapping in client.list_mappings() if mapping.name not in before
            for version in client.list_versions(mapping.name)]
    kept = [phimap.reference_to(version) for version in made if version.expire_time is None]
    assert len(made) == 19 and kept == [search.best_estimator_["f2"].reference_]


def test_a_pickled_model_finds_its_version_again_after_an_import_under_another_number(phimapd, client, rows):
    name = f"m-{uuid.uuid4().hex}"
    fitted = F2(5, name=name, server=phimapd.address).fit(rows)
    expected, pickled, artifact = fitted.transform(rows), pickle.dumps(fitted), io.BytesIO()
    client.export(fitted.reference_, artifact)
    client.delete_version(f"{name}@1")
    client.build(name, rows, spec="f1(landmarks=3)", kernel="rbf(gamma=scale)")
    artifact.seek(0)
    assert client.import_(name, artifact).ref.number == 3
    found = pickle.loads(pickled)
    assert (found.transform(rows) == expected).all()
    assert found.keep().certificate().landmarks == 5


def test_a_sweep_that_is_killed_leaves_nothing_for_ever(client, rows, monkeypatch):
    seen = []
    monkeypatch.setattr(client, "delete_mapping", seen.append)  # as if the process was killed before the deletion
    phimap.sweep(rows, [str(row[0] > 0) for row in rows], client=client, specs=["f1(landmarks=3)"], kernel="rbf(gamma=scale)")
    assert client.get_version(seen[0]).expire_time is not None
