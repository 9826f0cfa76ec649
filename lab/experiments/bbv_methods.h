// The methods of section 6 of Balcan, Blum, Vempala 2006, run once, and printed means judged.
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

// The settings of Winnow that are tried, as the paper prints none: five rates, each with 10 and
// 100 passes; the threshold is 0, beside a constant feature of 1.
const std::vector<std::string>& WinnowGrid();

// F1 and F2 of the same landmarks, served in float64.
struct BbvMaps {
  BuiltMap f1;
  BuiltMap f2;
};

// Maps whose landmarks are drawn from the rows of `stream` by a policy of the product. With as many
// rows as landmarks, every row is one.
absl::StatusOr<BbvMaps> BuildBbvMaps(const std::string& kernel, const std::string& policy,
                                     int64_t landmarks, ConstMatrixView<double> stream,
                                     uint64_t seed);

struct BbvTask {
  std::string kernel;
  const Examples& train;
  const Examples& test;
  // Texts of Winnow learners; may be empty.
  std::vector<std::string> winnow = {};
  // Whether F1's columns are brought to [−1, 1] over the rows to learn from before the SVM.
  bool scale_f1 = false;
  uint64_t seed = 0;
};

// Errors on the rows to test.
struct BbvErrors {
  double f1_svm = 0;
  double f2_svm = 0;
  // One a setting.
  std::vector<double> f1_winnow;
  std::vector<double> f2_winnow;
};

absl::StatusOr<BbvErrors> ErrorsOnFeatures(const BbvMaps& maps, const BbvTask& task);
// Error of the SVM with the kernel itself, C = 10, and an offset.
absl::StatusOr<double> ErrorOfKernelSvm(const BbvTask& task);
// Error of the SVM without an offset. The product's kernel SVM always has one; it is 0 where with
// each example (x, y) there is (−x, −y), and two examples of half the weight count as one. Since no
// row maps to −φ(x), this is learnt from F2 with as many landmarks as there are rows to learn from,
// those rows: the separator is in their span.
absl::StatusOr<double> ErrorOfSvmWithoutOffset(const BbvTask& task);

// Errors of the methods, a number a run.
struct BbvRuns {
  std::vector<double> f1_svm, f2_svm, svm;
  // Perhaps of the first runs alone; Winnow by setting of the grid.
  std::vector<double> svm_without_offset;
  std::vector<std::vector<double>> f1_winnow =
      std::vector<std::vector<double>>(WinnowGrid().size());
  std::vector<std::vector<double>> f2_winnow =
      std::vector<std::vector<double>>(WinnowGrid().size());

  // Errors of a method; Winnow's at the setting with the smallest mean.
  const std::vector<double>& of(BbvMethod method) const;
  // In how many settings F1 errs more than F2 with Winnow, by the means.
  int64_t WinnowSettingsInOrder() const;
  bool BestWinnowIsInOrder() const;
};

// One run more; with Winnow at every setting of the grid and the SVM without offset, or without.
absl::Status AddRun(const BbvMaps& maps, BbvTask task, bool with_winnow, BbvRuns& runs);

// Errors of one method, a number a run, beside a printed mean of some runs.
struct BbvMeans {
  // Name of the method and its data, for people.
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
  // Interval with 99.8 % of the means of `printed_runs` runs.
  Interval central;
  bool agrees = false;
};

BbvJudged Judged(const BbvMeans& means, uint64_t seed);
Verdict VerdictOf(const BbvMeans& means, const BbvJudged& judged);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_BBV_METHODS_H_
