// Limits on the headers and trailers of clients: frames by hand.
#include <malloc.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "server/sync/steady_time.h"
#include "server/transport/connection.h"
#include "tests/server/support/loop_server.h"
#include "tests/server/support/raw_frames.h"

namespace phimap {
namespace {

using testing::Frame;
using testing::Indexed;
using testing::kNewest;
using testing::Literal;
using testing::LoopServer;
using testing::RawFrameClient;
using testing::UsualHeaderBytes;
using testing::UsualHeaders;

// Counts, and never answers.
class CountingAcceptor final : public StreamAcceptor {
 public:
  class Handler final : public StreamHandler {
   public:
    explicit Handler(CountingAcceptor& counts) : counts_(counts) {}
    void OnData(absl::string_view) override {}
    void OnRequestEnd() override { ++counts_.request_ends; }
    void OnSent() override {}
    void OnClosed(ResetCode) override {}

   private:
    CountingAcceptor& counts_;
  };

  void OnRequest(Stream& stream, const RequestHead& head, bool) override {
    ++requests;
    paths.emplace_back(head.Find(":path"));
    types.emplace_back(head.Find("content-type"));
    const absl::Time until = SteadyNow() + work;
    while (SteadyNow() < until) {
    }
    too_large += head.too_large ? 1 : 0;
    stream.SetHandler(std::make_shared<Handler>(*this));
  }

  // Time that a request takes of the loop.
  absl::Duration work = absl::ZeroDuration();
  std::vector<std::string> paths;
  std::vector<std::string> types;
  int requests = 0;
  int too_large = 0;
  int request_ends = 0;
};

class HeaderLimitsTest : public ::testing::Test {
 protected:
  void Serve(const ConnectionLimits& limits = {}) {
    server_ = std::make_unique<LoopServer>(acceptor_, limits);
    client_ = std::make_unique<RawFrameClient>(server_->Connect());
  }
  void ExpectRequests(int requests, int too_large) {
    server_->Run([&] {
      EXPECT_EQ(acceptor_.requests, requests);
      EXPECT_EQ(acceptor_.too_large, too_large);
    });
  }
  void ExpectRequestEnds(int expected) {
    server_->Run([&] { EXPECT_EQ(acceptor_.request_ends, expected); });
  }

  CountingAcceptor acceptor_;
  std::unique_ptr<LoopServer> server_;
  std::unique_ptr<RawFrameClient> client_;
};

constexpr size_t kField = 4'000;
// One byte on the wire each, once the field has been sent; a frame's worth.
const std::string& Flood() {
  static const std::string flood(16'000, kNewest);
  return flood;
}

TEST_F(HeaderLimitsTest, TrailersUpToTheLimitEndTheRequestAndOneByteMoreResetsIt) {
  ConnectionLimits limits;
  limits.max_header_bytes = 1'000;
  Serve(limits);
  client_->Headers(1, UsualHeaders("/"));
  client_->Headers(1, Literal("a", std::string(1'000 - 33, 'v')), /*end=*/true);
  client_->Headers(3, UsualHeaders("/"));
  client_->Headers(3, Literal("a", std::string(1'000 - 32, 'v')), /*end=*/true);
  ASSERT_TRUE(client_->RoundTrip());
  ASSERT_TRUE(client_->RoundTrip());  // answers of pings overtake resets
  ExpectRequests(2, 0);
  ExpectRequestEnds(1);
  EXPECT_EQ(client_->ResetOf(1), -1);
  EXPECT_EQ(client_->ResetOf(3), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST_F(HeaderLimitsTest, FloodOfTrailersIsNotLookedAtAndOthersAreServed) {
  Serve();
  client_->Headers(1, UsualHeaders("/") + Indexed("x", std::string(kField, 'v')));
  client_->Headers(3, UsualHeaders("/"));
  // 64 MB of fields a frame.
  client_->Headers(1, Flood(), /*end=*/true);
  client_->Headers(3, Literal("a", "b"), /*end=*/true);
  ASSERT_TRUE(client_->RoundTrip());
  ASSERT_TRUE(client_->RoundTrip());
  EXPECT_EQ(client_->ResetOf(1), NGHTTP2_ENHANCE_YOUR_CALM);
  EXPECT_EQ(client_->ResetOf(3), -1);
  ExpectRequestEnds(1);
}

TEST_F(HeaderLimitsTest,
       FieldsOfOneBlockUpToTheLimitOfASecondAreDroppedAndOneMoreEndsTheConnection) {
  ConnectionLimits limits;
  limits.max_header_bytes = UsualHeaderBytes("/") + kField + 33;
  limits.max_dropped_header_bytes = 10 * (kField + 33);
  Serve(limits);
  const std::string fits = UsualHeaders("/") + Indexed("x", std::string(kField, 'v'));
  client_->Headers(1, fits + std::string(10, kNewest));
  ASSERT_TRUE(client_->RoundTrip());
  ExpectRequests(1, 1);
  RawFrameClient other(server_->Connect());
  other.Headers(1, fits + std::string(11, kNewest));
  EXPECT_FALSE(other.RoundTrip());
  EXPECT_EQ(other.GoAway(), NGHTTP2_ENHANCE_YOUR_CALM);
  ExpectRequests(1, 1);
  // The first goes on.
  EXPECT_TRUE(client_->RoundTrip());
}

TEST_F(HeaderLimitsTest, FieldsOfManyBlocksAreCountedTogether) {
  ConnectionLimits limits;
  limits.max_header_bytes = UsualHeaderBytes("/") + kField + 33;
  limits.max_dropped_header_bytes = 10 * (kField + 33);
  Serve(limits);
  client_->Headers(1, UsualHeaders("/") + Indexed("x", std::string(kField, 'v')));
  for (uint32_t stream = 3; stream < 3 + 2 * 12; stream += 2) {
    client_->Headers(stream, UsualHeaders("/") + std::string(2, kNewest));
  }
  EXPECT_FALSE(client_->RoundTrip());
  EXPECT_EQ(client_->GoAway(), NGHTTP2_ENHANCE_YOUR_CALM);
  ExpectRequests(11, 10);
}

TEST_F(HeaderLimitsTest, FieldsThatAreNotHttpCountAsOthersDo) {
  Serve();
  // Its last byte is none that a value may have: such a field is dropped, but after all of it was
  // looked at.
  const std::string invalid = std::string(kField, 'v') + '\x01';
  client_->Headers(1, UsualHeaders("/") + Indexed("x", invalid));
  client_->Headers(3, UsualHeaders("/") + std::string(5, kNewest));
  ASSERT_TRUE(client_->RoundTrip());
  ExpectRequests(2, 1);
  client_->Headers(5, UsualHeaders("/") + Flood());
  EXPECT_FALSE(client_->RoundTrip());
  EXPECT_EQ(client_->GoAway(), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST_F(HeaderLimitsTest, SmallFieldAfterOneThatIsTooLargeIsKept) {
  ConnectionLimits limits;
  limits.max_header_bytes = 1'000;
  Serve(limits);
  client_->Headers(1, UsualHeaders("/") + Literal("x", std::string(1'000, 'v')) +
                          Literal("content-type", "application/grpc"));
  ASSERT_TRUE(client_->RoundTrip());
  ExpectRequests(1, 1);
  EXPECT_EQ(acceptor_.types.at(0), "application/grpc");
}

TEST_F(HeaderLimitsTest, HeadersOfRequestsThatAreUnderWayTakeNoMemory) {
  Serve();
  constexpr uint32_t kStreams = 1'000;
  constexpr size_t kBytes = 15'000;
  ASSERT_TRUE(client_->RoundTrip());
  const size_t before = mallinfo2().uordblks;
  for (uint32_t i = 0; i < kStreams; ++i) {
    client_->Headers(2 * i + 1, UsualHeaders("/") + Literal("x", std::string(kBytes, 'v')));
  }
  ASSERT_TRUE(client_->RoundTrip());
  ExpectRequests(kStreams, 0);
  // A stream itself needs a tenth of this.
  EXPECT_LT(mallinfo2().uordblks, before + kStreams * kBytes / 2);
}

TEST_F(HeaderLimitsTest, ConnectionWithHundredsOfCallsInOneReadLetsOthersIn) {
  acceptor_.work = absl::Microseconds(50);
  Serve();
  RawFrameClient other(server_->Connect());
  ASSERT_TRUE(client_->RoundTrip());
  ASSERT_TRUE(other.RoundTrip());
  constexpr uint32_t kCalls = 300;
  // Entries of HPACK's own table: POST, http and "/", a byte each.
  const std::string call = "\x83\x86\x84";
  std::string calls =
      Frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, call + Indexed(":authority", "test"));
  for (uint32_t i = 1; i < kCalls; ++i) {
    calls += Frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2 * i + 1, call + kNewest);
  }
  // On the loop's thread: both wait for it to poll.
  server_->Run([&] {
    client_->Send(calls);
    other.Headers(1, UsualHeaders("/other"));
  });
  ASSERT_TRUE(other.RoundTrip());
  ASSERT_TRUE(client_->RoundTrip());
  ExpectRequests(kCalls + 1, 0);
  const auto& paths = acceptor_.paths;
  // A share is 500 us, and 32 calls or 4 KiB more.
  EXPECT_LT(std::find(paths.begin(), paths.end(), "/other") - paths.begin(), 100);
}

}  // namespace
}  // namespace phimap
