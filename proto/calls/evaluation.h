// The result of an evaluation, as a message, and its errors.
#ifndef PHIMAP_PROTO_CALLS_EVALUATION_H_
#define PHIMAP_PROTO_CALLS_EVALUATION_H_

#include "absl/status/status.h"
#include "core/learn/evaluation_run.h"
#include "phimap/v1/learning_service.pb.h"

namespace phimap {

// Fills in everything but the version.
void EvaluationToProto(const EvaluationSpec& spec, const EvaluationOutcome& outcome,
                       v1::Evaluation* out);

// Extends the field of an error of RunEvaluation to its path in the request.
absl::Status InEvaluateRequest(const absl::Status& status);

}  // namespace phimap

#endif  // PHIMAP_PROTO_CALLS_EVALUATION_H_
