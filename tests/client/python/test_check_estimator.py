"""Runs scikit-learn's own checks on the estimators."""
import pytest
from sklearn.utils import estimator_checks

from phimap.sklearn import (F1, F2, F2Classifier, F2Regressor, F3, FourierFeatures, KernelClassifier, KernelFeatures, KernelPCA,
                            KernelRegressor, RandomProjection)

KINDS = [F1, F2, F3, FourierFeatures, KernelFeatures, KernelPCA, RandomProjection]


PREDICTORS = [F2Classifier, F2Regressor, KernelClassifier, KernelRegressor]


@pytest.fixture(params=["in this process", "on a server"])
def server(request):
    """The parameter `server` of an estimator, for both places where it may compute."""
    if request.param == "on a server":
        return request.getfixturevalue("phimapd").address
    request.getfixturevalue("engine_library")
    return None


@pytest.mark.filterwarnings("ignore:landmarks=", "ignore:dimensions=", "ignore:X has .* rows, too few")
@pytest.mark.parametrize("kind", KINDS + PREDICTORS)
def test_check_estimator(server, kind):
    estimator_checks.check_estimator(kind(server=server))


# Additional checks, which scikit-learn runs on its own transformers.
@pytest.mark.filterwarnings("ignore:landmarks=", "ignore:dimensions=")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("check", [
    estimator_checks.check_dataframe_column_names_consistency, estimator_checks.check_set_output_transform,
    estimator_checks.check_set_output_transform_pandas,
    estimator_checks.check_transformer_get_feature_names_out,
    estimator_checks.check_transformer_get_feature_names_out_pandas, estimator_checks.check_n_features_in_after_fitting,
    estimator_checks.check_get_feature_names_out_error])
def test_checks_of_scikit_learns_own_transformers(server, kind, check):
    check(kind.__name__, kind(server=server))
