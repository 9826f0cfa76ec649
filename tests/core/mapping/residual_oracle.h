// Compares what a version serves, its features, residuals and allowances, with F2 and its residuals
// in numbers of 113 digits.
#ifndef PHIMAP_TESTS_CORE_MAPPING_RESIDUAL_ORACLE_H_
#define PHIMAP_TESTS_CORE_MAPPING_RESIDUAL_ORACLE_H_

#include <cstdint>
#include <vector>

#include "core/linalg/matrix.h"
#include "core/plan/artifact.h"
#include "core/plan/examples.h"
#include "core/plan/plan.h"
#include "tests/core/mapping/wide_kernels.h"

namespace phimap::testing {

// Kernel values in numbers of 113 digits, and what was served.
struct Compared {
  std::vector<WideRow> gram;   // of the landmarks
  std::vector<WideRow> cross;  // of queries and landmarks
  std::vector<WideRow> among;  // of queries
  Matrix<double> features;
  std::vector<double> residuals;
  std::vector<double> allowances;
};

double MedianOf(std::vector<double> numbers);

// What the comparison of one kernel found. An error of a row is |ρ as served − ρ|.
struct Found {
  // Largest share of its bound that an error of a row, and that of a pair, reaches.
  double row = 0;
  double pair = 0;
  // Median of a(x)/K(x, x).
  double allowance = 0;
  // Pairs whose error exceeds the bound without the allowances.
  int64_t bare = 0;
};

// Fails the test where a residual is outside of [0, K(x, x)], where it differs from the oracle's by
// more than its allowance, and where the error of a pair exceeds its bound.
Found Compare(Compared c);

template <typename Example, typename Formula>
std::vector<WideRow> ValuesOf(const Formula& formula, const std::vector<Example>& x,
                              const std::vector<Example>& y) {
  std::vector<WideRow> values;
  for (const Example& a : x) {
    values.emplace_back();
    for (const Example& b : y) values.back().push_back(formula(a, b));
  }
  return values;
}

// Maps `queries` and fills in what was served. The features are in the serving type.
void Serve(const Artifact& artifact, const ExamplesView& queries, Compared& c);

// Returns the plan's landmarks; none if the kernel was folded into a matrix.
std::vector<WideRow> WideLandmarks(const Plan& plan);
std::vector<WideRow> WideRowsOf(const Matrix<double>& rows);
// Returns the rows after the plan's input stage, which may shift them, in the serving type.
Matrix<double> AsServed(const Plan& plan, const Matrix<double>& rows);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_MAPPING_RESIDUAL_ORACLE_H_
