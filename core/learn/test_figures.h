// Measures the answers of a head on test rows: the figures of its report (core/head/report.h). Test
// rows are rows that neither training nor any choice has seen.
#ifndef PHIMAP_CORE_LEARN_TEST_FIGURES_H_
#define PHIMAP_CORE_LEARN_TEST_FIGURES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/head/conformal.h"
#include "core/head/report.h"
#include "core/learn/margin.h"
#include "core/linalg/matrix.h"

namespace phimap {

// What the figures, intervals and guarantees of a report assume, for people.
inline constexpr char kTestPremise[] =
    "assumes that the rows to come and the rows of this stream were drawn independently from one "
    "distribution; intervals for RMSE, MAE and R² are approximate, all others hold for every "
    "distribution";

// n test rows of classes, as the head answers them.
struct ClassAnswers {
  // n×1 for two classes, n×c for more.
  ConstMatrixView<double> scores;
  // n×c; without rows if the head has no link.
  ConstMatrixView<double> probabilities;
  absl::Span<const int32_t> labels;
  int32_t class_count = 0;
  // What margins need (margin.h); null if none are measured. `squared_lengths` has ‖F(x)‖² of each
  // row. `self_kernel` and `rounding` are as in LabeledRows (evaluation.h), or empty.
  const Separators* separators = nullptr;
  absl::Span<const double> squared_lengths;
  absl::Span<const double> self_kernel;
  absl::Span<const double> rounding;
};

// Returns the figures, with intervals and certified margins at `confidence`; the failure
// probability of the latter is divided among the shares alpha > 0. Does not depend on the order of
// rows, except for rounding. Cost: n·log n, and n·c. REQUIRES: n >= 1; labels in 0 …
// class_count − 1; finite scores; as many numbers as rows in each member that is not empty;
// 0 < confidence < 1.
ClassFigures MeasureClasses(const ClassAnswers& answers, double confidence);

// n test rows of numbers.
struct NumberAnswers {
  absl::Span<const double> predicted;
  absl::Span<const double> targets;
  // The standard deviation of an observation, which the head states for each row; or empty.
  absl::Span<const double> deviations;
};

// Returns the figures. The intervals are approximate, by the delta method for the logarithm: a mean
// A = Σ a_i/n of n independent numbers a_i > 0 that is estimated has the interval
//
//     A·exp(±t·√ln(1 + s²)),   s² = Σ (a_i/A − 1)²/(n(n − 1)),
//
// t Student's quantile of n − 1 degrees of freedom, with a = |residual| for the MAE, and a =
// residual² for the squared RMSE. For 1 − R², a ratio of means of r² and q² = (target − mean)²,
// s² = Σ (r_i²/mean r² − q_i²/mean q²)²/(n(n − 1)). Ends are over 0, and R² is under 1.
//
// Accuracy: with 20 rows and confidence .95 the interval covers what it estimates with probability
//           .9 to .97 if residuals are normal; with more rows it comes closer. It covers less where
//           few rows carry the sum, as for Student's distribution with 3 degrees of freedom.
// Where no row errs the ends are 0, which does not mean that the error is known. With one row there
// is no interval: low is 0 and high the largest number.
//
// REQUIRES: n >= 1; finite numbers; deviations over 0; 0 < confidence < 1.
NumberFigures MeasureNumbers(const NumberAnswers& answers, double confidence);

// Counts how often sets, or intervals, of each of `confidences` hold the truth. One for which there
// are too few calibration rows is left out. `confidence` is that of the intervals for the counts.
// REQUIRES: as above; at least one row.
std::vector<Coverage> MeasureSets(ConstMatrixView<double> probabilities,
                                  absl::Span<const int32_t> labels,
                                  const ConformalPredictor& predictor,
                                  absl::Span<const double> confidences, double confidence);
std::vector<Coverage> MeasureIntervals(absl::Span<const double> predicted,
                                       absl::Span<const double> targets,
                                       const ConformalPredictor& predictor,
                                       absl::Span<const double> confidences, double confidence);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_TEST_FIGURES_H_
