"""Tests estimators whose kernel is a Python function, or whose X is a Gram matrix."""
import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics.pairwise import additive_chi2_kernel, chi2_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from phimap.sklearn import F1, F2, KernelPCA, _kernel_function


def chi2_of_rows(x, z):
    """A kernel function of the form that Nystroem expects: it takes two rows and returns a number."""
    return chi2_kernel(x[None], z[None], gamma=0.5)[0, 0]


def chi2_of_matrices(x, z):
    return chi2_kernel(x, z, gamma=0.5)


def common_words(x, z):
    return float(len(set(x.split()) & set(z.split())))


@pytest.fixture
def histograms(rows):
    return np.abs(rows)


@pytest.mark.parametrize("function", [chi2_of_rows, chi2_of_matrices])
def test_features_span_what_nystroems_would_on_the_same_landmarks(phimapd, histograms, function):
    ours = F2(n_components=40, kernel=function, random_state=1, serving_type="float64", server=phimapd.address)
    features = ours.fit_transform(histograms[:100])
    chosen = ours.component_indices_
    assert (ours.components_ == histograms[chosen]).all() and len(set(chosen)) == len(chosen)
    k = chi2_of_matrices(histograms[:100], histograms[chosen])
    expected = k @ np.linalg.pinv(chi2_of_matrices(histograms[chosen], histograms[chosen])) @ k.T
    # Both methods omit directions whose eigenvalues are mere rounding errors. The kernel values are at most 1.
    assert np.abs(features @ features.T - expected).max() < 1e-6


def test_new_rows_are_mapped_and_a_pickled_estimator_maps_them_alike(phimapd, histograms):
    fitted = F1(20, kernel=chi2_of_matrices, serving_type="float64", name="chi2", server=phimapd.address).fit(histograms)
    features = fitted.transform(histograms[:7] / 2)
    assert np.abs(features - chi2_of_matrices(histograms[:7] / 2, fitted.components_)).max() < 1e-12
    assert (pickle.loads(pickle.dumps(fitted)).transform(histograms[:7] / 2) == features).all()


def test_an_array_of_more_rows_than_one_block_is_one_answer(phimapd, histograms, monkeypatch):
    fitted = F2(20, kernel=chi2_of_matrices, server=phimapd.address).fit(histograms)
    expected = fitted.transform(histograms)
    monkeypatch.setattr(_kernel_function, "_ROWS_AT_ONCE", 64)
    assert (fitted.transform(histograms) == expected).all()


def test_a_sample_is_built_from_and_its_rows_are_found_again(phimapd, histograms):
    fitted = F1(10, kernel=chi2_of_matrices, pool_rows=50, seed=4, serving_type="float64", server=phimapd.address)
    features = fitted.fit_transform(histograms)
    assert fitted.certificate().stream_rows == 50
    assert fitted.component_indices_.max() > 50  # the landmarks come from all 300 rows, not only from the first 50
    assert np.abs(features - chi2_of_matrices(histograms, histograms[fitted.component_indices_])).max() < 1e-12
    given = F1(10, kernel=chi2_of_matrices, policy="given", server=phimapd.address).fit(histograms)
    assert given.component_indices_.tolist() == list(range(10))


def test_texts_and_sparse_rows_go_to_the_function_as_they_are(phimapd, rows):
    texts = [f"a {'b ' * (i % 3)}{'c' if i % 2 else 'd'} e{i % 5}" for i in range(60)]
    fitted = F2(12, kernel=common_words, server=phimapd.address).fit(texts)
    features = fitted.transform(texts)
    k = np.array([[common_words(x, z) for z in texts] for x in texts])
    assert np.abs(features @ features.T - k).max() < 1e-3
    sparse = scipy.sparse.csr_matrix(np.where(np.abs(rows) < 1, 0, rows))
    assert F2(12, kernel=rbf_kernel, server=phimapd.address).fit_transform(sparse).shape == (300, 12)


def test_a_function_that_fails_or_answers_something_else_says_so(phimapd, histograms, rows):
    with pytest.raises(ValueError) as raised:
        F2(5, kernel=additive_chi2_kernel, server=phimapd.address).fit(rows)
    assert "two matrices of rows" in raised.value.__notes__[0] and "X contains negative values" in raised.value.__notes__[0]
    with pytest.raises(ValueError, match="expected a number for each pair of rows, 300 × 300"):
        F2(5, kernel=lambda x, z: x[:3], server=phimapd.address).fit(histograms)
    with pytest.raises(ValueError, match="version='x' and a function as kernel are both set"):
        F2(5, kernel=chi2_of_rows, version="x", server=phimapd.address).fit(histograms)


def test_a_gram_matrix_is_split_along_both_sides(phimapd, rows):
    labels = (np.linalg.norm(rows, axis=1) > 2).astype(int)
    gram = rbf_kernel(rows, gamma=0.5)
    fitted = F1(20, kernel="precomputed", serving_type="float64", server=phimapd.address).fit(gram)
    assert fitted.n_features_in_ == 300
    assert (fitted.transform(gram) == gram[:, fitted.component_indices_]).all()
    model = make_pipeline(F2(60, kernel="precomputed", server=phimapd.address), LinearSVC(dual=False))
    assert cross_val_score(model, gram, labels, cv=3).mean() > 0.75
    centred = KernelPCA(60, 3, kernel="precomputed", server=phimapd.address).fit_transform(gram)
    assert np.abs(centred.mean(axis=0)).max() < 0.1
