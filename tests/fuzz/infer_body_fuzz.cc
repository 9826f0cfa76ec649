// Checks that a body of the Open Inference Protocol over HTTP is read or refused, whatever it is,
// within the memory that it was said to cost. The first two bytes of an input are the length of the
// JSON, and the rest is the body.

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/status/check.h"
#include "server/http/infer_body.h"
#include "tests/server/rpc/parse_memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t json_bytes = size_t{data[0]} | size_t{data[1]} << 8;
  const absl::string_view body(reinterpret_cast<const char*>(data) + 2, size - 2);
  const int64_t before = phimap::testing::HeldBytes();
  phimap::testing::ResetPeakBytes();
  inference::ModelInferRequest request;
  phimap::BinaryOutputs binary;
  const absl::Status status = phimap::ReadInferBody(body, json_bytes, request, binary);
  PHIMAP_CHECK(phimap::testing::PeakBytes() - before <= phimap::InferBodyCost(body, json_bytes));
  PHIMAP_CHECK(status.ok() || absl::IsInvalidArgument(status));
  if (!status.ok()) return 0;
  // An answer with what was sent has the same bytes.
  inference::ModelInferResponse response;
  for (const std::string& bytes : request.raw_input_contents()) {
    auto& output = *response.add_outputs();
    output.set_name(request.inputs(0).name());
    output.set_datatype(request.inputs(0).datatype());
    response.add_raw_output_contents(bytes);
  }
  PHIMAP_CHECK(!phimap::WriteInferBody(response, binary).body.empty());
  return 0;
}
