#include "lab/experiments/bbv_methods.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/status_macros.h"
#include "lab/learning.h"

namespace phimap::lab {
namespace {

// Shifts and scales each column the same way in both sets, so that the column ranges from −1 to 1
// over the training rows. A constant column becomes 0.
void ScaleColumns(Matrix<double>& train, Matrix<double>& test) {
  for (int64_t k = 0; k < train.cols(); ++k) {
    double low = train(0, k);
    double high = train(0, k);
    for (int64_t i = 1; i < train.rows(); ++i) {
      low = std::min(low, train(i, k));
      high = std::max(high, train(i, k));
    }
    const double scale = high > low ? 2 / (high - low) : 0;
    for (Matrix<double>* rows : {&train, &test}) {
      for (int64_t i = 0; i < rows->rows(); ++i) {
        (*rows)(i, k) = ((*rows)(i, k) - (low + high) / 2) * scale;
      }
    }
  }
}

// Returns the examples and, for each (x, y), also (−x, −y).
Examples Mirrored(const Examples& examples) {
  const int64_t n = examples.rows.rows();
  Examples both{.rows = Matrix<double>(2 * n, examples.rows.cols()), .classes = examples.classes};
  for (int64_t i = 0; i < 2 * n; ++i) {
    const double sign = i < n ? 1 : -1;
    for (int64_t k = 0; k < both.rows.cols(); ++k) {
      both.rows(i, k) = sign * examples.rows(i % n, k);
    }
    both.labels.push_back(i < n ? examples.labels[i] : 1 - examples.labels[i - n]);
  }
  return both;
}

absl::StatusOr<std::vector<double>> WinnowErrors(const BbvTask& task, const Examples& train,
                                                 const Examples& test) {
  std::vector<double> errors;
  for (const std::string& learner : task.winnow) {
    PHIMAP_ASSIGN_OR_RETURN(const double error, TestError(learner, train, test, task.seed));
    errors.push_back(error);
  }
  return errors;
}

}  // namespace

const std::vector<std::string>& WinnowGrid() {
  static const std::vector<std::string> grid = [] {
    std::vector<std::string> learners;
    for (const int epochs : {10, 100}) {
      for (const char* rate : {"0.01", "0.03", "0.1", "0.3", "1"}) {
        learners.push_back(absl::StrCat("winnow(rate=", rate, ", epochs=", epochs, ")"));
      }
    }
    return learners;
  }();
  return grid;
}

absl::StatusOr<BbvMaps> BuildBbvMaps(const std::string& kernel, const std::string& policy,
                                     int64_t landmarks, ConstMatrixView<double> stream,
                                     uint64_t seed) {
  const std::string parameters =
      absl::StrCat("(landmarks=", landmarks, ", policy=", policy, ", serving_type=float64)");
  PHIMAP_ASSIGN_OR_RETURN(BuiltMap f1, BuiltMap::Build({"f1" + parameters, kernel}, stream, seed));
  PHIMAP_ASSIGN_OR_RETURN(BuiltMap f2, BuiltMap::Build({"f2" + parameters, kernel}, stream, seed));
  return BbvMaps{std::move(f1), std::move(f2)};
}

absl::StatusOr<BbvErrors> ErrorsOnFeatures(const BbvMaps& maps, const BbvTask& task) {
  BbvErrors errors;
  PHIMAP_ASSIGN_OR_RETURN(Examples train1, Mapped(maps.f1, task.train));
  PHIMAP_ASSIGN_OR_RETURN(Examples test1, Mapped(maps.f1, task.test));
  PHIMAP_ASSIGN_OR_RETURN(const Examples train2, Mapped(maps.f2, task.train));
  PHIMAP_ASSIGN_OR_RETURN(const Examples test2, Mapped(maps.f2, task.test));
  PHIMAP_ASSIGN_OR_RETURN(errors.f1_winnow, WinnowErrors(task, train1, test1));
  PHIMAP_ASSIGN_OR_RETURN(errors.f2_winnow, WinnowErrors(task, train2, test2));
  if (task.scale_f1) ScaleColumns(train1.rows, test1.rows);
  PHIMAP_ASSIGN_OR_RETURN(errors.f1_svm,
                          TestError("kernel_svm(C=10)", train1, test1, task.seed, "linear()"));
  PHIMAP_ASSIGN_OR_RETURN(errors.f2_svm,
                          TestError("kernel_svm(C=10)", train2, test2, task.seed, "linear()"));
  return errors;
}

absl::StatusOr<double> ErrorOfKernelSvm(const BbvTask& task) {
  return TestError("kernel_svm(C=10)", task.train, task.test, task.seed, task.kernel);
}

absl::StatusOr<double> ErrorOfSvmWithoutOffset(const BbvTask& task) {
  PHIMAP_ASSIGN_OR_RETURN(const BuiltMap map,
                          BuiltMap::Build({absl::StrCat("f2(landmarks=", task.train.rows.rows(),
                                                        ", serving_type=float64)"),
                                           task.kernel},
                                          task.train.rows.view(), task.seed));
  PHIMAP_ASSIGN_OR_RETURN(const Examples train, Mapped(map, task.train));
  PHIMAP_ASSIGN_OR_RETURN(const Examples test, Mapped(map, task.test));
  return TestError("kernel_svm(C=5)", Mirrored(train), test, task.seed, "linear()");
}

const std::vector<double>& BbvRuns::of(BbvMethod method) const {
  const auto best = [](const std::vector<std::vector<double>>& settings) -> auto& {
    return *std::min_element(settings.begin(), settings.end(),
                             [](const std::vector<double>& a, const std::vector<double>& b) {
                               return Mean(a) < Mean(b);
                             });
  };
  switch (method) {
    case kBbvF1Winnow:
      return best(f1_winnow);
    case kBbvF2Winnow:
      return best(f2_winnow);
    case kBbvF1Svm:
      return f1_svm;
    case kBbvF2Svm:
      return f2_svm;
    case kBbvSvm:
      break;
  }
  return svm;
}

int64_t BbvRuns::WinnowSettingsInOrder() const {
  int64_t count = 0;
  for (size_t s = 0; s < f1_winnow.size(); ++s) count += Mean(f1_winnow[s]) > Mean(f2_winnow[s]);
  return count;
}

bool BbvRuns::BestWinnowIsInOrder() const {
  return Mean(of(kBbvF1Winnow)) > Mean(of(kBbvF2Winnow));
}

absl::Status AddRun(const BbvMaps& maps, BbvTask task, bool with_winnow, BbvRuns& runs) {
  if (with_winnow) task.winnow = WinnowGrid();
  PHIMAP_ASSIGN_OR_RETURN(const BbvErrors errors, ErrorsOnFeatures(maps, task));
  PHIMAP_ASSIGN_OR_RETURN(const double svm, ErrorOfKernelSvm(task));
  runs.f1_svm.push_back(errors.f1_svm);
  runs.f2_svm.push_back(errors.f2_svm);
  runs.svm.push_back(svm);
  if (!with_winnow) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const double without_offset, ErrorOfSvmWithoutOffset(task));
  runs.svm_without_offset.push_back(without_offset);
  for (size_t s = 0; s < task.winnow.size(); ++s) {
    runs.f1_winnow[s].push_back(errors.f1_winnow[s]);
    runs.f2_winnow[s].push_back(errors.f2_winnow[s]);
  }
  return absl::OkStatus();
}

BbvJudged Judged(const BbvMeans& means, uint64_t seed) {
  BbvJudged judged{.mean = Mean(means.runs),
                   .standard_error = StandardError(means.runs),
                   .central = CentralMeans(means.runs, means.printed_runs, seed)};
  // The 1e-9 allows for rounding, because the printed mean and the bounds may be decimal fractions
  // that differ by exactly half a digit.
  const double room = means.half_digit + 1e-9;
  judged.agrees =
      judged.central.low - room <= means.printed && means.printed <= judged.central.high + room;
  return judged;
}

Verdict VerdictOf(const BbvMeans& means, const BbvJudged& judged) {
  const int digits = means.half_digit < 0.0001 ? 4 : 3;
  return {.claim = absl::StrCat(means.of, ": the measured mean error agrees with the printed one"),
          .printed = absl::StrFormat("%.*f", digits, means.printed),
          .measured = absl::StrFormat("%.4f; means of %d from %.*f to %.*f", judged.mean,
                                      means.printed_runs, digits, judged.central.low, digits,
                                      judged.central.high),
          .rule = absl::StrFormat(
              "within the central 99.8 %% of the means of %d of our %d runs, plus or minus half of "
              "the last printed digit, %s",
              means.printed_runs, means.runs.size(), digits == 4 ? ".00005" : ".0005"),
          .agrees = judged.agrees};
}

}  // namespace phimap::lab
