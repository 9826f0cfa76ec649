#include "lab/experiments/ridge.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/certificate/fidelity.h"
#include "core/linalg/blas.h"

namespace phimap::lab {
namespace {

// Centres `rest` with the means of the training rows' Gram matrix, and then that matrix itself.
void Centre(Matrix<double>& gram, Matrix<double>& rest) {
  const int64_t n = gram.rows();
  const auto count = static_cast<double>(n);
  std::vector<double> means(static_cast<size_t>(n));
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) means[i] += gram(i, j) / count;
    mean += means[i] / count;
  }
  for (int64_t i = 0; i < rest.rows(); ++i) {
    double own = 0;
    for (int64_t j = 0; j < n; ++j) own += rest(i, j) / count;
    for (int64_t j = 0; j < n; ++j) rest(i, j) += mean - own - means[j];
  }
  CentreGram(gram.view());
}

// Returns the targets, +1 for a row's own class and −1 for others, less their means, which are
// returned in `means`: n×classes.
Matrix<double> Targets(const std::vector<int32_t>& labels, int32_t classes,
                       std::vector<double>& means) {
  const auto n = static_cast<int64_t>(labels.size());
  Matrix<double> targets = Matrix<double>::Uninit(n, classes);
  means.assign(static_cast<size_t>(classes), 0);
  for (int64_t i = 0; i < n; ++i) {
    for (int32_t c = 0; c < classes; ++c) {
      targets(i, c) = labels[i] == c ? 1 : -1;
      means[c] += targets(i, c) / static_cast<double>(n);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int32_t c = 0; c < classes; ++c) targets(i, c) -= means[c];
  }
  return targets;
}

double ErrorOf(ConstMatrixView<double> scores, const std::vector<double>& means,
               const std::vector<int32_t>& labels) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < scores.rows(); ++i) {
    int32_t best = 0;
    for (int32_t c = 1; c < scores.cols(); ++c) {
      if (scores(i, c) + means[c] > scores(i, best) + means[best]) best = c;
    }
    wrong += best != labels[i] ? 1 : 0;
  }
  return static_cast<double>(wrong) / static_cast<double>(scores.rows());
}

// The least error over the λs. `solve` replaces the targets, n×classes, by what the scores of the
// rest are linear in, or returns false if λ is lost in rounding.
template <typename Solve>
double LeastError(double mean_eigenvalue, ConstMatrixView<double> rest, const RidgeLabels& labels,
                  Solve solve) {
  std::vector<double> means;
  const Matrix<double> targets = Targets(labels.train, labels.classes, means);
  const auto validate = static_cast<int64_t>(labels.validate.size());
  double least = std::numeric_limits<double>::infinity();
  double error = 1;
  for (const double lambda : kRidgeLambdas) {
    // A constant feature has no eigenvalue; it gives the majority class for every λ.
    const double ridge = mean_eigenvalue > 0 ? lambda * mean_eigenvalue : 1;
    const std::optional<Matrix<double>> weights = solve(ridge, targets);
    if (!weights.has_value()) continue;
    Matrix<double> scores = Matrix<double>::Uninit(rest.rows(), labels.classes);
    Multiply(1, rest, weights->view(), 0, scores.view());
    const double of_validation = ErrorOf(scores.view().Rows(0, validate), means, labels.validate);
    if (!(of_validation < least)) continue;
    least = of_validation;
    error = ErrorOf(scores.view().Rows(validate, rest.rows() - validate), means, labels.test);
  }
  return error;
}

// Solves (m + ridge·I)·x = out in place. Returns false if the matrix is not positive definite.
bool SolveRidge(const Matrix<double>& m, double ridge, MatrixView<double> out) {
  Matrix<double> factor = m.Clone();
  for (int64_t i = 0; i < m.rows(); ++i) factor(i, i) += ridge;
  if (!FactorPositiveDefinite(factor.view())) return false;
  SolveLowerTriangle(factor.view(), out);
  SolveLowerTriangleTransposed(factor.view(), out);
  return true;
}

double Trace(const Matrix<double>& m) {
  double trace = 0;
  for (int64_t i = 0; i < m.rows(); ++i) trace += m(i, i);
  return trace;
}

// Subtracts the mean of the training rows from all rows.
void CentreColumns(Matrix<double>& train, Matrix<double>& rest) {
  for (int64_t j = 0; j < train.cols(); ++j) {
    double mean = 0;
    for (int64_t i = 0; i < train.rows(); ++i)
      mean += train(i, j) / static_cast<double>(train.rows());
    for (int64_t i = 0; i < train.rows(); ++i) train(i, j) -= mean;
    for (int64_t i = 0; i < rest.rows(); ++i) rest(i, j) -= mean;
  }
}

}  // namespace

double RidgeErrorOfGram(Matrix<double> gram, Matrix<double> rest, const RidgeLabels& labels) {
  Centre(gram, rest);
  return LeastError(Trace(gram) / static_cast<double>(gram.rows()), rest.view(), labels,
                    [&](double ridge, const Matrix<double>& targets) {
                      std::optional<Matrix<double>> weights = targets.Clone();
                      if (!SolveRidge(gram, ridge, weights->view())) weights.reset();
                      return weights;
                    });
}

double RidgeErrorOfFeatures(Matrix<double> train, Matrix<double> rest, const RidgeLabels& labels) {
  const int64_t n = train.rows();
  CentreColumns(train, rest);
  if (train.cols() >= n) {
    Matrix<double> gram = Matrix<double>::Uninit(n, n);
    SymmetricRankUpdate(1, train.view(), 0, gram.view());
    MirrorLowerTriangle(gram.view());
    Matrix<double> products = Matrix<double>::Uninit(rest.rows(), n);
    MultiplyTransposed(1, rest.view(), train.view(), 0, products.view());
    return RidgeErrorOfGram(std::move(gram), std::move(products), labels);
  }
  const Matrix<double> columns = Transposed(std::as_const(train).view());
  Matrix<double> moments = Matrix<double>::Uninit(columns.rows(), columns.rows());
  SymmetricRankUpdate(1, columns.view(), 0, moments.view());
  return LeastError(Trace(moments) / static_cast<double>(n), rest.view(), labels,
                    [&](double ridge, const Matrix<double>& targets) {
                      std::optional<Matrix<double>> weights =
                          Matrix<double>::Uninit(columns.rows(), targets.cols());
                      Multiply(1, columns.view(), targets.view(), 0, weights->view());
                      if (!SolveRidge(moments, ridge, weights->view())) weights.reset();
                      return weights;
                    });
}

}  // namespace phimap::lab
