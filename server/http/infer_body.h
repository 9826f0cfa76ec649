// The bodies of the Open Inference Protocol's infer over HTTP: JSON, and behind it, by the binary
// tensor data extension, the bytes of those tensors whose parameters state their number:
//
//   {"inputs":[{"name":"x","shape":[2,3],"datatype":"FP32","parameters":{"binary_data_size":24}}]}…
//
// Numbers in JSON become the bytes of their tensor, so both forms of a tensor are one message.
#ifndef PHIMAP_SERVER_HTTP_INFER_BODY_H_
#define PHIMAP_SERVER_HTTP_INFER_BODY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "inference/inference_service.pb.h"
#include "server/http/http_format.h"

namespace phimap {

// The outputs that a request wants as bytes behind the JSON of the answer.
struct BinaryOutputs {
  // What holds for outputs that are not in `named`.
  bool others = false;
  std::vector<std::pair<std::string, bool>> named;

  bool Has(absl::string_view name) const;
  // Whether an output may come as JSON.
  bool MayLackAny() const;
};

// Bytes of memory that ReadInferBody takes at most, with the message. The first `json_bytes` bytes
// of `body` are JSON; they may be more than the body has.
int64_t InferBodyCost(absl::string_view body, size_t json_bytes);

// Reads `body` into `request`, which has no tensors, and into `binary`. Unknown fields and null are
// passed over. INVALID_ARGUMENT (REQUEST_MALFORMED, LENGTH_MISMATCH) names the tensor. What the
// call checks for itself is not checked here: names, datatypes, shapes and numbers of bytes.
absl::Status ReadInferBody(absl::string_view body, size_t json_bytes,
                           inference::ModelInferRequest& request, BinaryOutputs& binary);

// Bytes of memory that WriteInferBody takes at most for a message of so many bytes on the wire,
// with it.
int64_t InferAnswerCost(int64_t bytes, const BinaryOutputs& binary);

// Writes an answer, out of which the bytes of binary outputs are taken.
HttpAnswer WriteInferBody(inference::ModelInferResponse& response, const BinaryOutputs& binary);

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_INFER_BODY_H_
