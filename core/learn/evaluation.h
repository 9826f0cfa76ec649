// Measures how well a learner does on labeled rows: its errors on rows that it did not learn from,
// and its margins.
//
// A certified margin is a statement about separators in the kernel's own space. It states that a
// separator exists for which at most a share α of the rows has a smaller margin. Theorems about
// mappings require such a separator. Certified margins need K(x, x) of every row x
// (core/learn/margin.h). There are two kinds:
//
//   rows          At most ⌊α·n⌋ of the n labeled rows have a smaller margin. This is a fact; no
//                 probability is involved.
//   distribution  A future row has a smaller margin with probability at most α. This holds for all
//                 α of kCertifiedAlphas at once, with probability `confidence` over the draw of the
//                 rows.
//
// A statement about the distribution follows from order statistics of the tested rows, because the
// separator does not depend on these rows. The failure probability 1 − confidence is divided among
// all α > 0 and all folds, so a reader may pick any of the numbers. For each number, the separator
// is that of the fold with the largest margin.
#ifndef PHIMAP_CORE_LEARN_EVALUATION_H_
#define PHIMAP_CORE_LEARN_EVALUATION_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/learn/learner.h"
#include "core/linalg/matrix.h"
#include "core/theory/binomial.h"

namespace phimap {

inline constexpr std::array<double, 11> kCertifiedAlphas = {0,   0.01, 0.02, 0.05, 0.1, 0.15,
                                                            0.2, 0.25, 0.3,  0.4,  0.5};

struct EvaluationOptions {
  // Share of the rows that is tested, in (0, 1). Ignored if `folds` is not 0.
  double held_out = 0.3;
  // Number of folds: 2..100, or 0 for one split.
  int folds = 0;
  // Seed of the split and of the learner.
  uint64_t seed = 0;
  // Probability with which the interval of the error holds, and that with which the certified
  // margins for future rows hold, in (0, 1).
  double confidence = 0.95;

  // INVALID_ARGUMENT (FIELD_OUT_OF_RANGE, field "held_out", "folds" or "confidence") if a value is
  // out of range.
  absl::Status Validate() const;
};

struct LabeledRows {
  // The rows as the learner takes them.
  Matrix<double> rows;
  // Class of each row, 0 … class_count − 1.
  std::vector<int32_t> labels;
  int32_t class_count = 0;
  // `self_kernel` has K(x, x) of each row x if `rows` holds coordinates in φ-space (for F2, in the
  // landmarks' span). It is empty otherwise. `rounding` has the error of each feature row, divided
  // by √K(x, x).
  std::vector<double> self_kernel;
  std::vector<double> rounding;
};

struct CertifiedMargin {
  double alpha = 0;
  double rows_margin = 0;
  // Absent if there are too few rows for a statement at α; always absent at α = 0.
  std::optional<double> margin;
};

struct Evaluation {
  struct Class {
    int64_t rows = 0;
    int64_t tested_rows = 0;
    // Number of tested rows that were predicted to be in this class, and how many of these
    // predictions are correct.
    int64_t predicted = 0;
    int64_t correct = 0;
  };
  struct Confusion {
    int32_t actual = 0;
    int32_t predicted = 0;
    int64_t count = 0;
  };
  struct Fold {
    int64_t trained_rows = 0;
    int64_t tested_rows = 0;
    int64_t errors = 0;
    // Number of classes that have rows, but none among the fold's training rows.
    int64_t unseen_classes = 0;
    // Summary of the training, for people.
    std::string summary;
  };

  int64_t rows = 0;
  int64_t tested_rows = 0;
  int64_t errors = 0;
  double error = 0;
  // Standard error of `error`. With one split, it is √(e(1 − e)/n), where e is the error on the n
  // tested rows. With folds, it is the standard deviation of the folds' errors, divided by √folds.
  // It is 0 if no row is misclassified, which does not mean that the error is known exactly.
  double error_standard_error = 0;
  // Interval for the probability that the learner errs on a future row: the interval of Clopper and
  // Pearson for `errors` of `tested_rows`, at the confidence of the options. `error_premise` is
  // what it assumes, for people. Under this premise it is exact with one split; with folds no
  // interval is, and it is called approximate.
  ProbabilityInterval error_interval;
  std::string error_premise;
  std::vector<Class> classes;
  // The pairs of actual and predicted class that occur, sorted by actual, then by predicted class.
  std::vector<Confusion> confusion;
  std::vector<Fold> folds;
  // Percentiles over the tested rows. Both are empty for models that are not linear.
  std::vector<double> margins;
  std::vector<double> unnormalised_margins;
  // Percentiles of the tested rows' margins in the kernel's own space. They are lower bounds,
  // because the possible effect of rounding is subtracted, but never less than the least margin
  // that exists. Empty if the model is not linear or there is no self_kernel.
  std::vector<double> kernel_margins;
  // Value B of the constant feature whose weight is the intercept (margin.h). 0 means that there is
  // no intercept.
  double intercept_scale = 0;
  // One certified margin for each of kCertifiedAlphas; empty without kernel_margins.
  std::vector<CertifiedMargin> certified;
};

// Called with the number of the fold (from 0) and the share of all work that is done. A status
// other than OK ends the evaluation.
using EvaluationMonitor = absl::FunctionRef<absl::Status(int fold, double fraction)>;

// Splits the rows, trains on one part and tests on the other. The result depends only on the rows,
// the learner and the options. Reorders `labeled.rows`.
//
// Errors: those of the learner and the monitor, and INVALID_ARGUMENT for one of these reasons:
// - Validate rejects the options.
// - Fewer than two classes have rows (CLASSES_TOO_FEW, field "labels").
// - There are more folds than rows (FOLDS_TOO_MANY, field "folds").
//
// Memory: that of the learner, and some 60 bytes per row in addition to the rows. REQUIRES:
// `labels` has one number per row. `self_kernel` and `rounding` also have one number per row, or
// are empty.
absl::StatusOr<Evaluation> Evaluate(const Learner& learner, LabeledRows& labeled,
                                    const EvaluationOptions& options, EvaluationMonitor monitor);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_EVALUATION_H_
