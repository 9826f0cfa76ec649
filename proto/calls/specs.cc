#include "proto/calls/specs.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/remote_kernel.h"
#include "core/learn/learner_type.h"
#include "core/mapping/spec/family.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

constexpr double kDefaultHeldOut = 0.3;
constexpr double kDefaultConfidence = 0.95;

// Returns an error of a parser with its path in the request: that of the parameter, which is
// directly under the spec's path, or that of `text_field` if the error names no parameter, as
// errors of syntax do.
absl::Status InText(absl::string_view prefix, absl::string_view text_field,
                    const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value() || !detail->field.empty()) return WithFieldPrefix(status, prefix);
  return MakeError(status.code(), detail->reason, absl::StrCat(prefix, text_field),
                   status.message(), detail->metadata);
}

absl::StatusOr<KernelExpression> KernelFromProto(const std::string& text, const Family& family) {
  if (text.empty() && family.default_kernel.empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldInvalid, "kernel",
                     absl::StrCat("expected a kernel; ", family.name, " takes ", family.kernels));
  }
  return KernelExpression::Parse(text.empty() ? family.default_kernel : text);
}

// Extends the field of a learner's error to its path in a request: "spec.C" for a parameter,
// "spec.learner" for the text as a whole.
absl::Status InLearner(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return status;
  if (!detail->field.empty()) return WithFieldPrefix(status, "spec.");
  return MakeError(status.code(), detail->reason, "spec.learner", status.message(),
                   detail->metadata, detail->retry_delay_ms);
}

absl::StatusOr<std::optional<Part>> PartFromProto(int part, int64_t row) {
  switch (part) {
    case v1::TRAINING_PART_UNSPECIFIED:
      return std::nullopt;
    case v1::TRAINING_PART_TRAIN:
      return Part::kTrain;
    case v1::TRAINING_PART_VALIDATE:
      return Part::kValidate;
    case v1::TRAINING_PART_CALIBRATE_LINK:
      return Part::kCalibrateLink;
    case v1::TRAINING_PART_CALIBRATE_SETS:
      return Part::kCalibrateSets;
    case v1::TRAINING_PART_TEST:
      return Part::kTest;
    default:
      return MakeError(Code::kInvalidArgument, reason::kFieldOutOfRange,
                       absl::StrCat("parts[", row, "]"),
                       absl::StrCat("expected a TrainingPart, 0..5, got ", part));
  }
}

// Returns LENGTH_MISMATCH unless a list has one entry for each row, or none and may.
absl::Status CheckCount(absl::string_view field, int count, int64_t rows, bool may_lack) {
  if (count == rows || (may_lack && count == 0)) return absl::OkStatus();
  return MakeError(Code::kInvalidArgument, reason::kLengthMismatch, field,
                   absl::StrCat("expected one for each of ", CountOf(rows, "row"), ", got ", count),
                   {{"expected", absl::StrCat(rows)}, {"actual", absl::StrCat(count)}});
}

}  // namespace

absl::StatusOr<BuildSpec> BuildSpecFromText(const std::string& text, const v1::BuildSpec& fields,
                                            absl::string_view prefix) {
  BuildSpec spec;
  absl::StatusOr<MappingSpec> mapping = MappingSpec::Parse(text);
  if (!mapping.ok()) return InText(prefix, "spec", mapping.status());
  spec.mapping = *std::move(mapping);
  absl::StatusOr<std::optional<RemoteKernel>> remote = RemoteKernel::Parse(fields.kernel());
  if (!remote.ok()) return InText(prefix, "kernel", remote.status());
  spec.remote = *std::move(remote);
  if (!spec.remote.has_value()) {
    absl::StatusOr<KernelExpression> kernel = KernelFromProto(fields.kernel(), *spec.mapping.kind);
    if (!kernel.ok()) return InText(prefix, "kernel", kernel.status());
    spec.kernel = *std::move(kernel);
  }
  spec.standardize = fields.standardize();
  spec.seed = fields.seed();
  spec.column_names.assign(fields.column_names().begin(), fields.column_names().end());
  if (absl::Status valid = spec.Validate(); !valid.ok()) {
    return WithFieldPrefix(valid, prefix);
  }
  return spec;
}

absl::StatusOr<TrainingSpec> TrainingSpecFromProto(const v1::TrainingSpec& fields) {
  TrainingSpec spec;
  absl::StatusOr<LearnerSpec> parsed = LearnerSpec::Parse(
      fields.learner().empty() ? DefaultHeadLearnerType().name : fields.learner());
  if (!parsed.ok()) return InLearner(parsed.status());
  spec.learner = *std::move(parsed);
  spec.seed = fields.seed();
  if (!v1::HeadTask_IsValid(fields.task())) {
    return MakeError(Code::kInvalidArgument, reason::kFieldOutOfRange, "spec.task",
                     absl::StrCat("expected HEAD_TASK_CLASSES or HEAD_TASK_NUMBERS, got ",
                                  static_cast<int>(fields.task())));
  }
  if (fields.task() == v1::HEAD_TASK_CLASSES) spec.task = HeadTask::kClasses;
  if (fields.task() == v1::HEAD_TASK_NUMBERS) spec.task = HeadTask::kNumbers;
  if (const absl::Status suits = CheckTrainsHeads(spec); !suits.ok()) return InLearner(suits);
  return spec;
}

absl::StatusOr<FeaturesOrder> FeaturesFromProto(const v1::TrainingSpec& fields) {
  const auto contradictory = [](absl::string_view field, absl::string_view why) {
    return MakeError(Code::kInvalidArgument, reason::kFieldsContradictory, field, why);
  };
  if (!fields.reference().empty()) {
    return contradictory("spec.build", "expected one of reference and build, got both");
  }
  if (!fields.expected_digest().empty() || fields.column_names_hash() != 0) {
    return contradictory("spec.build",
                         "expected_digest and column_names_hash are of a version, and with build "
                         "there is none yet");
  }
  const v1::BuildSpec& build = fields.build();
  if (!build.build_id().empty() || build.has_ttl()) {
    return contradictory("spec.build",
                         "build_id and ttl are those of the training: expected them in spec");
  }
  FeaturesOrder order;
  order.learn_scales = fields.learn_scales();
  if (fields.has_tuning()) {
    if (!build.spec().empty() || !build.kernel().empty() || build.standardize() ||
        fields.learn_scales()) {
      return contradictory("spec.tuning",
                           "tuning chooses spec, kernel, standardize and scales: expected them "
                           "unset");
    }
    TuningOptions& tuning = order.tuning.emplace();
    if (fields.tuning().has_budget()) {
      tuning.budget = absl::Seconds(fields.tuning().budget().seconds()) +
                      absl::Nanoseconds(fields.tuning().budget().nanos());
    }
    if (fields.tuning().max_landmarks() != 0) {
      tuning.max_landmarks = fields.tuning().max_landmarks();
    }
    tuning.keep_learner = !fields.learner().empty();
    order.spec = SpecToTune();
    order.spec.seed = build.seed();
    order.spec.column_names.assign(build.column_names().begin(), build.column_names().end());
    if (const absl::Status valid = order.spec.Validate(); !valid.ok()) {
      return WithFieldPrefix(valid, "spec.build.");
    }
  } else {
    PHIMAP_ASSIGN_OR_RETURN(order.spec, BuildSpecFromText(build.spec(), build, "spec.build."));
  }
  if (const absl::Status valid = order.Validate(); !valid.ok()) {
    return WithFieldPrefix(valid, order.tuning.has_value() ? "spec.tuning." : "spec.build.");
  }
  return order;
}

absl::StatusOr<TrainingBlock> BlockFromProto(const v1::TrainingExamples& from,
                                             const ExamplesView& examples) {
  TrainingBlock block;
  block.rows = examples;
  const int64_t rows = examples.rows();
  PHIMAP_RETURN_IF_ERROR(CheckCount("labels", from.labels_size(), rows, false));
  PHIMAP_RETURN_IF_ERROR(CheckCount("weights", from.weights_size(), rows, true));
  PHIMAP_RETURN_IF_ERROR(CheckCount("groups", from.groups_size(), rows, true));
  PHIMAP_RETURN_IF_ERROR(CheckCount("parts", from.parts_size(), rows, true));
  block.labels.assign(from.labels().begin(), from.labels().end());
  block.weights = absl::MakeConstSpan(from.weights().data(), from.weights().size());
  block.groups.assign(from.groups().begin(), from.groups().end());
  for (int i = 0; i < from.parts_size(); ++i) {
    PHIMAP_ASSIGN_OR_RETURN(const std::optional<Part> part, PartFromProto(from.parts(i), i));
    block.parts.push_back(part);
  }
  return block;
}

absl::StatusOr<EvaluationSpec> EvaluationSpecFromProto(const v1::EvaluationSpec& fields) {
  EvaluationSpec spec;
  absl::StatusOr<LearnerSpec> learner = LearnerSpec::Parse(fields.learner());
  if (!learner.ok()) return InLearner(learner.status());
  spec.learner = *std::move(learner);
  if (const absl::Status offered = CheckLearner(spec.learner); !offered.ok()) {
    return InLearner(offered);
  }
  if (const absl::Status chosen = CheckNothingToChoose(spec.learner); !chosen.ok()) {
    return InLearner(chosen);
  }
  if (fields.folds() != 0 && fields.held_out() != 0) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kFieldsContradictory,
                     "spec.held_out", "expected one of folds and held_out, got both");
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
