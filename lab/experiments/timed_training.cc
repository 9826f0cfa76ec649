#include "lab/experiments/timed_training.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_expression.h"
#include "core/learn/learner_spec.h"
#include "core/status/status_macros.h"
#include "lab/experiments/cpu_time.h"

namespace phimap::lab {
namespace {

// Number of rows from which a mapping without landmarks is built. The rows only determine the mean.
constexpr int64_t kStreamRows = 40;

absl::StatusOr<std::shared_ptr<const EngineRowMap>> MapOf(SgdFeatures features,
                                                          const SgdSetting& setting,
                                                          const Matrix<double>& rows,
                                                          uint64_t seed) {
  const std::string mapping =
      features == SgdFeatures::kMonomials
          ? "polynomial(dimensions=16384, serving_type=float64)"
          : absl::StrCat("fourier(dimensions=", setting.dimensions, ", serving_type=float64)");
  const int64_t count = std::min(rows.rows(), kStreamRows);
  PHIMAP_ASSIGN_OR_RETURN(BuiltMap map,
                          BuiltMap::Build({.mapping = mapping, .kernel = setting.kernel},
                                          rows.view().Rows(0, count), seed));
  return std::make_shared<const EngineRowMap>(std::move(map));
}

}  // namespace

absl::StatusOr<TimedTraining> TimedTraining::Make(const SgdApproach& approach,
                                                  const SgdSetting& setting, Examples examples,
                                                  uint64_t seed) {
  TimedTraining training;
  training.examples_ = std::move(examples);
  if (approach.features != SgdFeatures::kNone) {
    PHIMAP_ASSIGN_OR_RETURN(training.map_,
                            MapOf(approach.features, setting, training.examples_.rows, seed));
  }
  PHIMAP_ASSIGN_OR_RETURN(
      const LearnerSpec spec,
      LearnerSpec::Parse(absl::StrCat("kernel_sgd(strategy=", approach.strategy,
                                      ", rate=", setting.rate, ", epochs=", setting.epochs, ")")));
  PHIMAP_ASSIGN_OR_RETURN(KernelExpression kernel, KernelExpression::Parse(setting.kernel));
  PHIMAP_ASSIGN_OR_RETURN(training.learner_,
                          MakeLearner(spec, {.kernel = std::move(kernel), .map = training.map_}));
  return training;
}

absl::StatusOr<std::unique_ptr<const Model>> TimedTraining::Train(uint64_t seed) {
  const double start = ThreadCpuSeconds();
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<const Model> model,
                          learner_->Train(examples_.set(), seed, NeverStop));
  seconds_ = std::min(seconds_, ThreadCpuSeconds() - start);
  return model;
}

}  // namespace phimap::lab
