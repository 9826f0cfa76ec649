#include "server/evaluation/evaluation_from_proto.h"

#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr double kDefaultHeldOut = 0.3;
constexpr double kDefaultConfidence = 0.95;

// Extends the field of a learner's error to its path in the request: "spec.learner.…" for a
// parameter, "spec.learner" for the text as a whole.
absl::Status InLearner(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return status;
  if (!detail->field.empty()) return WithFieldPrefix(status, "spec.learner.");
  return MakeError(status.code(), detail->reason, "spec.learner", status.message(),
                   detail->metadata, detail->retry_delay_ms);
}

}  // namespace

absl::StatusOr<EvaluationSpec> EvaluationSpecFromProto(const v1::EvaluationSpec& fields) {
  EvaluationSpec spec;
  absl::StatusOr<LearnerSpec> learner = LearnerSpec::Parse(fields.learner());
  if (!learner.ok()) return InLearner(learner.status());
  spec.learner = *std::move(learner);
  if (const absl::Status offered = CheckLearner(spec.learner); !offered.ok()) {
    return InLearner(offered);
  }
  if (fields.folds() != 0 && fields.held_out() != 0) {
    return MakeError(absl::StatusCode::kInvalidArgument, "FIELDS_CONTRADICTORY", "spec.held_out",
                     "expected one of folds and held_out, got both");
  }
  spec.options.folds = fields.folds();
  spec.options.held_out = fields.held_out() == 0 ? kDefaultHeldOut : fields.held_out();
  spec.options.confidence = fields.confidence() == 0 ? kDefaultConfidence : fields.confidence();
  spec.options.seed = fields.seed();
  const absl::Status valid = spec.options.Validate();
  if (!valid.ok()) return WithFieldPrefix(valid, "spec.");
  return spec;
}

}  // namespace phimap
