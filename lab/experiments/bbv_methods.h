// Runs the methods of section 6 of Balcan, Blum, Vempala 2006, and judges printed means.
#ifndef PHIMAP_LAB_EXPERIMENTS_BBV_METHODS_H_
#define PHIMAP_LAB_EXPERIMENTS_BBV_METHODS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/built_map.h"
#include "lab/examples.h"
#include "lab/experiments/bbv_data.h"
#include "lab/results.h"
#include "lab/statistics.h"

namespace phimap::lab {

// Returns the settings of Winnow to try, since the paper prints none: five rates, each with 10 and
// 100 epochs. The threshold is 0, and there is a constant feature of 1.
const std::vector<std::string>& WinnowGrid();

// F1 and F2 with the same landmarks, served in float64.
struct BbvMaps {
  BuiltMap f1;
  BuiltMap f2;
};

// Builds maps whose landmarks are chosen from the rows of `stream` by a policy of the product. If
// there are as many rows as landmarks, every row is a landmark.
absl::StatusOr<BbvMaps> BuildBbvMaps(const std::string& kernel, const std::string& policy,
                                     int64_t landmarks, ConstMatrixView<double> stream,
                                     uint64_t seed);

struct BbvTask {
  std::string kernel;
  const Examples& train;
  const Examples& test;
  // Texts of Winnow learners; may be empty.
  std::vector<std::string> winnow = {};
  // Whether F1's columns are scaled to [−1, 1] over the training rows before the SVM.
  bool scale_f1 = false;
  uint64_t seed = 0;
};

// Errors on the test rows.
struct BbvErrors {
  double f1_svm = 0;
  double f2_svm = 0;
  // One error per learner in BbvTask::winnow.
  std::vector<double> f1_winnow;
  std::vector<double> f2_winnow;
};

absl::StatusOr<BbvErrors> ErrorsOnFeatures(const BbvMaps& maps, const BbvTask& task);
// Returns the error of the SVM with the kernel itself, C = 10, and an offset.
absl::StatusOr<double> ErrorOfKernelSvm(const BbvTask& task);
// Returns the error of the SVM without an offset. phimap's kernel SVM always has an offset, but the
// offset is 0 if the training examples contain (−x, −y) for each example (x, y). Each of the two
// has half of the weight, so that both together count like one example. No row maps to −φ(x), so
// the SVM learns from features of F2 whose landmarks are the training rows: the span of these
// landmarks contains the separator.
absl::StatusOr<double> ErrorOfSvmWithoutOffset(const BbvTask& task);

// Errors of the methods, one number per run.
struct BbvRuns {
  std::vector<double> f1_svm, f2_svm, svm;
  // The following errors may come from the first runs only. Winnow's errors are one vector per
  // setting of the grid.
  std::vector<double> svm_without_offset;
  std::vector<std::vector<double>> f1_winnow =
      std::vector<std::vector<double>>(WinnowGrid().size());
  std::vector<std::vector<double>> f2_winnow =
      std::vector<std::vector<double>>(WinnowGrid().size());

  // Returns the errors of a method; for Winnow, those at the setting with the smallest mean.
  const std::vector<double>& of(BbvMethod method) const;
  // Returns the number of settings in which Winnow's mean error is larger on F1 than on F2.
  int64_t WinnowSettingsInOrder() const;
  bool BestWinnowIsInOrder() const;
};

// Adds a run. `with_winnow` includes Winnow at every setting of the grid, and the SVM without an
// offset.
absl::Status AddRun(const BbvMaps& maps, BbvTask task, bool with_winnow, BbvRuns& runs);

// The errors of one method, one number per run, and the mean of `printed_runs` runs that the paper
// prints.
struct BbvMeans {
  // Name of the method and its data, to be shown.
  std::string of;
  double printed = 0;
  // Half of the last printed digit.
  double half_digit = 0;
  int64_t printed_runs = 0;
  const std::vector<double>& runs;
};

struct BbvJudged {
  double mean = 0;
  double standard_error = 0;
  // Interval that contains 99.8 % of the means of `printed_runs` runs.
  Interval central;
  bool agrees = false;
};

BbvJudged Judged(const BbvMeans& means, uint64_t seed);
Verdict VerdictOf(const BbvMeans& means, const BbvJudged& judged);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_BBV_METHODS_H_
