// Tests request parameters, written the way the standard clients of the Open Inference Protocol
// write them: Triton's C++ and Python libraries, KServe's SDK, and MLServer.
#include <string>

#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/inference/inference_request.h"

namespace phimap {
namespace {

using inference::InferParameter;
using ::testing::HasSubstr;

// Requests one output "features" for one input "x", as every client does.
inference::ModelInferRequest PlainRequest() {
  inference::ModelInferRequest request;
  request.set_model_name("letter");
  request.add_inputs()->set_name("x");
  request.add_outputs()->set_name("features");
  return request;
}

InferParameter Bool(bool value) {
  InferParameter parameter;
  parameter.set_bool_param(value);
  return parameter;
}
InferParameter Int64(int64_t value) {
  InferParameter parameter;
  parameter.set_int64_param(value);
  return parameter;
}
InferParameter Uint64(uint64_t value) {
  InferParameter parameter;
  parameter.set_uint64_param(value);
  return parameter;
}
InferParameter Double(double value) {
  InferParameter parameter;
  parameter.set_double_param(value);
  return parameter;
}
InferParameter Text(const std::string& value) {
  InferParameter parameter;
  parameter.set_string_param(value);
  return parameter;
}

// Returns the field of the error for a refused parameter, or "" if nothing is refused. No other
// error may occur.
std::string RefusedField(const inference::ModelInferRequest& request) {
  const absl::Status status = CheckParameters(request);
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const ErrorDetail detail = DetailOf(status).value_or(ErrorDetail());
  EXPECT_EQ(detail.reason, "PARAMETER_NOT_SUPPORTED");
  EXPECT_THAT(std::string(status.message()), HasSubstr(detail.field + ": "));
  return detail.field;
}

TEST(InferenceParametersTest, ARequestWithoutAnyIsFine) {
  EXPECT_TRUE(CheckParameters(PlainRequest()).ok());
  EXPECT_TRUE(CheckParameters(inference::ModelInferRequest()).ok());
}

TEST(InferenceParametersTest, WhatTritonsClientsAlwaysSendIsPassedOver) {
  inference::ModelInferRequest request = PlainRequest();
  (*request.mutable_parameters())["triton_enable_empty_final_response"] = Bool(false);
  EXPECT_EQ(RefusedField(request), "");
  (*request.mutable_parameters())["triton_enable_empty_final_response"] = Bool(true);
  (*request.mutable_parameters())["priority"] = Uint64(3);
  (*request.mutable_parameters())["timeout"] = Int64(1000);
  EXPECT_EQ(RefusedField(request), "");
}

TEST(InferenceParametersTest, WhatKservesSdkSendsIsPassedOver) {
  inference::ModelInferRequest request = PlainRequest();
  (*request.mutable_inputs(0)->mutable_parameters())["binary_data_size"] = Int64(24);
  (*request.mutable_outputs(0)->mutable_parameters())["binary_data"] = Bool(true);
  EXPECT_EQ(RefusedField(request), "");
}

TEST(InferenceParametersTest, WhatMlserverSendsIsPassedOver) {
  inference::ModelInferRequest request = PlainRequest();
  (*request.mutable_parameters())["content_type"] = Text("np");
  (*request.mutable_parameters())["headers"] = Text("{}");
  (*request.mutable_inputs(0)->mutable_parameters())["content_type"] = Text("np");
  (*request.mutable_outputs(0)->mutable_parameters())["content_type"] = Text("np");
  EXPECT_EQ(RefusedField(request), "");
}

// Triton's libraries send sequence_id, sequence_start and sequence_end together, for a request that
// is part of a sequence.
TEST(InferenceParametersTest, ASequenceIsRefused) {
  for (const InferParameter& id : {Int64(7), Uint64(7), Text("seven")}) {
    inference::ModelInferRequest request = PlainRequest();
    (*request.mutable_parameters())["sequence_id"] = id;
    (*request.mutable_parameters())["sequence_start"] = Bool(true);
    (*request.mutable_parameters())["sequence_end"] = Bool(false);
    EXPECT_EQ(RefusedField(request), "parameters[sequence_id]");
  }
}

TEST(InferenceParametersTest, TheEndsOfASequenceAreRefusedWithoutItsIdToo) {
  for (const char* name : {"sequence_start", "sequence_end"}) {
    inference::ModelInferRequest request = PlainRequest();
    (*request.mutable_parameters())[name] = Bool(true);
    EXPECT_EQ(RefusedField(request), std::string("parameters[") + name + "]");
  }
}

TEST(InferenceParametersTest, ASequenceThatIsNoneIsPassedOver) {
  for (const InferParameter& id : {Int64(0), Uint64(0), Text(""), Double(0), InferParameter()}) {
    inference::ModelInferRequest request = PlainRequest();
    (*request.mutable_parameters())["sequence_id"] = id;
    (*request.mutable_parameters())["sequence_start"] = Bool(false);
    (*request.mutable_parameters())["sequence_end"] = Bool(false);
    EXPECT_EQ(RefusedField(request), "") << id.ShortDebugString();
  }
}

// InferInput.set_shared_memory in Python and InferInput::SetSharedMemory in C++ send three
// parameters in place of the contents. The parameter for the offset is sent only if the offset is
// not 0.
TEST(InferenceParametersTest, AnInputInSharedMemoryIsRefused) {
  inference::ModelInferRequest request = PlainRequest();
  auto& parameters = *request.mutable_inputs(0)->mutable_parameters();
  parameters["shared_memory_region"] = Text("rows");
  parameters["shared_memory_byte_size"] = Int64(24);
  parameters["shared_memory_offset"] = Int64(8);
  EXPECT_EQ(RefusedField(request), "inputs[x].parameters[shared_memory_region]");
  EXPECT_THAT(std::string(CheckParameters(request).message()), HasSubstr("raw_input_contents"));
}

TEST(InferenceParametersTest, AnOutputInSharedMemoryIsRefused) {
  inference::ModelInferRequest request = PlainRequest();
  auto& parameters = *request.mutable_outputs(0)->mutable_parameters();
  parameters["shared_memory_region"] = Text("features");
  parameters["shared_memory_byte_size"] = Int64(4096);
  EXPECT_EQ(RefusedField(request), "outputs[features].parameters[shared_memory_region]");
}

// InferRequestedOutput(class_count=3) sends this parameter. With a count of 0, the parameter is not
// sent.
TEST(InferenceParametersTest, ClassesAreRefused) {
  inference::ModelInferRequest request = PlainRequest();
  request.add_outputs()->set_name("residual");
  (*request.mutable_outputs(1)->mutable_parameters())["classification"] = Int64(3);
  EXPECT_EQ(RefusedField(request), "outputs[residual].parameters[classification]");
  (*request.mutable_outputs(1)->mutable_parameters())["classification"] = Int64(0);
  EXPECT_EQ(RefusedField(request), "");
}

TEST(InferenceParametersTest, EachMeansSomethingInItsOwnPlaceOnly) {
  inference::ModelInferRequest request = PlainRequest();
  (*request.mutable_parameters())["classification"] = Int64(3);
  (*request.mutable_parameters())["shared_memory_region"] = Text("rows");
  (*request.mutable_inputs(0)->mutable_parameters())["sequence_id"] = Int64(3);
  (*request.mutable_inputs(0)->mutable_parameters())["classification"] = Int64(3);
  EXPECT_EQ(RefusedField(request), "");
}

TEST(InferenceParametersTest, ATensorOfAnotherNameIsNamedByItsPlace) {
  inference::ModelInferRequest request = PlainRequest();
  request.add_inputs()->set_name("a name]\nthat is none");
  (*request.mutable_inputs(1)->mutable_parameters())["shared_memory_region"] = Text("rows");
  EXPECT_EQ(RefusedField(request), "inputs[1].parameters[shared_memory_region]");
}

}  // namespace
}  // namespace phimap
