// Tests that a stream is slowed down when there is no memory for its answer. The stream waits for
// memory, and its client waits for the stream.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/thread/steady_time.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/threads.h"

namespace phimap::testing {
namespace {

class TransformBackpressureTest : public ServerFixture {
 protected:
  TransformBackpressureTest() {
    // A row takes 12 bytes in a request, which are charged twice when they arrive, and 120 bytes in
    // the answer. While a call of 5,000 rows is under way, the remaining memory suffices for a
    // request of 3,000 rows (about 73 KB), but not for its answer (360 KB).
    options_.memory_bytes = int64_t{1} << 20;
    options_.http = "127.0.0.1:0";
    hooks_.transform_clock = [this] {
      if (++readings_ == held_reading_) taken_.Wait();
      return SteadyNow();
    };
    Start();
    MustBuild("letter", "f1(landmarks=30)");
  }
  ~TransformBackpressureTest() override {
    taken_.Open();
    Stop();
  }

  static v1::TransformRequest Request(int rows) {
    return TransformOf("letter", UniformExamples(rows, 3));
  }
  static v1::TransformRequest StreamRequest(int number, int rows, uint64_t seed) {
    return TransformOf(number == 0 ? "letter" : "", UniformExamples(rows, 3, seed));
  }
  // Begins a call of 5,000 rows, which are too many for the loop to compute. It waits, once a
  // worker has taken it, until taken_ opens, and must then succeed. The clock is read twice for
  // each request: first on the event loop, when it arrives, and then when a worker takes it.
  std::thread BeginHeldCall() {
    held_reading_ = readings_ + 2;
    std::thread client([this] { EXPECT_THAT(Transform(Request(5000)), IsOk()); });
    taken_.AwaitWaiting();
    return client;
  }
  void AwaitScraped(const std::string& line) {
    while (!absl::StrContains(Scrape(), line)) {
    }
  }

  static constexpr int kWaitingRows = 3000;
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

TEST_F(TransformBackpressureTest, AStreamThatFindsTheMemoryFullIsAnsweredWhenThereIsRoom) {
  std::thread client = BeginHeldCall();
  // There is no memory for the answer, so a unary call is refused.
  ASSERT_EQ(FactsOf(Transform(Request(kWaitingRows))).reason, "REQUEST_MEMORY_FULL");

  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  ASSERT_TRUE(stream->Write(StreamRequest(0, kWaitingRows, 1)));
  AwaitScraped(kRead);
  taken_.Open();
  client.join();
  v1::TransformResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.features().rows(), kWaitingRows);
  ExpectEnds(*stream);
}

TEST_F(TransformBackpressureTest, AStreamThatWaitsReadsNoFurtherHoweverManyComeAfter) {
  constexpr int kRequests = 8;
  std::thread client = BeginHeldCall();
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_TRUE(stream->Write(StreamRequest(i, i == 0 ? kWaitingRows : 10, i)));
  }
  AwaitScraped(kRead);
  // This call arrives on the same connection after the stream's requests. When it is answered, the
  // server has had its chance to read a second request of the stream.
  ASSERT_THAT(Transform(Request(1)), IsOk());
  EXPECT_TRUE(absl::StrContains(Scrape(), kRead));
  taken_.Open();
  client.join();
  v1::TransformResponse response;
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(stream->Read(&response)) << i;
  ExpectEnds(*stream);
}

TEST_F(TransformBackpressureTest, AStreamThatIsGivenUpWhileItWaitsEnds) {
  std::thread client = BeginHeldCall();
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  ASSERT_TRUE(stream->Write(StreamRequest(0, kWaitingRows, 1)));
  AwaitScraped(kRead);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), Code::CANCELLED);
  // The server drops the stream although no memory has become free.
  AwaitScraped(kCancelled);
  taken_.Open();
  client.join();
}

// Together, the streams need many times the available memory. Even a single request needs more than
// half of it.
TEST_F(TransformBackpressureTest, StreamsThatShareALittleMemoryAreAllAnsweredInFull) {
  options_.memory_bytes = 65536;
  Restart();
  constexpr int kStreams = 6;
  constexpr int kRequests = 40;
  std::vector<std::string> expected;
  for (int i = 0; i < kRequests; ++i) {
    const v1::TransformRequest request = StreamRequest(0, 300, i);
    v1::TransformResponse response;
    grpc::Status status;
    // The call may be refused at first, because the previous answer may still hold memory.
    do {
      status = Transform(request, &response);
    } while (status.error_code() == Code::RESOURCE_EXHAUSTED);
    ASSERT_TRUE(status.ok()) << status.error_message();
    expected.push_back(response.features().float32_le());
  }
  std::atomic<int> right{0};
  RunTogether(kStreams, [&](int) {
    grpc::ClientContext context;
    const auto stream = transforms_->TransformStream(&context);
    std::thread writer([&] {
      for (int i = 0; i < kRequests; ++i) {
        if (!stream->Write(StreamRequest(i, 300, i))) return;
      }
      stream->WritesDone();
    });
    v1::TransformResponse response;
    for (int i = 0; stream->Read(&response); ++i) {
      right += response.features().float32_le() == expected[i];
    }
    writer.join();
    EXPECT_THAT(stream->Finish(), IsOk());
  });
  EXPECT_EQ(right, kStreams * kRequests);
}

}  // namespace
}  // namespace phimap::testing
