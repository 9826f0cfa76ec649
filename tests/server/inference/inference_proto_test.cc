// Checks that the messages have the same wire format as those of the public Open Inference
// Protocol. Every field must have the name, number, type and label that the specification of the
// protocol lists.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"
#include "inference/inference_service.pb.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Describes a field like a line of a .proto file; maps are shown as map<key, value>.
std::string LineOf(const FieldDescriptor& field) {
  std::string type = field.type_name();
  if (field.message_type() != nullptr) type = field.message_type()->full_name();
  if (field.enum_type() != nullptr) type = field.enum_type()->full_name();
  if (field.is_map()) {
    const Descriptor& entry = *field.message_type();
    const FieldDescriptor& value = *entry.map_value();
    type = absl::StrCat(
        "map<", entry.map_key()->type_name(), ", ",
        value.message_type() == nullptr ? value.type_name() : value.message_type()->full_name(),
        ">");
  } else if (field.is_repeated()) {
    type = absl::StrCat("repeated ", type, field.is_packed() ? " packed" : "");
  }
  const std::string oneof = field.real_containing_oneof() == nullptr
                                ? ""
                                : absl::StrCat(" of ", field.real_containing_oneof()->name());
  return absl::StrCat(field.name(), " = ", field.number(), ": ", type, oneof);
}

std::vector<std::string> LinesOf(const Descriptor& message) {
  std::vector<std::string> lines;
  for (int i = 0; i < message.field_count(); ++i) lines.push_back(LineOf(*message.field(i)));
  return lines;
}

struct Message {
  const char* name;
  std::vector<std::string> fields;
};

const Message kMessages[] = {
    {"ServerLiveRequest", {}},
    {"ServerLiveResponse", {"live = 1: bool"}},
    {"ServerReadyRequest", {}},
    {"ServerReadyResponse", {"ready = 1: bool"}},
    {"ModelReadyRequest", {"name = 1: string", "version = 2: string"}},
    {"ModelReadyResponse", {"ready = 1: bool"}},
    {"ServerMetadataRequest", {}},
    {"ServerMetadataResponse",
     {"name = 1: string", "version = 2: string", "extensions = 3: repeated string"}},
    {"ModelMetadataRequest", {"name = 1: string", "version = 2: string"}},
    {"ModelMetadataResponse",
     {"name = 1: string", "versions = 2: repeated string", "platform = 3: string",
      "inputs = 4: repeated inference.ModelMetadataResponse.TensorMetadata",
      "outputs = 5: repeated inference.ModelMetadataResponse.TensorMetadata",
      "properties = 6: map<string, string>"}},
    {"ModelMetadataResponse.TensorMetadata",
     {"name = 1: string", "datatype = 2: string", "shape = 3: repeated int64 packed"}},
    {"ModelInferRequest",
     {"model_name = 1: string", "model_version = 2: string", "id = 3: string",
      "parameters = 4: map<string, inference.InferParameter>",
      "inputs = 5: repeated inference.ModelInferRequest.InferInputTensor",
      "outputs = 6: repeated inference.ModelInferRequest.InferRequestedOutputTensor",
      "raw_input_contents = 7: repeated bytes"}},
    {"ModelInferRequest.InferInputTensor",
     {"name = 1: string", "datatype = 2: string", "shape = 3: repeated int64 packed",
      "parameters = 4: map<string, inference.InferParameter>",
      "contents = 5: inference.InferTensorContents"}},
    {"ModelInferRequest.InferRequestedOutputTensor",
     {"name = 1: string", "parameters = 2: map<string, inference.InferParameter>"}},
    {"ModelInferResponse",
     {"model_name = 1: string", "model_version = 2: string", "id = 3: string",
      "parameters = 4: map<string, inference.InferParameter>",
      "outputs = 5: repeated inference.ModelInferResponse.InferOutputTensor",
      "raw_output_contents = 6: repeated bytes"}},
    {"ModelInferResponse.InferOutputTensor",
     {"name = 1: string", "datatype = 2: string", "shape = 3: repeated int64 packed",
      "parameters = 4: map<string, inference.InferParameter>",
      "contents = 5: inference.InferTensorContents"}},
    {"InferParameter",
     {"bool_param = 1: bool of parameter_choice", "int64_param = 2: int64 of parameter_choice",
      "string_param = 3: string of parameter_choice",
      "double_param = 4: double of parameter_choice",
      "uint64_param = 5: uint64 of parameter_choice"}},
    {"InferTensorContents",
     {"bool_contents = 1: repeated bool packed", "int_contents = 2: repeated int32 packed",
      "int64_contents = 3: repeated int64 packed", "uint_contents = 4: repeated uint32 packed",
      "uint64_contents = 5: repeated uint64 packed", "fp32_contents = 6: repeated float packed",
      "fp64_contents = 7: repeated double packed", "bytes_contents = 8: repeated bytes"}},
    // The messages from here on are Triton's extensions. The public ModelConfig, ModelInput,
    // ModelOutput, ModelInstanceGroup and ModelDynamicBatching have more fields.
    {"ModelStreamInferResponse",
     {"error_message = 1: string", "infer_response = 2: inference.ModelInferResponse"}},
    {"ModelConfigRequest", {"name = 1: string", "version = 2: string"}},
    {"ModelConfigResponse", {"config = 1: inference.ModelConfig"}},
    {"ModelConfig",
     {"name = 1: string", "platform = 2: string",
      "version_policy = 3: inference.ModelVersionPolicy", "max_batch_size = 4: int32",
      "input = 5: repeated inference.ModelInput", "output = 6: repeated inference.ModelOutput",
      "instance_group = 7: repeated inference.ModelInstanceGroup",
      "dynamic_batching = 11: inference.ModelDynamicBatching of scheduling_choice",
      "parameters = 14: map<string, inference.ModelParameter>", "backend = 17: string",
      "model_transaction_policy = 19: inference.ModelTransactionPolicy"}},
    {"ModelInput",
     {"name = 1: string", "data_type = 2: inference.DataType", "dims = 4: repeated int64 packed"}},
    {"ModelOutput",
     {"name = 1: string", "data_type = 2: inference.DataType", "dims = 3: repeated int64 packed"}},
    {"ModelVersionPolicy",
     {"latest = 1: inference.ModelVersionPolicy.Latest of policy_choice",
      "all = 2: inference.ModelVersionPolicy.All of policy_choice",
      "specific = 3: inference.ModelVersionPolicy.Specific of policy_choice"}},
    {"ModelVersionPolicy.Latest", {"num_versions = 1: uint32"}},
    {"ModelVersionPolicy.All", {}},
    {"ModelVersionPolicy.Specific", {"versions = 1: repeated int64 packed"}},
    {"ModelInstanceGroup",
     {"name = 1: string", "count = 2: int32", "kind = 4: inference.ModelInstanceGroup.Kind"}},
    {"ModelDynamicBatching",
     {"preferred_batch_size = 1: repeated int32 packed",
      "max_queue_delay_microseconds = 2: uint64"}},
    {"ModelParameter", {"string_value = 1: string"}},
    {"ModelTransactionPolicy", {"decoupled = 1: bool"}},
    {"ModelStatisticsRequest", {"name = 1: string", "version = 2: string"}},
    {"ModelStatisticsResponse", {"model_stats = 1: repeated inference.ModelStatistics"}},
    {"StatisticDuration", {"count = 1: uint64", "ns = 2: uint64"}},
    {"ModelStatistics",
     {"name = 1: string", "version = 2: string", "last_inference = 3: uint64",
      "inference_count = 4: uint64", "execution_count = 5: uint64",
      "inference_stats = 6: inference.InferStatistics",
      "batch_stats = 7: repeated inference.InferBatchStatistics",
      "memory_usage = 8: repeated inference.MemoryUsage",
      "response_stats = 9: map<string, inference.InferResponseStatistics>"}},
    {"InferStatistics",
     {"success = 1: inference.StatisticDuration", "fail = 2: inference.StatisticDuration",
      "queue = 3: inference.StatisticDuration", "compute_input = 4: inference.StatisticDuration",
      "compute_infer = 5: inference.StatisticDuration",
      "compute_output = 6: inference.StatisticDuration",
      "cache_hit = 7: inference.StatisticDuration", "cache_miss = 8: inference.StatisticDuration"}},
    {"InferResponseStatistics",
     {"compute_infer = 1: inference.StatisticDuration",
      "compute_output = 2: inference.StatisticDuration", "success = 3: inference.StatisticDuration",
      "fail = 4: inference.StatisticDuration", "empty_response = 5: inference.StatisticDuration",
      "cancel = 6: inference.StatisticDuration"}},
    {"InferBatchStatistics",
     {"batch_size = 1: uint64", "compute_input = 2: inference.StatisticDuration",
      "compute_infer = 3: inference.StatisticDuration",
      "compute_output = 4: inference.StatisticDuration"}},
    {"MemoryUsage", {"type = 1: string", "id = 2: int64", "byte_size = 3: uint64"}},
    {"RepositoryIndexRequest", {"repository_name = 1: string", "ready = 2: bool"}},
    {"RepositoryIndexResponse",
     {"models = 1: repeated inference.RepositoryIndexResponse.ModelIndex"}},
    {"RepositoryIndexResponse.ModelIndex",
     {"name = 1: string", "version = 2: string", "state = 3: string", "reason = 4: string"}},
};

const google::protobuf::FileDescriptor& File() {
  return *inference::ModelInferRequest::descriptor()->file();
}

TEST(InferenceProtoTest, EveryFieldHasThePublicNameNumberAndType) {
  for (const Message& message : kMessages) {
    SCOPED_TRACE(message.name);
    const Descriptor* const found =
        File().pool()->FindMessageTypeByName(absl::StrCat("inference.", message.name));
    ASSERT_NE(found, nullptr);
    EXPECT_THAT(LinesOf(*found), ElementsAreArray(message.fields));
  }
}

// Counts a message and the messages nested in it, without the map entries that protobuf generates.
int CountMessages(const Descriptor& message) {
  int count = message.options().map_entry() ? 0 : 1;
  for (int i = 0; i < message.nested_type_count(); ++i) {
    count += CountMessages(*message.nested_type(i));
  }
  return count;
}

TEST(InferenceProtoTest, ThereIsNoOtherMessage) {
  int count = 0;
  for (int i = 0; i < File().message_type_count(); ++i)
    count += CountMessages(*File().message_type(i));
  EXPECT_EQ(count, std::size(kMessages));
}

TEST(InferenceProtoTest, TheServiceHasThePublicNameAndItsMethods) {
  const google::protobuf::ServiceDescriptor* const service =
      File().pool()->FindServiceByName("inference.GRPCInferenceService");
  ASSERT_NE(service, nullptr);
  std::vector<std::string> methods;
  for (int i = 0; i < service->method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service->method(i);
    const bool stream = method.name() == "ModelStreamInfer";
    EXPECT_EQ(method.client_streaming(), stream) << method.name();
    EXPECT_EQ(method.server_streaming(), stream) << method.name();
    EXPECT_EQ(method.input_type()->full_name(),
              absl::StrCat("inference.", stream ? "ModelInfer" : method.name().c_str(), "Request"));
    EXPECT_EQ(method.output_type()->full_name(),
              absl::StrCat("inference.", method.name(), "Response"));
    methods.push_back(method.name());
  }
  EXPECT_THAT(methods,
              UnorderedElementsAre("ServerLive", "ServerReady", "ModelReady", "ServerMetadata",
                                   "ModelMetadata", "ModelInfer", "ModelStreamInfer", "ModelConfig",
                                   "ModelStatistics", "RepositoryIndex"));
}

TEST(InferenceProtoTest, EveryDatatypeHasThePublicNumber) {
  const google::protobuf::EnumDescriptor* const type =
      File().pool()->FindEnumTypeByName("inference.DataType");
  ASSERT_NE(type, nullptr);
  std::vector<std::string> values;
  for (int i = 0; i < type->value_count(); ++i) {
    EXPECT_EQ(type->value(i)->number(), i);
    values.push_back(type->value(i)->name());
  }
  EXPECT_THAT(values,
              ElementsAre("TYPE_INVALID", "TYPE_BOOL", "TYPE_UINT8", "TYPE_UINT16", "TYPE_UINT32",
                          "TYPE_UINT64", "TYPE_INT8", "TYPE_INT16", "TYPE_INT32", "TYPE_INT64",
                          "TYPE_FP16", "TYPE_FP32", "TYPE_FP64", "TYPE_STRING", "TYPE_BF16"));
}

// The bytes of this request were put together by hand from the wire format, without protobuf.
TEST(InferenceProtoTest, ARequestThatWasWrittenByHandIsRead) {
  const std::string tensor = std::string(
      "\x0a\x01x\x12\x04"
      "FP32\x1a\x02\x01\x02",
      13);
  const std::string bytes =
      absl::StrCat("\x0a\x01m",
                   "\x12\x01"
                   "7",
                   "\x2a\x0d", tensor, std::string("\x3a\x08\0\0\x80\x3f\0\0\0\x40", 10));
  inference::ModelInferRequest request;
  ASSERT_TRUE(request.ParseFromString(bytes));
  EXPECT_EQ(request.model_name(), "m");
  EXPECT_EQ(request.model_version(), "7");
  ASSERT_EQ(request.inputs_size(), 1);
  EXPECT_EQ(request.inputs(0).name(), "x");
  EXPECT_EQ(request.inputs(0).datatype(), "FP32");
  EXPECT_THAT(request.inputs(0).shape(), ElementsAre(1, 2));
  ASSERT_EQ(request.raw_input_contents_size(), 1);
  EXPECT_EQ(request.raw_input_contents(0).size(), 8u);
  EXPECT_EQ(request.SerializeAsString(), bytes);
}

}  // namespace
}  // namespace phimap::testing
