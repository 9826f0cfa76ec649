// Tests request parameters, written the way the standard clients of the Open Inference Protocol
// write them: Triton's C++ and Python libraries, KServe's SDK, and MLServer.
#include <string>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "server/inference/inference_request.h"
#include "tests/support/matchers.h"
#include "tests/support/text_proto.h"

namespace phimap::testing {
namespace {

// A parameter in text form.
std::string With(const std::string& name, const std::string& value) {
  return "parameters { key: '" + name + "' value { " + value + " } } ";
}
std::string Request(const std::string& of_request, const std::string& of_input = "",
                    const std::string& of_output = "") {
  return of_request + "inputs { name: 'x' " + of_input + "} outputs { name: 'features' " +
         of_output + "}";
}

// Expects that the parameter of this field is refused, or none if it is empty.
void Expect(const std::string& field, const std::string& request) {
  SCOPED_TRACE(request);
  const absl::Status status = CheckParameters(Parsed<inference::ModelInferRequest>(request));
  if (field.empty()) {
    EXPECT_TRUE(status.ok()) << status;
  } else {
    EXPECT_THAT(status, IsError(StatusCode::kInvalidArgument, "PARAMETER_NOT_SUPPORTED", field,
                                HasSubstr(field + ": ")));
  }
}

TEST(InferenceParametersTest, WhatClientsAlwaysSendIsPassedOver) {
  Expect("", "");
  Expect("", Request(""));
  for (const char* final_response : {"bool_param: false", "bool_param: true"}) {
    Expect("", Request(With("triton_enable_empty_final_response", final_response) +
                       With("priority", "uint64_param: 3") + With("timeout", "int64_param: 1000")));
  }
  Expect("", Request("", With("binary_data_size", "int64_param: 24"),  // KServe's SDK
                     With("binary_data", "bool_param: true")));
  const std::string content = With("content_type", "string_param: 'np'");  // MLServer
  Expect("", Request(With("headers", "string_param: '{}'") + content, content, content));
}

// Triton's libraries send sequence_id, sequence_start and sequence_end together, for a request that
// is part of a sequence.
TEST(InferenceParametersTest, ASequenceIsRefusedAndOneThatIsNoneIsPassedOver) {
  const auto sequence = [](const std::string& id, const std::string& start) {
    return Request(With("sequence_id", id) + With("sequence_start", start) +
                   With("sequence_end", "bool_param: false"));
  };
  for (const char* id : {"int64_param: 7", "uint64_param: 7", "string_param: 'seven'"}) {
    Expect("parameters[sequence_id]", sequence(id, "bool_param: true"));
  }
  for (const char* id :
       {"int64_param: 0", "uint64_param: 0", "string_param: ''", "double_param: 0", ""}) {
    Expect("", sequence(id, "bool_param: false"));
  }
  for (const std::string name : {"sequence_start", "sequence_end"}) {  // also without the id
    Expect("parameters[" + name + "]", Request(With(name, "bool_param: true")));
  }
}

// InferInput.set_shared_memory in Python and InferInput::SetSharedMemory in C++ send three
// parameters in place of the contents. The parameter for the offset is sent only if the offset is
// not 0.
TEST(InferenceParametersTest, TensorsInSharedMemoryAreRefused) {
  const std::string region = With("shared_memory_region", "string_param: 'rows'");
  const std::string size = With("shared_memory_byte_size", "int64_param: 24");
  const std::string input =
      Request("", region + size + With("shared_memory_offset", "int64_param: 8"));
  Expect("inputs[x].parameters[shared_memory_region]", input);
  EXPECT_THAT(std::string(CheckParameters(Parsed<inference::ModelInferRequest>(input)).message()),
              HasSubstr("raw_input_contents"));
  Expect("outputs[features].parameters[shared_memory_region]", Request("", "", region + size));
  // A tensor of another name is named by its place.
  Expect("inputs[1].parameters[shared_memory_region]",
         Request("") + "inputs { name: 'a name]\\nthat is none' " + region + "}");
}

// InferRequestedOutput(class_count=3) sends this parameter. With a count of 0, the parameter is not
// sent.
TEST(InferenceParametersTest, ClassesAreRefused) {
  const std::string residual = Request("") + "outputs { name: 'residual' ";
  Expect("outputs[residual].parameters[classification]",
         residual + With("classification", "int64_param: 3") + "}");
  Expect("", residual + With("classification", "int64_param: 0") + "}");
}

TEST(InferenceParametersTest, EachMeansSomethingInItsOwnPlaceOnly) {
  const std::string classes = With("classification", "int64_param: 3");
  Expect("", Request(classes + With("shared_memory_region", "string_param: 'rows'"),
                     classes + With("sequence_id", "int64_param: 3")));
}

}  // namespace
}  // namespace phimap::testing
