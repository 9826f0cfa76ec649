// Tests the timeout of a ModelInfer request in combination with the deadline of the call.
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/thread/steady_time.h"
#include "tests/server/api/inference_fixture.h"

namespace phimap::testing {
namespace {

class InferenceTimeoutTest : public InferenceFixture {
 protected:
  InferenceTimeoutTest() {
    // The scheduler uses a clock that is an hour ahead when it drops late requests. A request whose
    // limit is less than an hour is therefore always late, however fast the machine is.
    hooks_.transform_clock = [] { return SteadyNow() + absl::Hours(1); };
    Start();
    MustBuild();
  }

  // Calls ModelInfer with a timeout of `timeout` microseconds, and a deadline `minutes` minutes
  // from now.
  Code Infer(std::optional<int64_t> timeout, std::optional<int> minutes = std::nullopt) {
    inference::ModelInferRequest request = RawRequest(UniformExamples(1, 3));
    if (timeout) (*request.mutable_parameters())["timeout"].set_int64_param(*timeout);
    return Call(request, minutes);
  }
  Code Call(const inference::ModelInferRequest& request, std::optional<int> minutes) {
    grpc::ClientContext context;
    if (minutes) {
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(*minutes));
    }
    inference::ModelInferResponse response;
    return inferences_->ModelInfer(&context, request, &response).error_code();
  }
};

constexpr int64_t kMinute = 60'000'000;

TEST_F(InferenceTimeoutTest, ItIsInMicroseconds) {
  EXPECT_EQ(Infer(50 * kMinute), Code::DEADLINE_EXCEEDED);
  EXPECT_EQ(Infer(70 * kMinute), Code::OK);
}

TEST_F(InferenceTimeoutTest, ZeroAndNoneAreNoTimeoutAndTheLongestOneIsLong) {
  EXPECT_EQ(Infer(std::nullopt), Code::OK);
  EXPECT_EQ(Infer(0), Code::OK);
  EXPECT_EQ(Infer(1), Code::DEADLINE_EXCEEDED);
  EXPECT_EQ(Infer(std::numeric_limits<int64_t>::max()), Code::OK);
}

TEST_F(InferenceTimeoutTest, TheEarlierOfTimeoutAndDeadlineHolds) {
  EXPECT_EQ(Infer(std::nullopt, 70), Code::OK);
  EXPECT_EQ(Infer(70 * kMinute, 80), Code::OK);
  EXPECT_EQ(Infer(70 * kMinute, 50), Code::DEADLINE_EXCEEDED);
  EXPECT_EQ(Infer(50 * kMinute, 70), Code::DEADLINE_EXCEEDED);
}

TEST_F(InferenceTimeoutTest, AnUnsignedNumberIsTakenToo) {
  inference::ModelInferRequest request = RawRequest(UniformExamples(1, 3));
  inference::InferParameter& timeout = (*request.mutable_parameters())["timeout"];
  timeout.set_uint64_param(50 * kMinute);
  EXPECT_EQ(Call(request, std::nullopt), Code::DEADLINE_EXCEEDED);
  timeout.set_uint64_param(std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(Call(request, std::nullopt), Code::OK);
}

}  // namespace
}  // namespace phimap::testing
