// A stream that meets a full queue is slowed down: it waits for room, and the client for it.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {
namespace {

using Code = grpc::StatusCode;

class TransformBackpressureTest : public ServerFixture {
 protected:
  TransformBackpressureTest() {
    // 12 bytes of a row in, 120 out: 496 rows.
    options_.queue_bytes = 65536;
    options_.http = "127.0.0.1:0";
    hooks_.transform_clock = [this] {
      if (++readings_ == held_reading_) taken_.Wait();
      return absl::Now();
    };
    Start();
    MustBuild("letter", "f1(landmarks=30)");
  }
  ~TransformBackpressureTest() override {
    taken_.Open();
    Stop();
  }

  static v1::TransformRequest Request(int rows) {
    v1::TransformRequest request;
    request.set_reference("letter");
    *request.mutable_examples() = UniformExamples(rows, 3);
    return request;
  }
  static v1::TransformStreamRequest StreamRequest(int number, int rows, uint64_t seed) {
    v1::TransformStreamRequest request;
    if (number == 0) request.set_reference("letter");
    *request.mutable_examples() = UniformExamples(rows, 3, seed);
    return request;
  }
  // From now on, the next request stays where it was taken until taken_ opens.
  void HoldNextRequest() { held_reading_ = readings_ + 2; }
  void AwaitScraped(const std::string& line) {
    while (!absl::StrContains(Scrape(), line)) {
    }
  }

  static constexpr char kReceived[] =
      "grpc_server_msg_received_total{grpc_method=\"TransformStream\","
      "grpc_service=\"phimap.v1.TransformService\",grpc_type=\"bidi_stream\"} ";
  static constexpr char kRead[] =
      "grpc_server_msg_received_total{grpc_method=\"TransformStream\","
      "grpc_service=\"phimap.v1.TransformService\",grpc_type=\"bidi_stream\"} 1\n";

  static constexpr char kCancelled[] =
      "grpc_server_handled_total{grpc_code=\"Canceled\",grpc_method=\"TransformStream\","
      "grpc_service=\"phimap.v1.TransformService\",grpc_type=\"bidi_stream\"} 1\n";

  std::atomic<int> readings_{0};
  std::atomic<int> held_reading_{-1};
  Gate taken_;
};

TEST_F(TransformBackpressureTest, AStreamThatFindsTheQueueFullIsAnsweredWhenThereIsRoom) {
  HoldNextRequest();
  grpc::Status first;
  v1::TransformResponse features;
  std::thread client([&] { first = Transform(Request(500), &features); });
  taken_.AwaitWaiting();
  // It is full: a call by itself is refused.
  v1::TransformResponse none;
  ASSERT_EQ(FactsOf(Transform(Request(1), &none)).reason, "QUEUE_FULL");

  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  ASSERT_TRUE(stream->Write(StreamRequest(0, 400, 1)));
  AwaitScraped(kRead);
  taken_.Open();
  client.join();
  EXPECT_TRUE(first.ok()) << first.error_message();
  v1::TransformStreamResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.features().rows(), 400);
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(TransformBackpressureTest, AStreamThatWaitsKeepsTwoRequestsHoweverManyComeAfter) {
  constexpr int kRequests = 8;
  HoldNextRequest();
  grpc::Status first;
  v1::TransformResponse features;
  std::thread client([&] { first = Transform(Request(500), &features); });
  taken_.AwaitWaiting();
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(stream->Write(StreamRequest(i, 10, i)));
  AwaitScraped(absl::StrCat(kReceived, "2\n"));
  // The others have arrived, and a third would be read at once.
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(absl::StrContains(Scrape(), absl::StrCat(kReceived, "2\n")));
  }
  taken_.Open();
  client.join();
  v1::TransformStreamResponse response;
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(stream->Read(&response)) << i;
  stream->WritesDone();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(TransformBackpressureTest, AStreamThatIsGivenUpWhileItWaitsEnds) {
  HoldNextRequest();
  grpc::Status first;
  v1::TransformResponse features;
  std::thread client([&] { first = Transform(Request(500), &features); });
  taken_.AwaitWaiting();
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  ASSERT_TRUE(stream->Write(StreamRequest(0, 400, 1)));
  AwaitScraped(kRead);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), Code::CANCELLED);
  // The server has let go of it although nothing came free.
  AwaitScraped(kCancelled);
  taken_.Open();
  client.join();
  EXPECT_TRUE(first.ok()) << first.error_message();
}

// Together they want many times what the queue holds; each alone more than half of it at a time.
TEST_F(TransformBackpressureTest, StreamsThatShareASmallQueueAreAllAnsweredInFull) {
  constexpr int kStreams = 6;
  constexpr int kRequests = 40;
  std::vector<std::string> expected;
  for (int i = 0; i < kRequests; ++i) {
    v1::TransformRequest request = Request(1);
    *request.mutable_examples() = UniformExamples(300, 3, i);
    v1::TransformResponse response;
    grpc::Status status;
    // The last answer may still hold its bytes.
    do {
      status = Transform(request, &response);
    } while (status.error_code() == Code::RESOURCE_EXHAUSTED);
    ASSERT_TRUE(status.ok()) << status.error_message();
    expected.push_back(response.features().float32_le());
  }
  std::atomic<int> right{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < kStreams; ++c) {
    clients.emplace_back([&] {
      grpc::ClientContext context;
      const auto stream = transforms_->TransformStream(&context);
      std::thread writer([&] {
        for (int i = 0; i < kRequests; ++i) {
          if (!stream->Write(StreamRequest(i, 300, i))) return;
        }
        stream->WritesDone();
      });
      v1::TransformStreamResponse response;
      for (int i = 0; stream->Read(&response); ++i) {
        right += response.features().float32_le() == expected[i];
      }
      writer.join();
      const grpc::Status status = stream->Finish();
      EXPECT_TRUE(status.ok()) << status.error_message();
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, kStreams * kRequests);
}

}  // namespace
}  // namespace phimap::testing
