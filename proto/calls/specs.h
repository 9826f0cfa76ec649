// What a build, a training or an evaluation is asked to do, from the messages of a request to the
// core's types. Errors are INVALID_ARGUMENT, unless stated, with the path of their field from the
// root of the request ("spec.landmarks", "spec.learner", "parts[3]").
#ifndef PHIMAP_PROTO_CALLS_SPECS_H_
#define PHIMAP_PROTO_CALLS_SPECS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/learn/evaluation_run.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/examples.h"
#include "core/train/training.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap {

// Returns the spec with `text` as that of the mapping, and all else from `fields`; it passes
// Validate(). Fields of errors begin with `prefix`: with the name of a parameter of a text, or with
// "spec" or "kernel" for its syntax.
absl::StatusOr<BuildSpec> BuildSpecFromText(const std::string& text, const v1::BuildSpec& fields,
                                            absl::string_view prefix = "spec.");

absl::StatusOr<TrainingSpec> TrainingSpecFromProto(const v1::TrainingSpec& fields);
// Returns what a training is to build. REQUIRES: fields.has_build().
absl::StatusOr<FeaturesOrder> FeaturesFromProto(const v1::TrainingSpec& fields);
// Returns `rows` with what `from` says of each; from.examples() is not read. The result points into
// `from`.
absl::StatusOr<TrainingBlock> BlockFromProto(const v1::TrainingExamples& from,
                                             const ExamplesView& rows);

// Sets unset fields to their defaults.
absl::StatusOr<EvaluationSpec> EvaluationSpecFromProto(const v1::EvaluationSpec& fields);

}  // namespace phimap

#endif  // PHIMAP_PROTO_CALLS_SPECS_H_
