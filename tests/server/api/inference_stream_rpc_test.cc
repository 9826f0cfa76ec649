// Tests ModelStreamInfer over gRPC, used the way Triton's clients use it.
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/api/inference_fixture.h"
#include "tests/server/api/raw_call.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Answers = std::vector<inference::ModelStreamInferResponse>;

constexpr char kPath[] = "/inference.GRPCInferenceService/ModelStreamInfer";

class InferenceStreamRpcTest : public InferenceFixture {
 protected:
  InferenceStreamRpcTest() {
    Start();
    MustBuild();
  }

  static inference::ModelInferRequest Numbered(int number, int rows) {
    inference::ModelInferRequest request =
        RawRequest(UniformExamples(rows, 3, static_cast<uint64_t>(number + 1)));
    request.set_id(absl::StrCat(number));
    return request;
  }
  // Sends all requests, then reads all answers.
  grpc::Status Stream(const std::vector<inference::ModelInferRequest>& requests, Answers& answers) {
    grpc::ClientContext context;
    const auto stream = inferences_->ModelStreamInfer(&context);
    for (const inference::ModelInferRequest& request : requests) stream->Write(request);
    stream->WritesDone();
    inference::ModelStreamInferResponse answer;
    while (stream->Read(&answer)) answers.push_back(answer);
    return stream->Finish();
  }
};

TEST_F(InferenceStreamRpcTest, AnswersComeInTheOrderOfTheRequestsWithTheBitsOfTheNativeCall) {
  // Large and small requests, which are computed on different threads.
  std::vector<inference::ModelInferRequest> requests;
  for (int i = 0; i < 100; ++i) requests.push_back(Numbered(i, i % 7 == 0 ? 2000 : 1 + i % 3));
  Answers answers;
  EXPECT_THAT(Stream(requests, answers), IsOk());
  ASSERT_EQ(answers.size(), requests.size());
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    const inference::ModelStreamInferResponse& answer = answers[static_cast<size_t>(i)];
    EXPECT_EQ(answer.error_message(), "");
    EXPECT_EQ(answer.infer_response().id(), absl::StrCat(i));
    EXPECT_EQ(answer.infer_response().model_version(), "1");
    EXPECT_TRUE(answer.infer_response().parameters().at("triton_final_response").bool_param());
    const int rows = i % 7 == 0 ? 2000 : 1 + i % 3;
    ASSERT_EQ(answer.infer_response().raw_output_contents_size(), 1);
    EXPECT_EQ(answer.infer_response().raw_output_contents(0),
              NativeFeatures(UniformExamples(rows, 3, static_cast<uint64_t>(i + 1))));
  }
}

TEST_F(InferenceStreamRpcTest, ARequestThatFailsIsAnsweredInItsTurnAndTheStreamGoesOn) {
  std::vector<inference::ModelInferRequest> requests;
  for (int i = 0; i < 7; ++i) requests.push_back(Numbered(i, 2));
  requests[1].set_model_name("nobody");
  (*requests[2].mutable_parameters())["sequence_id"].set_int64_param(7);
  requests[3].mutable_inputs(0)->set_shape(1, 2);
  const float infinity[] = {1, 2, 3, 4, 5, std::numeric_limits<float>::infinity()};
  requests[4].set_raw_input_contents(
      0, std::string(reinterpret_cast<const char*>(infinity), sizeof(infinity)));
  requests[5].set_model_version("prod");
  Answers answers;
  EXPECT_THAT(Stream(requests, answers), IsOk());
  const struct {
    const char* error;
    const char* field;
  } expected[] = {{"", ""},
                  {"MAPPING_NOT_FOUND: ", "nobody"},
                  {"PARAMETER_NOT_SUPPORTED: ", "parameters[sequence_id]"},
                  {"LENGTH_MISMATCH: ", "raw_input_contents[0]"},
                  {"VALUE_NOT_FINITE: ", "inputs[x].rows[1]"},
                  {"ALIAS_NOT_FOUND: ", "model_version"},
                  {"", ""}};
  ASSERT_EQ(answers.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(answers[i].infer_response().id(), absl::StrCat(i));
    EXPECT_TRUE(answers[i].infer_response().parameters().at("triton_final_response").bool_param());
    EXPECT_THAT(answers[i].error_message(), StartsWith(expected[i].error));
    EXPECT_THAT(answers[i].error_message(), HasSubstr(expected[i].field));
    const bool good = *expected[i].error == '\0';
    EXPECT_EQ(answers[i].error_message().empty(), good);
    EXPECT_EQ(answers[i].infer_response().raw_output_contents_size(), good ? 1 : 0);
  }
}

TEST_F(InferenceStreamRpcTest, EachRequestNamesItsModelAndFollowsIt) {
  MustBuild("other", "f1(landmarks=6)");
  std::vector<inference::ModelInferRequest> requests = {Numbered(0, 2), Numbered(1, 2)};
  requests[1].set_model_name("other");
  Answers answers;
  ASSERT_TRUE(Stream(requests, answers).ok());
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(answers[0].infer_response().outputs(0).shape(), ElementsAre(2, 5));
  EXPECT_THAT(answers[1].infer_response().outputs(0).shape(), ElementsAre(2, 6));
}

TEST_F(InferenceStreamRpcTest, TheResidualAloneIsThatOfModelInfer) {
  inference::ModelInferRequest request = Numbered(0, 12);
  request.add_outputs()->set_name("residual");
  inference::ModelInferResponse single;
  ASSERT_TRUE(Infer(request, &single).ok());
  Answers answers;
  ASSERT_TRUE(Stream({request}, answers).ok());
  ASSERT_EQ(answers.size(), 1u);
  ASSERT_EQ(answers[0].infer_response().raw_output_contents_size(), 1);
  EXPECT_EQ(answers[0].infer_response().raw_output_contents(0), single.raw_output_contents(0));
}

// The client reads each answer before it sends the next request, so no answer may wait for another
// one.
TEST_F(InferenceStreamRpcTest, PingPong) {
  grpc::ClientContext context;
  const auto stream = inferences_->ModelStreamInfer(&context);
  for (int i = 0; i < 20; ++i) {
    inference::ModelInferRequest request = Numbered(i, 1);
    if (i % 2 == 1) request.clear_inputs();
    ASSERT_TRUE(stream->Write(request));
    inference::ModelStreamInferResponse answer;
    ASSERT_TRUE(stream->Read(&answer));
    EXPECT_EQ(answer.infer_response().id(), absl::StrCat(i));
    EXPECT_EQ(answer.error_message().empty(), i % 2 == 0);
  }
  stream->WritesDone();
  inference::ModelStreamInferResponse none;
  EXPECT_FALSE(stream->Read(&none));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(InferenceStreamRpcTest, AStreamWithoutRequestsIsOk) {
  Answers answers;
  EXPECT_TRUE(Stream({}, answers).ok());
  EXPECT_TRUE(answers.empty());
}

TEST_F(InferenceStreamRpcTest, BytesThatAreNoRequestEndTheStreamAfterTheAnswersBefore) {
  const RawAnswer answer = CallRaw(channel_, kPath, {Numbered(0, 2).SerializeAsString(), "\x07"});
  EXPECT_THAT(answer.status, IsError(Code::INVALID_ARGUMENT, "REQUEST_MALFORMED"));
  ASSERT_EQ(answer.messages.size(), 1u);
  inference::ModelStreamInferResponse first;
  ASSERT_TRUE(first.ParseFromString(answer.messages[0]));
  EXPECT_EQ(first.infer_response().id(), "0");
}

// An error quotes only a small part of a request, however large the request is.
TEST_F(InferenceStreamRpcTest, AnErrorIsSmall) {
  inference::ModelInferRequest request = Numbered(0, 1);
  request.set_id(std::string(1 << 20, 'i'));
  request.set_model_version(std::string(1 << 20, 'v'));
  Answers answers;
  ASSERT_TRUE(Stream({request, Numbered(1, 1)}, answers).ok());
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_FALSE(answers[0].error_message().empty());
  EXPECT_LT(answers[0].ByteSizeLong(), 8192u);
  EXPECT_EQ(answers[1].infer_response().id(), "1");
}

// A client that does not read is held back by flow control, and gets all of its answers in the end.
TEST_F(InferenceStreamRpcTest, MoreThanTheWindowIsAnsweredToAClientThatReadsLate) {
  constexpr int kRequests = 200;
  grpc::ClientContext context;
  const auto stream = inferences_->ModelStreamInfer(&context);
  std::thread writer([&] {
    for (int i = 0; i < kRequests; ++i) stream->Write(Numbered(i, 1000));
    stream->WritesDone();
  });
  inference::ModelStreamInferResponse answer;
  int next = 0;
  while (stream->Read(&answer)) {
    EXPECT_EQ(answer.error_message(), "");
    EXPECT_EQ(answer.infer_response().id(), absl::StrCat(next++));
  }
  writer.join();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(next, kRequests);
}

}  // namespace
}  // namespace phimap::testing
