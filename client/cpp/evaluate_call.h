// An Evaluate call. Includes gRPC: for .cc files only.
#ifndef PHIMAP_CLIENT_CPP_EVALUATE_CALL_H_
#define PHIMAP_CLIENT_CPP_EVALUATE_CALL_H_

#include "absl/status/statusor.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/client.h"
#include "client/cpp/revision_memory.h"
#include "phimap/v1/evaluation_service.grpc.pb.h"

namespace phimap::client {

// Implements Client::Evaluate. Blocks: the caller's thread sends the rows while a second thread
// reads events, so that a server error is noticed while rows are still being sent.
absl::StatusOr<v1::Evaluation> CallEvaluate(v1::EvaluationService::StubInterface& stub,
                                            RevisionMemory& revisions,
                                            const EvaluateOptions& options,
                                            LabeledRowSource& source,
                                            const EvaluateObserver& observer, CancelToken& cancel);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_EVALUATE_CALL_H_
