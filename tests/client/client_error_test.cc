#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "client/cpp/calls.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/client.h"
#include "client/cpp/grpc_status.h"
#include "core/status/error.h"
#include "phimap/rpc/error_details.pb.h"
#include "tests/client/scripted_server.h"
#include "tests/support/matchers.h"

namespace phimap::client {
namespace {

TEST(ErrorDecoderTest, ReadsFieldReasonNumbersAndRetryDelay) {
  rpc::Status packed;
  rpc::BadRequest bad_request;
  bad_request.add_field_violations()->set_field("spec.landmarks");
  Pack(bad_request, "BadRequest", packed);
  rpc::ErrorInfo info;
  info.set_reason("TOO_MANY");
  (*info.mutable_metadata())["limit"] = "8192";
  Pack(info, "ErrorInfo", packed);
  rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(2);
  retry.mutable_retry_delay()->set_nanos(1);
  Pack(retry, "RetryInfo", packed);

  const absl::Status status =
      DecodeError(8, "spec.landmarks: at most 8192", packed.SerializeAsString());
  EXPECT_THAT(status,
              testing::IsError(StatusCode::kResourceExhausted, _, _, "landmarks: at most 8192"));
  const auto detail = DetailOf(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->field, "landmarks");
  EXPECT_EQ(detail->reason, "TOO_MANY");
  EXPECT_EQ(detail->metadata.at("limit"), "8192");
  EXPECT_EQ(detail->retry_delay_ms, 2001);
}

TEST(ErrorDecoderTest, KeepsCodeAndMessageWhenDetailsAreMissingOrMalformed) {
  rpc::Status unknown;
  Pack(rpc::ErrorInfo(), "DebugInfo", unknown);
  rpc::Status damaged;
  damaged.add_details()->set_type_url("type.googleapis.com/google.rpc.ErrorInfo");
  damaged.mutable_details(0)->set_value("\xff\xff\xff");
  for (const std::string& details : {std::string(), std::string("\xff\xff"),
                                     unknown.SerializeAsString(), damaged.SerializeAsString()}) {
    const absl::Status status = DecodeError(5, "no mapping 'x'", details);
    EXPECT_EQ(status, absl::NotFoundError("no mapping 'x'"));
    EXPECT_FALSE(DetailOf(status).has_value());
  }
}

TEST(ErrorDecoderTest, NulInWordsOfTheServerStaysAsItIs) {
  rpc::Status packed;
  rpc::ErrorInfo info;
  info.set_reason(std::string("A\0B", 3));
  (*info.mutable_metadata())[std::string("k\0", 2)] = std::string("\0v", 2);
  Pack(info, "ErrorInfo", packed);
  const auto detail = DetailOf(DecodeError(3, "m", packed.SerializeAsString()));
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason, std::string("A\0B", 3));
  EXPECT_EQ(detail->metadata.at(std::string("k\0", 2)), std::string("\0v", 2));
}

TEST(ErrorDecoderTest, CodesOutsideTheCanonicalOnesAreUnknown) {
  EXPECT_TRUE(DecodeError(0, "", "").ok());
  EXPECT_EQ(DecodeError(16, "m", "").code(), StatusCode::kUnauthenticated);
  EXPECT_EQ(DecodeError(17, "m", "").code(), StatusCode::kUnknown);
  EXPECT_EQ(DecodeError(-1, "m", "").code(), StatusCode::kUnknown);
}

TEST(UuidTest, IsARandomVersion4Uuid) {
  constexpr char kForm[] = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string uuid = RandomUuid();
    EXPECT_THAT(uuid, MatchesRegex(kForm));
    seen.insert(uuid);
  }
  EXPECT_EQ(seen.size(), 1000);
}

TEST(RetryPolicyTest, BackoffDoublesUpToItsLimit) {
  const RetryPolicy policy;
  EXPECT_EQ(policy.BackoffBefore(2), absl::Milliseconds(200));
  EXPECT_EQ(policy.BackoffBefore(3), absl::Milliseconds(400));
  EXPECT_EQ(policy.BackoffBefore(6), absl::Milliseconds(3200));
  EXPECT_EQ(policy.BackoffBefore(7), absl::Seconds(5));
  EXPECT_EQ(policy.BackoffBefore(1000), absl::Seconds(5));
}

TEST(CancelTokenTest, RunsEachCallbackOnceAndOnlyWhileRegistered) {
  CancelToken token;
  int kept = 0;
  int dropped = 0;
  int late = 0;
  const auto registration = token.OnCancel([&] { ++kept; });
  {
    const auto gone = token.OnCancel([&] { ++dropped; });
  }
  token.Cancel();
  token.Cancel();
  const auto after = token.OnCancel([&] { ++late; });
  EXPECT_EQ(kept, 1);
  EXPECT_EQ(dropped, 0);
  EXPECT_EQ(late, 1);
  EXPECT_TRUE(token.WaitFor(absl::InfiniteDuration()));
}

}  // namespace
}  // namespace phimap::client
