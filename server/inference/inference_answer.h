// One inference request and its answer, for all calls of the protocol: it is read, checked against
// a version, laid out, and completed.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_ANSWER_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/plan/examples.h"
#include "core/plan/residual.h"
#include "core/plan/rows.h"
#include "inference/inference_service.pb.h"
#include "server/inference/inference_request.h"
#include "server/registry/version_handle.h"
#include "server/transform/planned_answer.h"

namespace phimap {

// Not thread-safe; one thread at a time. Call the functions in the order in which they are
// declared.
class InferenceAnswer {
 public:
  // Type of the answer: a ModelInferResponse, or a ModelStreamInferResponse around one.
  enum class Message { kInfer, kStreamInfer };

  // Checks the request by itself, without a version. Views its rows without copying them: `request`
  // must live unchanged until Complete.
  absl::Status Read(const inference::ModelInferRequest& request);
  // Reference to the version that the request names, for the registry.
  const std::string& reference() const { return reference_; }
  const RowsView& rows() const { return rows_; }
  // Timeout, counted from the arrival of the request.
  absl::Duration timeout() const { return timeout_; }
  // The part of the version that computes the outputs.
  LivePart part() const;
  // Bytes per row in the answer, at most.
  int64_t row_bytes(const VersionHandle& version) const;

  // Checks that `version` suits the request, and lays out the message if so.
  absl::Status Accept(const VersionHandle& version, Message as);

  PlannedAnswer& message() { return message_; }
  // Allocates the message, and returns the destination of the features. Throws std::bad_alloc.
  char* Allocate(const TransformMetrics& metrics);
  // Writes the other requested outputs. Called after the features were written. `seen` are the rows
  // that the engine got.
  absl::Status Complete(const ExamplesView& seen);

 private:
  bool Wants(InferenceOutput output) const;
  bool WantsAnswers() const;
  // Whether an output is one of the head's, which are computed after the message is planned.
  absl::Status AcceptAnswers(const VersionHandle& version);
  absl::Status CompleteAnswers(const ExamplesView& seen);
  // The answer without its outputs.
  inference::ModelStreamInferResponse Begin(const VersionHandle& version, Message as) const;
  // Lays out the answer: first the fields that are already known, then a field for each output.
  void LayOut(const VersionHandle& version, Message as);
  size_t BytesOf(InferenceOutput output, const VersionHandle& version) const;
  char* Features() const;

  std::string id_;
  std::string reference_;
  RowsView rows_;
  absl::Duration timeout_ = absl::InfiniteDuration();
  std::vector<InferenceOutput> outputs_;
  const Residual* residual_ = nullptr;  // the version's, if requested
  PlannedAnswer message_;
  // Places of the outputs in message_; -1 if not requested.
  int features_ = -1;
  int residuals_ = -1;
  // What the engine computes and the message does not have as it is.
  size_t hidden_bytes_ = 0;
  std::unique_ptr<char[]> hidden_features_;
  // Of an answer by the head.
  VersionHandle version_;
  Message as_ = Message::kInfer;
  const TransformMetrics* metrics_ = nullptr;
};

// Marks the ModelInfer answer in `response` as the only one of its request.
void MarkAsStreamAnswer(inference::ModelStreamInferResponse& response);

// Returns the answer of a stream to a failed request, whose error does not end the stream. Clients
// match it to the request by its id, and otherwise read only the message. So the message begins
// with the reason: "COLUMNS_MISMATCH: inputs[x]…". Long text copied from the request is truncated,
// to keep the answer small. REQUIRES: `error` is not OK. Pure.
inference::ModelStreamInferResponse StreamErrorOf(const absl::Status& error,
                                                  const inference::ModelInferRequest& request);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_ANSWER_H_
