#include "core/status/error.h"
#include "gtest/gtest.h"
#include "server/inference/inference_answer.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(InferenceStreamTest, AnErrorIsAMessageThatNamesTheRequest) {
  inference::ModelInferRequest request;
  request.set_id("17");
  request.set_model_name("letters");
  request.set_model_version("prod");
  const inference::ModelStreamInferResponse response =
      StreamErrorOf(MakeError(StatusCode::kInvalidArgument, "COLUMNS_MISMATCH", "inputs[x].shape",
                              "expected [-1, 16], got [2, 15]"),
                    request);
  EXPECT_EQ(response.error_message(),
            "COLUMNS_MISMATCH: inputs[x].shape: expected [-1, 16], got [2, 15]");
  EXPECT_EQ(response.infer_response().id(), "17");
  EXPECT_EQ(response.infer_response().model_name(), "letters");
  EXPECT_EQ(response.infer_response().model_version(), "prod");
  EXPECT_EQ(response.infer_response().outputs_size(), 0);
  EXPECT_TRUE(response.infer_response().parameters().at("triton_final_response").bool_param());
}

// The message must not be empty, because clients take an empty error_message for success.
TEST(InferenceStreamTest, AnErrorWithoutWordsStillHasAMessage) {
  EXPECT_EQ(StreamErrorOf(absl::DeadlineExceededError(""), {}).error_message(),
            "DEADLINE_EXCEEDED: ");
}

TEST(InferenceStreamTest, AnAnswerIsTheOnlyOneOfItsRequest) {
  inference::ModelStreamInferResponse response;
  response.mutable_infer_response()->set_id("17");
  MarkAsStreamAnswer(response);
  EXPECT_EQ(response.error_message(), "");
  EXPECT_EQ(response.infer_response().id(), "17");
  EXPECT_TRUE(response.infer_response().parameters().at("triton_final_response").bool_param());
}

}  // namespace
}  // namespace phimap::testing
