// Tests how a server answers when its requests need more memory than it has.
#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "core/thread/steady_time.h"
#include "tests/server/api/server_fixture.h"

namespace phimap::testing {
namespace {

class TransformOverloadTest : public ServerFixture {
 protected:
  TransformOverloadTest() {
    options_.memory_bytes = kMemory;
    options_.http = "127.0.0.1:0";
    // The scheduler reads the clock twice for each request: first on the event loop, when it
    // arrives, and then when a worker takes it. The first request waits at its second reading until
    // the test opens taken_.
    hooks_.transform_clock = [this] {
      if (++readings_ == 2) taken_.Wait();
      return SteadyNow();
    };
    Start();
  }
  ~TransformOverloadTest() override {
    taken_.Open();
    Stop();
  }

  static v1::TransformRequest Request(int rows) {
    return TransformOf("letter", UniformExamples(rows, 3));
  }

  static constexpr int64_t kMemory = int64_t{1} << 20;

  std::atomic<int> readings_{0};
  Gate taken_;
};

TEST_F(TransformOverloadTest, WhatDoesNotFitIsRefusedAtOnceWithADelayAndTheRestIsServed) {
  // A row takes 12 bytes in the request and 120 in the answer. 12,000 rows need more than all of
  // the memory, but are accepted because no other request is under way. They are also too many for
  // an event loop to compute by itself.
  MustBuild("letter", "f1(landmarks=30)");
  grpc::Status first;
  v1::TransformResponse features;
  std::thread client([&] { first = Transform(Request(12000), &features); });
  taken_.AwaitWaiting();

  v1::TransformResponse response;
  const grpc::Status refused = Transform(Request(1), &response);
  EXPECT_EQ(refused.error_code(), Code::RESOURCE_EXHAUSTED);
  const ErrorFacts facts = FactsOf(refused);
  EXPECT_EQ(facts.reason, "REQUEST_MEMORY_FULL");
  EXPECT_EQ(facts.metadata.at("limit"), std::to_string(kMemory));
  ASSERT_TRUE(facts.retry_ms.has_value());
  EXPECT_GE(*facts.retry_ms, 10);
  EXPECT_LE(*facts.retry_ms, 2000);
  EXPECT_TRUE(absl::StrContains(Scrape(),
                                "phimap_refused_total{grpc_service=\"phimap.v1.TransformService\","
                                "reason=\"request_memory_full\"} 1"));

  taken_.Open();
  client.join();
  EXPECT_TRUE(first.ok()) << first.error_message();
  EXPECT_EQ(features.features().rows(), 12000);
  // The bytes of a request and its answer are charged until the call is gone, which may be after
  // the client has read the answer. The next call may therefore be refused, too. The test tries
  // again, as a client would. A minute is far more than this takes on any machine; if the bytes are
  // never released, the test fails here.
  const absl::Time give_up = absl::Now() + absl::Minutes(1);
  grpc::Status second;
  do {
    second = Transform(Request(1), &response);
  } while (second.error_code() == Code::RESOURCE_EXHAUSTED && absl::Now() < give_up);
  EXPECT_TRUE(second.ok()) << second.error_message();
  EXPECT_TRUE(absl::StrContains(Scrape(), "phimap_transform_batch_requests_count 2"));
}

}  // namespace
}  // namespace phimap::testing
