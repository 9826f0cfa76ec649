// One inference request and its answer, whichever of the protocol's calls it came by: read, checked
// against a version, laid out, completed.
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
#include "server/inference/inference_outputs.h"
#include "server/registry/version_handle.h"
#include "server/serving/planned_answer.h"

namespace phimap {

// Not thread-safe. The functions are called in the order of their declarations.
class InferenceAnswer {
 public:
  // Type of the answer: a ModelInferResponse, or a ModelStreamInferResponse around one.
  enum class Message { kInfer, kStreamInfer };

  // Checks that the request is consistent. Its rows are viewed, not copied, so it must stay
  // unchanged until Complete.
  absl::Status Read(const inference::ModelInferRequest& request);
  // The version that it names, for the registry.
  const std::string& reference() const { return reference_; }
  const RowsView& rows() const { return rows_; }
  // From the arrival of the request on.
  absl::Duration timeout() const { return timeout_; }
  // Bytes of a row in the answer beside its features.
  int64_t extra_row_bytes() const;

  // Whether `version` suits the request, and if so lays out the message.
  absl::Status Accept(const VersionHandle& version, Message as);

  PlannedAnswer& message() { return message_; }
  // Destination of the features. REQUIRES: the message is allocated. Throws std::bad_alloc.
  char* Features();
  // Writes the other requested outputs for the engine's rows, after the features.
  void Complete(const ExamplesView& seen);

 private:
  bool Wants(InferenceOutput output) const;
  // Lays the answer out: its known fields, then a field for each output.
  void LayOut(const VersionHandle& version, Message as);
  size_t BytesOf(InferenceOutput output, const VersionHandle& version) const;

  std::string id_;
  std::string reference_;
  RowsView rows_;
  absl::Duration timeout_ = absl::InfiniteDuration();
  std::vector<InferenceOutput> outputs_;
  const Residual* residual_ = nullptr;  // the version's, if it is asked for
  PlannedAnswer message_;
  // Places in it; -1: not asked for.
  int features_ = -1;
  int residuals_ = -1;
  // Features that are computed for the residual alone.
  size_t hidden_bytes_ = 0;
  std::unique_ptr<char[]> hidden_features_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_ANSWER_H_
