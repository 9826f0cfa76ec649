// Measures how well a learner does on labeled rows: errors on rows that it did not learn from, and
// margins.
//
// A certified margin is a statement about separators in the kernel's own space, and needs K(x, x)
// of every row (core/learn/margin.h):
//
//   rows          Of all labeled rows at most ⌊α·n⌋ miss the margin. No probability is involved.
//   distribution  With probability `confidence` over the draw of the rows, a future row misses the
//                 margin with probability at most α, for every α of kCertifiedAlphas at once. It
//                 follows from the tested rows, of which the separator is independent, by order
//                 statistics. Every α > 0 and every fold gets a share of the doubt
//                 1 − confidence, so that readers may choose among the numbers.
//
// Both state that some separator is that good (the one of the best fold), as the theorems about
// mappings require.
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

namespace phimap {

inline constexpr std::array<double, 11> kCertifiedAlphas = {0,   0.01, 0.02, 0.05, 0.1, 0.15,
                                                            0.2, 0.25, 0.3,  0.4,  0.5};

struct EvaluationOptions {
  // Share of the rows that is tested, in (0, 1). Not used with folds.
  double held_out = 0.3;
  // Number of folds: 2..100, or 0 for one split.
  int folds = 0;
  // Seed of the split and of the learner.
  uint64_t seed = 0;
  // In (0, 1).
  double confidence = 0.95;

  // INVALID_ARGUMENT (FIELD_OUT_OF_RANGE) with the field, "held_out", "folds" or "confidence".
  absl::Status Validate() const;
};

struct LabeledRows {
  // Input rows of the learner.
  Matrix<double> rows;
  // One per row, 0 … class_count − 1.
  std::vector<int32_t> labels;
  int32_t class_count = 0;
  // K(x, x) of each row, if the rows are coordinates of φ-space (for F2, of the landmarks' span);
  // else empty. And the error of each feature row over √K(x, x).
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
    // Tested rows that were predicted to be in the class, and the number of correct ones.
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
    // Classes without a row to learn from.
    int64_t unseen_classes = 0;
    // Summary of the training, for people.
    std::string summary;
  };

  int64_t rows = 0;
  int64_t tested_rows = 0;
  int64_t errors = 0;
  double error = 0;
  // √(e(1 − e)/n) for one split; for folds, the deviation of their errors divided by √folds.
  double error_standard_error = 0;
  std::vector<Class> classes;
  // Pairs that occur, by actual, then predicted.
  std::vector<Confusion> confusion;
  std::vector<Fold> folds;
  // Percentiles over the tested rows. Both are empty for models that are not linear; the second is
  // also empty without self_kernel.
  std::vector<double> margins;
  std::vector<double> unnormalised_margins;
  // Lower bounds, which allow for rounding.
  std::vector<double> kernel_margins;
  // B of the learner's intercept; 0: none.
  double intercept_scale = 0;
  // At kCertifiedAlphas; empty without kernel_margins.
  std::vector<CertifiedMargin> certified;
};

// Called with the fold, from 0, and the finished share of all work. Any status but OK ends the
// work.
using EvaluationMonitor = absl::FunctionRef<absl::Status(int fold, double fraction)>;

// Splits, trains and tests. The result depends on rows, learner and options alone, except for the
// times. Reorders `labeled.rows`.
//
// Errors: INVALID_ARGUMENT (options; fewer than two classes with a row, reason CLASSES_TOO_FEW,
// field "labels"; more folds than rows, FOLDS_TOO_MANY, field "folds"), and those of the learner
// and the monitor. Memory: the learner's own, and some 60 bytes a row beside the rows. REQUIRES:
// labels, and self_kernel and rounding unless empty, have one number a row.
absl::StatusOr<Evaluation> Evaluate(const Learner& learner, LabeledRows& labeled,
                                    const EvaluationOptions& options, EvaluationMonitor monitor);

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_EVALUATION_H_
