// Requests, byte for byte as standard clients of the Open Inference Protocol write them. The stubs
// of this repository were not used to make them. The numbers in the comments are field numbers of
// the public protocol. On the wire, a field begins with its number times 8, plus its wire type;
// wire type 2 means that a length and that many bytes follow.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/empty.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "phimap/v1/learning_service.grpc.pb.h"
#include "tests/server/api/inference_fixture.h"
#include "tests/server/api/raw_call.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Every request below carries these 2 rows of 3 numbers, as little-endian float32.
constexpr float kFrozenRows[] = {1, 2, 0.5, -1, 0.25, 3};

// Triton's C++ client, InferenceServerGrpcClient::Infer with id "1" and one requested output. This
// client sends the parameter below with every request.
constexpr char kTritonRequest[] =
    "0a 06 6c6574746572"                     // 1 model_name: "letter"
    "1a 01 31"                               // 3 id: "1"
    "22 28"                                  // 4 parameters, one entry:
    "   0a 22 747269746f6e5f656e61626c655f"  //     1 key: "triton_enable_
    "         656d7074795f66696e616c5f"      //             empty_final_
    "         726573706f6e7365"              //             response"
    "   12 02"                               //     2 value:
    "      08 00"                            //         1 bool_param: false
    "2a 0d"                                  // 5 inputs, one tensor:
    "   0a 01 78"                            //     1 name: "x"
    "   12 04 46503332"                      //     2 datatype: "FP32"
    "   1a 02 02 03"                         //     3 shape: [2, 3]
    "32 0a"                                  // 6 outputs, one:
    "   0a 08 6665617475726573"              //     1 name: "features"
    "3a 18 0000803f 00000040 0000003f"       // 7 raw_input_contents: 1, 2, 0.5,
    "      000080bf 0000803e 00004040";      //     -1, 0.25, 3

// KServe's Python SDK, InferRequest.to_grpc() after InferInput.set_data_from_numpy(rows,
// binary_data=True), which adds the number of bytes as a parameter of the tensor.
constexpr char kKserveRequest[] =
    "0a 06 6c6574746572"                    // 1 model_name: "letter"
    "2a 25"                                 // 5 inputs, one tensor:
    "   0a 01 78"                           //     1 name: "x"
    "   12 04 46503332"                     //     2 datatype: "FP32"
    "   1a 02 02 03"                        //     3 shape: [2, 3]
    "   22 16"                              //     4 parameters, one entry:
    "      0a 10 62696e6172795f646174615f"  //         1 key: "binary_data_
    "            73697a65"                  //                 size"
    "      12 02"                           //         2 value:
    "         10 18"                        //             2 int64_param: 24
    "3a 18 0000803f 00000040 0000003f"      // 7 raw_input_contents: 1, 2, 0.5,
    "      000080bf 0000803e 00004040";     //     -1, 0.25, 3

// MLServer's Python client, after NumpyRequestCodec and ModelInferRequestConverter.from_types. The
// content type is set on the request, on the tensor and on the output. The numbers are in typed
// contents.
constexpr char kMlserverRequest[] =
    "0a 06 6c6574746572"                    // 1 model_name: "letter"
    "22 14"                                 // 4 parameters, one entry:
    "   0a 0c 636f6e74656e745f74797065"     //     1 key: "content_type"
    "   12 04"                              //     2 value:
    "      1a 02 6e70"                      //         3 string_param: "np"
    "2a 3f"                                 // 5 inputs, one tensor:
    "   0a 01 78"                           //     1 name: "x"
    "   12 04 46503332"                     //     2 datatype: "FP32"
    "   1a 02 02 03"                        //     3 shape: [2, 3]
    "   22 14"                              //     4 parameters, one entry:
    "      0a 0c 636f6e74656e745f74797065"  //         1 key: "content_type"
    "      12 04"                           //         2 value:
    "         1a 02 6e70"                   //             3 string_param: "np"
    "   2a 1a"                              //     5 contents:
    "      32 18"                           //         6 fp32_contents, packed:
    "         0000803f 00000040 0000003f"   //             1, 2, 0.5,
    "         000080bf 0000803e 00004040"   //             -1, 0.25, 3
    "32 20"                                 // 6 outputs, one:
    "   0a 08 6665617475726573"             //     1 name: "features"
    "   12 14"                              //     2 parameters, one entry:
    "      0a 0c 636f6e74656e745f74797065"  //         1 key: "content_type"
    "      12 04"                           //         2 value:
    "         1a 02 6e70";                  //             3 string_param: "np"

// Bytes to append to a request: a timeout parameter that is a text, and therefore invalid.
constexpr char kTimeoutInWords[] =
    "22 0f"                    // 4 parameters, one entry:
    "   0a 07 74696d656f7574"  //     1 key: "timeout"
    "   12 04"                 //     2 value:
    "      1a 02 3173";        //         3 string_param: "1s"

// A request of ModelReady or ModelMetadata.
constexpr char kNameOfLetter[] = "0a 06 6c6574746572";  // 1 name: "letter"
constexpr char kNameOfOther[] = "0a 05 6f74686572";     // 1 name: "other"

std::string FrozenBytes(absl::string_view hex) {
  return absl::HexStringToBytes(absl::StrReplaceAll(hex, {{" ", ""}}));
}

class InferenceClientsTest : public InferenceFixture {
 protected:
  InferenceClientsTest() {
    Start();
    MustBuild();
  }

  RawAnswer CallFrozen(const std::string& method, absl::string_view hex) {
    return CallRaw(channel_, "/inference.GRPCInferenceService/" + method, {FrozenBytes(hex)});
  }
  // The features of kFrozenRows, as phimap's own Transform call returns them.
  std::string NativeOfFrozen() {
    v1::Examples examples;
    examples.mutable_dense()->set_rows(2);
    examples.mutable_dense()->set_columns(3);
    examples.mutable_dense()->set_float32_le(
        std::string(reinterpret_cast<const char*>(kFrozenRows), sizeof(kFrozenRows)));
    return NativeFeatures(examples);
  }
};

TEST_F(InferenceClientsTest, ParametersThatStandardClientsAlwaysSendArePassedOver) {
  const std::string features = NativeOfFrozen();
  ASSERT_FALSE(features.empty());
  const struct {
    const char* client;
    const char* request;
  } cases[] = {
      {"Triton", kTritonRequest}, {"KServe", kKserveRequest}, {"MLServer", kMlserverRequest}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.client);
    const RawAnswer answer = CallFrozen("ModelInfer", c.request);
    EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
    ASSERT_EQ(answer.messages.size(), 1);
    inference::ModelInferResponse response;
    ASSERT_TRUE(response.ParseFromString(answer.messages[0]));
    ASSERT_EQ(response.raw_output_contents_size(), 1);
    EXPECT_EQ(response.raw_output_contents(0), features);
  }
}

// What the two clients append to ask for answers. Triton's writes requested outputs in field 6;
// KServe's SDK does so from request_outputs.
constexpr char kAnswersWanted[] =
    "32 07"                             // 6 outputs, one:
    "   0a 05 6c6162656c"               //     1 name: "label"
    "32 0d"                             // 6 outputs, one more:
    "   0a 0b 70726f626162696c697479";  //     1 name: "probability"

TEST_F(InferenceClientsTest, AVersionWithAHeadAnswersThemWithLabelsAndProbabilities) {
  const auto learning = v1::LearningService::NewStub(channel_);
  const auto stream = learning->Train(NewContext());
  v1::TrainRequest request;
  request.mutable_spec()->set_reference("letter@1");
  request.mutable_spec()->set_build_id("00000000-0000-4000-8000-00000000000a");
  stream->Write(request);
  *request.mutable_examples()->mutable_examples() = UniformExamples(400, 3);
  const std::vector<float> rows = FloatsOf(request.examples().examples());
  for (int i = 0; i < 400; ++i) {
    request.mutable_examples()->add_labels(rows[3 * i] > 0 ? "plus" : "minus");
  }
  stream->Write(request);
  request.mutable_finish()->set_row_count(400);
  stream->Write(request);
  stream->WritesDone();
  v1::TrainResponse trained;
  while (stream->Read(&trained)) {
  }
  ASSERT_THAT(stream->Finish(), IsOk());
  // Of Triton's request without its own output, and of KServe's.
  const std::string triton =
      absl::StrReplaceAll(std::string(kTritonRequest), {{"32 0a   0a 08 6665617475726573", ""}});
  ASSERT_NE(triton, kTritonRequest);
  for (const std::string& request_bytes : {triton, std::string(kKserveRequest)}) {
    const RawAnswer answer = CallFrozen("ModelInfer", absl::StrCat(request_bytes, kAnswersWanted));
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    inference::ModelInferResponse response;
    ASSERT_TRUE(response.ParseFromString(answer.messages[0]));
    EXPECT_EQ(response.model_version(), "2");
    ASSERT_EQ(response.outputs_size(), 2);
    EXPECT_EQ(response.outputs(0).datatype(), "BYTES");
    // Each text is its length as a little-endian uint32, and its bytes.
    EXPECT_EQ(response.raw_output_contents(0), std::string("\4\0\0\0plus\5\0\0\0minus", 17));
    EXPECT_EQ(response.outputs(1).datatype(), "FP64");
    ASSERT_EQ(response.raw_output_contents(1).size(), 4 * sizeof(double));
    double probabilities[4];
    std::memcpy(probabilities, response.raw_output_contents(1).data(), sizeof(probabilities));
    EXPECT_NEAR(probabilities[0] + probabilities[1], 1, 1e-12);
    EXPECT_GT(probabilities[1], 0.5);  // the first row's first number is 1, and classes are sorted
    EXPECT_GT(probabilities[2], 0.5);
  }
}

// Triton's clients stream the messages of ModelInfer. (KServe's and MLServer's do not stream.)
TEST_F(InferenceClientsTest, AStreamTakesTheSameBytes) {
  const RawAnswer answer = CallRaw(
      channel_, "/inference.GRPCInferenceService/ModelStreamInfer",
      {FrozenBytes(kTritonRequest), FrozenBytes(kKserveRequest), FrozenBytes(kMlserverRequest),
       FrozenBytes(absl::StrCat(kTritonRequest, kTimeoutInWords))});
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  ASSERT_EQ(answer.messages.size(), 4);
  for (size_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    inference::ModelStreamInferResponse response;
    ASSERT_TRUE(response.ParseFromString(answer.messages[i]));
    const bool bad = i == 3;
    EXPECT_EQ(response.error_message().empty(), !bad) << response.error_message();
    EXPECT_EQ(response.infer_response().id(), i == 0 || bad ? "1" : "");
    if (bad) continue;
    EXPECT_EQ(response.infer_response().raw_output_contents(0), NativeOfFrozen());
  }
}

TEST_F(InferenceClientsTest, OurOwnParameterIsStillCheckedBesideThem) {
  for (const char* request : {kTritonRequest, kKserveRequest, kMlserverRequest}) {
    const RawAnswer answer = CallFrozen("ModelInfer", absl::StrCat(request, kTimeoutInWords));
    EXPECT_THAT(answer.status, IsError(grpc::StatusCode::INVALID_ARGUMENT,
                                       "PARAMETER_TYPE_MISMATCH", "parameters[timeout]"));
  }
}

// MLServer's stubs declare field 6 as map<string, InferParameter>. If phimapd sent strings in that
// field, the stubs would refuse the whole answer.
TEST_F(InferenceClientsTest, ModelMetadataLeavesFieldSixUnset) {
  const RawAnswer answer = CallFrozen("ModelMetadata", kNameOfLetter);
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  ASSERT_EQ(answer.messages.size(), 1);
  google::protobuf::Empty fields;
  ASSERT_TRUE(fields.ParseFromString(answer.messages[0]));
  const google::protobuf::UnknownFieldSet& unknown =
      fields.GetReflection()->GetUnknownFields(fields);
  std::set<int> numbers;
  for (int i = 0; i < unknown.field_count(); ++i) numbers.insert(unknown.field(i).number());
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5));
}

// A client that waits for a model asks again until it is ready, and gives up at the first error.
TEST_F(InferenceClientsTest, AModelThatThereIsNotIsNotReady) {
  const RawAnswer letter = CallFrozen("ModelReady", kNameOfLetter);
  EXPECT_TRUE(letter.status.ok()) << letter.status.error_message();
  EXPECT_THAT(letter.messages, ElementsAre("\x08\x01"));  // 1 ready: true
  const RawAnswer other = CallFrozen("ModelReady", kNameOfOther);
  EXPECT_TRUE(other.status.ok()) << other.status.error_message();
  EXPECT_THAT(other.messages, ElementsAre(""));  // no field, so ready: false
}

}  // namespace
}  // namespace phimap::testing
