// Converts the first message of an Evaluate call into a checked EvaluationSpec.
#ifndef PHIMAP_SERVER_EVALUATION_EVALUATION_FROM_PROTO_H_
#define PHIMAP_SERVER_EVALUATION_EVALUATION_FROM_PROTO_H_

#include "absl/status/statusor.h"
#include "phimap/v1/evaluation_service.pb.h"
#include "server/evaluate/evaluation_job.h"

namespace phimap {

// Sets unset fields to their defaults. INVALID_ARGUMENT gives the path of the field, beginning at
// the root of the request ("spec.learner", "spec.folds").
absl::StatusOr<EvaluationSpec> EvaluationSpecFromProto(const v1::EvaluationSpec& spec);

}  // namespace phimap

#endif  // PHIMAP_SERVER_EVALUATION_EVALUATION_FROM_PROTO_H_
