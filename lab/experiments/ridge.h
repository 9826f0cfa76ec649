// Ridge regression with an intercept, on a kernel or on features, as a classifier.
#ifndef PHIMAP_LAB_EXPERIMENTS_RIDGE_H_
#define PHIMAP_LAB_EXPERIMENTS_RIDGE_H_

#include <cstdint>
#include <vector>

#include "core/linalg/matrix.h"

namespace phimap::lab {

// The five regularizations that ridge chooses from, as shares of the mean eigenvalue of the centred
// Gram matrix of the training rows.
inline constexpr double kRidgeLambdas[] = {1, 3e-2, 1e-3, 3e-5, 1e-6};

// The parts of a labeled sample. Ridge learns on `train`, its λ is the one of least error on
// `validate`, and its error is measured on `test`.
struct RidgeLabels {
  const std::vector<int32_t>& train;
  const std::vector<int32_t>& validate;
  const std::vector<int32_t>& test;
  int32_t classes = 2;
};

// Both functions return the share of test rows that ridge regression on one ±1 target a class
// misclassifies. Among equal validation errors the largest λ is chosen.
//
// `gram`: inner products of the n training rows, n×n, all of it; `rest`: inner products of the
// validation rows and then the test rows with the training rows. Cost: 5n³/3 flops and
// 10n²·classes.
double RidgeErrorOfGram(Matrix<double> gram, Matrix<double> rest, const RidgeLabels& labels);
// `train`: features of the n training rows, n×d; `rest`: those of the validation rows and then the
// test rows. Cost: with m = min(n, d), m·n·d + 5m³/3 flops.
double RidgeErrorOfFeatures(Matrix<double> train, Matrix<double> rest, const RidgeLabels& labels);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_RIDGE_H_
