// Limits on clients' headers and trailers, tested with frames made by hand.
#include <malloc.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/thread/steady_time.h"
#include "server/rpc/transport/connection.h"
#include "tests/server/support/loop_server.h"
#include "tests/server/support/raw_frames.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Counts requests, and never answers.
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
    stream.NoteAdmitted();
    stream.SetHandler(std::make_shared<Handler>(*this));
  }

  // How long each request occupies the loop.
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
// The payload of a frame full of references to the field that was sent last. Each reference is one
// byte long.
const std::string& Flood() {
  static const std::string flood(16'000, kNewest);
  return flood;
}

TEST_F(HeaderLimitsTest, TrailersUpToTheLimitEndTheRequestAndOneByteMoreResetsIt) {
  Serve({.max_header_bytes = 1'000});
  client_->Headers(1, UsualHeaders("/"));
  client_->Headers(1, Literal("a", std::string(1'000 - 33, 'v')), /*end=*/true);
  client_->Headers(3, UsualHeaders("/"));
  client_->Headers(3, Literal("a", std::string(1'000 - 32, 'v')), /*end=*/true);
  ASSERT_TRUE(client_->RoundTrip());
  ASSERT_TRUE(client_->RoundTrip());  // the answer to one ping may overtake the reset
  ExpectRequests(2, 0);
  ExpectRequestEnds(1);
  EXPECT_EQ(client_->ResetOf(1), -1);
  EXPECT_EQ(client_->ResetOf(3), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST_F(HeaderLimitsTest, FloodOfTrailersIsNotLookedAtAndOthersAreServed) {
  Serve();
  client_->Headers(1, UsualHeaders("/") + Indexed("x", std::string(kField, 'v')));
  client_->Headers(3, UsualHeaders("/"));
  // The references in this frame stand for 64 MB of fields.
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
  Serve({.max_header_bytes = UsualHeaderBytes("/") + kField + 33,
         .max_dropped_header_bytes = 10 * (kField + 33)});
  const std::string fits = UsualHeaders("/") + Indexed("x", std::string(kField, 'v'));
  client_->Headers(1, fits + std::string(10, kNewest));
  ASSERT_TRUE(client_->RoundTrip());
  ExpectRequests(1, 1);
  RawFrameClient other(server_->Connect());
  other.Headers(1, fits + std::string(11, kNewest));
  EXPECT_FALSE(other.RoundTrip());
  EXPECT_EQ(other.GoAway(), NGHTTP2_ENHANCE_YOUR_CALM);
  ExpectRequests(1, 1);
  // The first connection is not affected.
  EXPECT_TRUE(client_->RoundTrip());
}

// nghttp2 gives no reason for the end of the connection, and cannot go on without the field.
TEST_F(HeaderLimitsTest, AFieldThatNghttp2CannotTakeEndsTheConnectionWithAReason) {
  Serve();
  const std::string block = UsualHeaders("/x") + Literal("long", std::string(70'000, 'x'));
  client_->Send(Frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, block.substr(0, 16'000)));
  size_t sent = 16'000;
  for (; block.size() - sent > 16'000; sent += 16'000) {
    client_->Send(Frame(NGHTTP2_CONTINUATION, 0, 1, block.substr(sent, 16'000)));
  }
  client_->Send(Frame(NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, block.substr(sent)));
  EXPECT_FALSE(client_->RoundTrip());
  EXPECT_EQ(client_->GoAway(), NGHTTP2_COMPRESSION_ERROR);
  EXPECT_THAT(client_->got().back().payload, HasSubstr("over 65536 bytes"));
}

TEST_F(HeaderLimitsTest, FieldsOfManyBlocksAreCountedTogether) {
  Serve({.max_header_bytes = UsualHeaderBytes("/") + kField + 33,
         .max_dropped_header_bytes = 10 * (kField + 33)});
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
  // The last byte of the value is not allowed in HTTP. A field with such a value is dropped, but
  // only after the whole value was examined.
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
  Serve({.max_header_bytes = 1'000});
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
  // The streams themselves need only a tenth of this bound.
  EXPECT_LT(mallinfo2().uordblks, before + kStreams * kBytes / 2);
}

TEST_F(HeaderLimitsTest, ConnectionWithHundredsOfCallsInOneReadLetsOthersIn) {
  acceptor_.work = absl::Microseconds(50);
  Serve();
  RawFrameClient other(server_->Connect());
  ASSERT_TRUE(client_->RoundTrip());
  ASSERT_TRUE(other.RoundTrip());
  constexpr uint32_t kCalls = 300;
  // References to HPACK's static table for POST, http and "/", one byte each.
  const std::string call = "\x83\x86\x84";
  std::string calls =
      Frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, call + Indexed(":authority", "test"));
  for (uint32_t i = 1; i < kCalls; ++i) {
    calls += Frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2 * i + 1, call + kNewest);
  }
  // The frames of both clients are sent from the loop's thread, so both connections are readable
  // when the loop polls next.
  server_->Run([&] {
    client_->Send(calls);
    other.Headers(1, UsualHeaders("/other"));
  });
  ASSERT_TRUE(other.RoundTrip());
  ASSERT_TRUE(client_->RoundTrip());
  ExpectRequests(kCalls + 1, 0);
  const auto& paths = acceptor_.paths;
  // In each round, the loop serves a connection for 500 µs and then at most 32 more calls or 4 KiB.
  EXPECT_LT(std::find(paths.begin(), paths.end(), "/other") - paths.begin(), 100);
}

}  // namespace
}  // namespace phimap::testing
