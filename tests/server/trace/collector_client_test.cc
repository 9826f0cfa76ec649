#include "server/trace/collector_client.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/server/trace/collector.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Clock = CollectorClient::Clock;

TEST(CollectorUrlTest, TheUrlOfACollectorGetsThePathOfOtlpUnlessItHasOne) {
  const struct {
    const char* text;
    const char* url;
  } kCases[] = {
      {"http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"},
      {"http://collector:4318/", "http://collector:4318/v1/traces"},
      {"https://[::1]:4318", "https://[::1]:4318/v1/traces"},
      {"https://tempo.example.com:443/otlp/v1/traces",
       "https://tempo.example.com:443/otlp/v1/traces"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.text);
    const absl::StatusOr<std::string> url = CollectorUrl("--trace_endpoint", test.text);
    ASSERT_TRUE(url.ok()) << url.status();
    EXPECT_EQ(*url, test.url);
  }
}

TEST(CollectorUrlTest, AnythingElseIsRefusedWithWhatWasExpected) {
  for (const char* text : {"", "127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://127.0.0.1",
                           "http://:4318", "http://a:0", "http://a:65536", "http://a:4318x",
                           "http://a b:4318", "http://a:4318/v1 traces", "http://a:4318/?key=word",
                           "http://::1:4318", "file:///etc/passwd", "http://a:4318/#x"}) {
    SCOPED_TRACE(text);
    EXPECT_THAT(CollectorUrl("--trace_endpoint", text).status(),
                IsError(StatusCode::kInvalidArgument, reason::kFlagInvalid, "--trace_endpoint",
                        AllOf(HasSubstr("http://HOST:PORT"), HasSubstr(Quoted(text)))));
  }
  // A password is not repeated.
  EXPECT_THAT(
      CollectorUrl("--trace_endpoint", "http://user:word@a:4318").status(),
      IsError(StatusCode::kInvalidArgument, reason::kFlagInvalid, "--trace_endpoint",
              AllOf(HasSubstr("http://HOST:PORT"), HasSubstr("@"), Not(HasSubstr("word@")))));
}

class CollectorClientTest : public ::testing::Test {
 protected:
  std::unique_ptr<CollectorClient> Client(const std::string& url) {
    return *CollectorClient::Make(url, "phimapd/test");
  }
  CollectorAnswer Post(CollectorClient& client) {
    return client.Post(opentelemetry::ExportTraceServiceRequest().SerializeAsString(),
                       [] { return Clock::now() + std::chrono::minutes(1); });
  }

  Collector collector_;
  const std::unique_ptr<CollectorClient> client_ = Client(collector_.url() + "/some/path");
};

TEST_F(CollectorClientTest, ARequestIsThatOfOtlpOverHttp) {
  const CollectorAnswer answer = Post(*client_);
  EXPECT_EQ(answer.kind, CollectorAnswer::Kind::kTaken);
  EXPECT_EQ(answer.error, "");
  EXPECT_EQ(answer.rejected, 0);
  const std::string head = collector_.AwaitRequests(1)[0].head;
  EXPECT_THAT(head, StartsWith("POST /some/path HTTP/1.1\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nContent-Type: application/x-protobuf\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nUser-Agent: phimapd/test\r\n"));
}

TEST_F(CollectorClientTest, RequestsShareAConnection) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Post(*client_).kind, CollectorAnswer::Kind::kTaken);
  // The collector serves one connection at a time: another one would wait for the first.
  EXPECT_EQ(collector_.AwaitRequests(3).size(), 3u);
}

// By the specification of OTLP, these four may be sent again, and no other.
TEST_F(CollectorClientTest, OnlyABusyOrMissingCollectorIsTriedAgain) {
  for (const char* status : {"429 Too Many Requests", "502 Bad Gateway", "503 Service Unavailable",
                             "504 Gateway Timeout"}) {
    collector_.AnswerWith(status, "", "Retry-After: 7\r\n");
    const CollectorAnswer answer = Post(*client_);
    EXPECT_EQ(answer.kind, CollectorAnswer::Kind::kTryLater) << status;
    EXPECT_EQ(answer.retry_after, std::chrono::seconds(7)) << status;
  }
  for (const char* status :
       {"400 Bad Request", "401 Unauthorized", "404 Not Found", "413 Payload Too Large",
        "500 Internal Server Error", "307 Temporary Redirect", "204 No Content"}) {
    collector_.AnswerWith(status, "", "Location: http://127.0.0.1:1/\r\n");
    EXPECT_EQ(Post(*client_).kind, CollectorAnswer::Kind::kRefused) << status;
  }
}

TEST_F(CollectorClientTest, AnErrorSaysWhatTheCollectorSaid) {
  opentelemetry::Refusal refusal;
  refusal.set_code(3);
  refusal.set_message("no such tenant");
  collector_.AnswerWith("400 Bad Request", refusal.SerializeAsString());
  EXPECT_EQ(Post(*client_).error, "HTTP status 400: no such tenant");
  collector_.AnswerWith("403 Forbidden", "proxy says no");
  EXPECT_EQ(Post(*client_).error, "HTTP status 403: proxy says no");
}

TEST_F(CollectorClientTest, APartialSuccessSaysHowManySpansWereRejected) {
  opentelemetry::ExportTraceServiceResponse response;
  response.mutable_partial_success()->set_rejected_spans(2);
  response.mutable_partial_success()->set_error_message("too old");
  collector_.AnswerWith("200 OK", response.SerializeAsString());
  const CollectorAnswer answer = Post(*client_);
  EXPECT_EQ(answer.kind, CollectorAnswer::Kind::kTaken);
  EXPECT_EQ(answer.rejected, 2);
  EXPECT_EQ(answer.error, "too old");
}

TEST_F(CollectorClientTest, NobodyListens) {
  std::string url;
  {
    Collector gone;
    url = gone.url();
  }
  const CollectorAnswer answer = Post(*Client(url));
  EXPECT_EQ(answer.kind, CollectorAnswer::Kind::kTryLater);
  EXPECT_THAT(answer.error, HasSubstr("Failed to connect"));
}

TEST_F(CollectorClientTest, AProxyOfTheEnvironmentIsNotUsed) {
  setenv("http_proxy", "http://127.0.0.1:1", /*overwrite=*/1);
  EXPECT_EQ(Post(*Client(collector_.url())).kind, CollectorAnswer::Kind::kTaken);
  unsetenv("http_proxy");
}

TEST_F(CollectorClientTest, AWaitEndsWhenWakeMovesItsTime) {
  collector_.Hold();
  std::atomic<bool> end{false};
  std::thread waking([&] {
    collector_.AwaitRequests(1);
    end = true;
    client_->Wake();
  });
  const CollectorAnswer answer =
      client_->Post("", [&] { return end ? Clock::time_point() : Clock::time_point::max(); });
  waking.join();
  EXPECT_EQ(answer.kind, CollectorAnswer::Kind::kTryLater);
  EXPECT_EQ(answer.error, "no answer in time");
}

}  // namespace
}  // namespace phimap::testing
