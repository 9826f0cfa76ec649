#include "server/rpc/dispatcher.h"

#include "tests/server/rpc/call_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class DispatcherTest : public CallTest {};

RawHttp2Client::Headers HeadersOf(const std::string& method, const std::string& content_type) {
  return {{":method", method},    {":scheme", "http"}, {":path", kUnary},
          {":authority", "test"}, {"te", "trailers"},  {"content-type", content_type}};
}

TEST_F(DispatcherTest, UnknownMethodsAndServicesAreUnimplementedInOneFrame) {
  for (const char* path : {"/grpc.health.v1.Health/Nothing", "/grpc.health.v1.Health/Watch",
                           "/no.Service/Check", "/", "/grpc.health.v1.Health/Check/"}) {
    SCOPED_TRACE(path);
    auto& answer = Answer(path, Named(""));
    EXPECT_EQ(answer.headers[":status"], "200");
    EXPECT_EQ(CodeOf(answer), kUnimplemented);
    EXPECT_EQ(ReasonOf(answer), "METHOD_UNKNOWN");
    EXPECT_FALSE(answer.has_trailers);
  }
  EXPECT_EQ(log_.begun, 0);
}

TEST_F(DispatcherTest, OtherContentTypesAre415) {
  for (const char* type : {"application/json", "application/grpc-web", "application/grpc+json",
                           "application/grpcx", "text/plain"}) {
    SCOPED_TRACE(type);
    const int32_t stream = client_->Request(HeadersOf("POST", type), /*end=*/true);
    ASSERT_TRUE(client_->AwaitEnd(stream));
    EXPECT_EQ(client_->answer(stream).headers[":status"], "415");
    EXPECT_THAT(client_->answer(stream).body, HasSubstr("application/grpc"));
  }
  EXPECT_EQ(metrics_.connections().http_415->Value(), 5);
  EXPECT_EQ(log_.begun, 0);
}

TEST_F(DispatcherTest, ContentTypesOfGrpcAreTaken) {
  for (const char* type :
       {"application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"}) {
    SCOPED_TRACE(type);
    const int32_t stream = client_->Request(HeadersOf("POST", type));
    client_->Send(stream, Named(""), /*end=*/true);
    ASSERT_TRUE(client_->AwaitEnd(stream));
    EXPECT_EQ(CodeOf(client_->answer(stream)), 0);
  }
}

TEST_F(DispatcherTest, OtherHttpMethodsAre405) {
  for (const char* method : {"GET", "PUT", "DELETE", "OPTIONS"}) {
    SCOPED_TRACE(method);
    const int32_t stream = client_->Request(HeadersOf(method, "application/grpc"), /*end=*/true);
    ASSERT_TRUE(client_->AwaitEnd(stream));
    EXPECT_EQ(client_->answer(stream).headers[":status"], "405");
    EXPECT_EQ(client_->answer(stream).body, "expected POST: this port speaks gRPC\n");
  }
  EXPECT_EQ(metrics_.connections().http_405->Value(), 4);
  EXPECT_EQ(log_.begun, 0);
}

TEST_F(DispatcherTest, MalformedTimeoutIsRefusedInWords) {
  for (const char* timeout : {"1", "S", "123456789S", "-1S", "1s", "1 S", "1.5S"}) {
    SCOPED_TRACE(timeout);
    auto& answer = Answer(kUnary, Named(""), {{"grpc-timeout", timeout}});
    EXPECT_EQ(CodeOf(answer), kInvalidArgument);
    EXPECT_EQ(ReasonOf(answer), "TIMEOUT_INVALID");
  }
  EXPECT_EQ(log_.begun, 0);
}

TEST_F(DispatcherTest, CompressedRequestsAreRefusedAndIdentityIsNot) {
  auto& answer = Answer(kUnary, Named(""), {{"grpc-encoding", "gzip"}});
  EXPECT_EQ(CodeOf(answer), kUnimplemented);
  EXPECT_EQ(ReasonOf(answer), "MESSAGE_COMPRESSED");
  EXPECT_EQ(log_.begun, 0);
  EXPECT_EQ(CodeOf(Answer(kUnary, Named(""), {{"grpc-encoding", "identity"}})), 0);
}

TEST_F(DispatcherTest, WhatIsTakenInsteadOfCompressionIsSaid) {
  auto& answer = Answer(kUnary, Named("x"), {{"grpc-encoding", "gzip"}});
  EXPECT_EQ(CodeOf(answer), kUnimplemented);
  EXPECT_EQ(answer.headers["grpc-accept-encoding"], "identity");
}

TEST_F(DispatcherTest, HeadersOverTheLimitAreRefusedInWords) {
  auto& answer = Answer(kUnary, Named(""), {{"x", std::string(16 << 10, 'x')}});
  EXPECT_EQ(CodeOf(answer), kResourceExhausted);
  EXPECT_EQ(ReasonOf(answer), "HEADERS_TOO_LARGE");
  EXPECT_EQ(log_.begun, 0);
}

// Two calls fail: one of a method that exists, one before it begins. An id that HTTP strips or that
// stands in two headers is no id.
TEST_F(DispatcherTest, AnErrorHasTheCallersRequestIdOrOneOfOurs) {
  for (const char* path : {kUnary, "/no.Service/Check"}) {
    SCOPED_TRACE(path);
    auto& answer = Answer(path, Named("fail"), {{"x-request-id", "order 66"}});
    EXPECT_EQ(answer.headers["x-request-id"], "order 66");
    EXPECT_EQ(answer.headers["phimap-request-id"], "order 66");
    for (const RawHttp2Client::Headers& headers :
         {RawHttp2Client::Headers(), RawHttp2Client::Headers{{"x-request-id", ""}},
          RawHttp2Client::Headers{{"x-request-id", std::string(129, 'x')}},
          RawHttp2Client::Headers{{"x-request-id", "\xc3\xa9"}},
          RawHttp2Client::Headers{{"x-request-id", "a"}, {"x-request-id", "b"}}}) {
      auto& ours = Answer(path, Named("fail"), headers);
      EXPECT_THAT(ours.headers["x-request-id"], ::testing::MatchesRegex("[0-9a-f]{16}"));
      EXPECT_EQ(ours.headers["phimap-request-id"], ours.headers["x-request-id"]);
    }
  }
}

// The log would keep it.
TEST_F(DispatcherTest, ATokenThatIsSentAsRequestIdIsNone) {
  const std::string token = "a-token-of-24-characters";
  auto& kept = Answer(kUnary, Named("fail"),
                      {{"authorization", "Bearer " + token}, {"x-request-id", token}});
  EXPECT_THAT(kept.headers["x-request-id"], ::testing::MatchesRegex("[0-9a-f]{16}"));
  auto& within =
      Answer(kUnary, Named("fail"),
             {{"authorization", "Bearer " + token}, {"x-request-id", "id " + token + "."}});
  EXPECT_THAT(within.headers["x-request-id"], ::testing::MatchesRegex("[0-9a-f]{16}"));
  auto& short_id =
      Answer(kUnary, Named("fail"), {{"authorization", "Bearer " + token}, {"x-request-id", "s"}});
  EXPECT_EQ(short_id.headers["x-request-id"], "s");
}

TEST_F(DispatcherTest, ASuccessHasTheCallersRequestIdAndNoneOfOurs) {
  auto& answer = Answer(kUnary, Named(""), {{"x-request-id", std::string(128, '~')}});
  EXPECT_EQ(CodeOf(answer), 0);
  EXPECT_EQ(answer.headers["x-request-id"], std::string(128, '~'));
  EXPECT_FALSE(answer.headers.contains("phimap-request-id"));
  auto& without = Answer(kUnary, Named(""));
  EXPECT_EQ(CodeOf(without), 0);
  EXPECT_FALSE(without.headers.contains("x-request-id"));
}

TEST_F(DispatcherTest, ServerThatGoesTakesNothingButHealth) {
  dispatcher_.StopAccepting();
  auto& answer = Answer(kStream, "");
  EXPECT_EQ(CodeOf(answer), kUnavailable);
  EXPECT_EQ(ReasonOf(answer), "SERVER_SHUTTING_DOWN");
  EXPECT_EQ(CodeOf(Answer(kUnary, Named(""))), 0);
}

using DispatcherDeathTest = DispatcherTest;

TEST_F(DispatcherDeathTest, AMethodWithoutARoleEndsTheProcessAndSaysWhatToAdd) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto& health =
      *testing::HealthCheckRequest::descriptor()->file()->FindServiceByName("Health");
  EXPECT_DEATH(dispatcher_.Add(health, {}),
               "nobody has said who may call grpc.health.v1.Health/Check: add to kMethodFacts in "
               "proto/methods/method_facts.h the line\n +.\"grpc.health.v1.Health/Check\", Role");
  EXPECT_DEATH(dispatcher_.Add(health, {{"Chek", nullptr}}, Dispatcher::Access::kOpenToAll),
               "opened as Chek of grpc.health.v1.Health, but the service has no such method");
}

}  // namespace
}  // namespace phimap::testing
