// The first message of an Evaluate → EvaluationSpec, checked.
#ifndef PHIMAP_SERVER_EVALUATION_EVALUATION_FROM_PROTO_H_
#define PHIMAP_SERVER_EVALUATION_EVALUATION_FROM_PROTO_H_

#include "absl/status/statusor.h"
#include "phimap/v1/evaluation_service.pb.h"
#include "server/evaluate/evaluation_job.h"

namespace phimap {

// Unset fields have their defaults. Errors name their field from the request's root on
// ("spec.learner", "spec.folds"): INVALID_ARGUMENT, UNIMPLEMENTED for a learner that this server
// does not have.
absl::StatusOr<EvaluationSpec> EvaluationSpecFromProto(const v1::EvaluationSpec& spec);

}  // namespace phimap

#endif  // PHIMAP_SERVER_EVALUATION_EVALUATION_FROM_PROTO_H_
