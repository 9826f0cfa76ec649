// Converts the result of an evaluation to its message.
#ifndef PHIMAP_SERVER_EVALUATION_EVALUATION_TO_PROTO_H_
#define PHIMAP_SERVER_EVALUATION_EVALUATION_TO_PROTO_H_

#include "phimap/v1/evaluation_service.pb.h"
#include "server/evaluate/evaluation_job.h"

namespace phimap {

// Fills in everything but the version.
void EvaluationToProto(const EvaluationSpec& spec, const EvaluationOutcome& outcome,
                       v1::Evaluation* out);

}  // namespace phimap

#endif  // PHIMAP_SERVER_EVALUATION_EVALUATION_TO_PROTO_H_
