// Tests that a client that makes the server work for nothing loses its connection.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "server/rpc/transport/connection_limits.h"
#include "tests/server/rpc/transport/connection_fixture.h"
#include "tests/server/support/raw_frames.h"
#include "tests/server/support/raw_http2_client.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// Opens streams and resets each of them at once.
void OpenAndReset(RawFrameClient& client, const std::string& path, uint32_t first, uint32_t count) {
  std::string frames;
  for (uint32_t stream = first; stream < first + 2 * count; stream += 2) {
    frames += Frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream, UsualHeaders(path));
    frames += Frame(NGHTTP2_RST_STREAM, 0, stream, std::string(3, '\0') + char{NGHTTP2_CANCEL});
  }
  client.Send(frames);
}
constexpr uint32_t kManyResets = 10'000;  // the burst plus all resets allowed within 40 s

TEST_F(ConnectionTest, ResetsOfStreamsWithoutAnAnswerUpToTheBurstAreTaken) {
  Serve();
  RawFrameClient client(server_->Connect());
  OpenAndReset(client, "/silent", 1, ResetAllowance::kBurst);
  EXPECT_TRUE(client.RoundTrip());
  EXPECT_EQ(Streams(), ResetAllowance::kBurst);
}

TEST_F(ConnectionTest, FloodOfResetsOfStreamsWithoutAnAnswerEndsTheConnection) {
  Serve();
  RawFrameClient client(server_->Connect());
  OpenAndReset(client, "/silent", 1, kManyResets);
  EXPECT_FALSE(client.RoundTrip());
  EXPECT_EQ(client.GoAway(), NGHTTP2_ENHANCE_YOUR_CALM);
  server_->AwaitNoConnections();
}

TEST_F(ConnectionTest, ResetsOfStreamsThatWereAnsweredAreNotCounted) {
  Serve();
  RawFrameClient client(server_->Connect());
  OpenAndReset(client, "/large/1", 1, kManyResets);
  EXPECT_TRUE(client.RoundTrip());
  // The resets so far have not used up the allowance for resets of streams without an answer,
  // either.
  OpenAndReset(client, "/silent", 2 * kManyResets + 1, ResetAllowance::kBurst);
  EXPECT_TRUE(client.RoundTrip());
}

TEST_F(ConnectionTest, StreamsThatWereAnsweredEarnResetsOfSuchAsWereNot) {
  Serve();
  RawFrameClient client(server_->Connect());
  constexpr uint32_t kBurst = ResetAllowance::kBurst;
  constexpr uint32_t kMore = 1'500;
  OpenAndReset(client, "/silent", 1, kBurst);
  OpenAndReset(client, "/large/1", 1 + 2 * kBurst, kMore);
  OpenAndReset(client, "/silent", 1 + 2 * (kBurst + kMore), kMore);
  EXPECT_TRUE(client.RoundTrip());
  EXPECT_EQ(Streams(), kBurst + 2 * kMore);
}

TEST_F(ConnectionTest, ResetsOnAConnectionOfManyClientsAreNotCounted) {
  server_ = std::make_unique<LoopServer>(acceptor_, ConnectionLimits(), /*shared=*/true);
  RawFrameClient client(server_->Connect());
  OpenAndReset(client, "/silent", 1, kManyResets);
  EXPECT_TRUE(client.RoundTrip());
  EXPECT_EQ(Streams(), kManyResets);
}

// The client sends more than a stream's window, so that it is the server that resets the stream.
TEST_F(ConnectionTest, ResetsThatTheClientProvokesAreCountedAsItsOwn) {
  Serve({.stream_window = 10});
  RawFrameClient client(server_->Connect());
  ASSERT_TRUE(client.RoundTrip());  // the limit holds when the client has acknowledged it
  for (uint32_t stream = 1; stream < 2 * kManyResets; stream += 2) {
    client.Send(Frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream, UsualHeaders("/silent")) +
                Frame(NGHTTP2_DATA, 0, stream, std::string(11, 'x')));
  }
  EXPECT_FALSE(client.RoundTrip());
  EXPECT_EQ(client.ResetOf(1), NGHTTP2_FLOW_CONTROL_ERROR);
  EXPECT_EQ(client.GoAway(), NGHTTP2_ENHANCE_YOUR_CALM);
  server_->AwaitNoConnections();
}

// A client that reconnects does not get its allowance anew.
TEST_F(ConnectionTest, ResetsOfAHostEndTheConnectionOfAStrangerAndLetAnotherOnesCallsEnd) {
  constexpr int kFaults = 100;
  server_ = std::make_unique<LoopServer>(acceptor_, ConnectionLimits(), /*shared=*/false, kFaults);
  RawFrameClient known(server_->Connect());
  OpenAndReset(known, "/silent", 1, kFaults);
  EXPECT_TRUE(known.RoundTrip());
  EXPECT_EQ(known.GoAway(), -1);
  known.Headers(2 * kFaults + 1, UsualHeaders("/echo"));
  OpenAndReset(known, "/silent", 2 * kFaults + 3, 1);
  ASSERT_TRUE(known.RoundTrip());
  ASSERT_TRUE(known.RoundTrip());  // the answer to a ping may overtake the GOAWAY
  EXPECT_EQ(known.GoAway(), NGHTTP2_NO_ERROR);
  known.Send(Frame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 2 * kFaults + 1, "x"));
  int round_trips = 0;
  while (known.RoundTrip()) ASSERT_LT(++round_trips, 10) << "the connection ends after the call";
  EXPECT_EQ(known.got().back().stream, 2 * kFaults + 1);
}

TEST_F(ConnectionTest, RefusedCallsOfAHostEndItsStrangersAndNoOtherConnection) {
  constexpr uint32_t kFaults = 100;
  server_ = std::make_unique<LoopServer>(acceptor_, ConnectionLimits(), /*shared=*/false,
                                         static_cast<int>(kFaults));
  RawFrameClient known(server_->Connect());
  known.Headers(1, UsualHeaders("/count"), /*end=*/true);
  ASSERT_TRUE(known.RoundTrip());
  RawFrameClient stranger(server_->Connect());
  for (uint32_t i = 0; i < kFaults; ++i) {
    stranger.Headers(2 * i + 1, UsualHeaders("/refused"), /*end=*/true);
  }
  EXPECT_TRUE(stranger.RoundTrip());
  stranger.Headers(2 * kFaults + 1, UsualHeaders("/refused"), /*end=*/true);
  EXPECT_FALSE(stranger.RoundTrip());
  EXPECT_EQ(stranger.GoAway(), NGHTTP2_ENHANCE_YOUR_CALM);
  known.Headers(3, UsualHeaders("/refused"), /*end=*/true);
  EXPECT_TRUE(known.RoundTrip());
}

std::string RefusedCalls(uint32_t count) {
  std::string frames;
  for (uint32_t i = 0; i < count; ++i) {
    frames += Frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 2 * i + 1,
                    UsualHeaders("/refused"));
  }
  return frames;
}

// Many calls that are refused, of a client that reads none of the answers. What the connection
// holds stays within the limit for strangers but for what one piece of input adds, and the
// connection ends although nothing of its input was wrong.
TEST_F(ConnectionTest, RefusedCallsOfAClientThatReadsNothingTakeLittleMemory) {
  constexpr size_t kPiece = 32 << 10;
  ConnectionLimits limits{.max_stranger_stall = absl::Milliseconds(300)};
  Serve(limits);
  size_t most = 0;
  std::atomic<bool> open{true};
  std::thread watch([&] {
    while (open) {
      server_->Run([&] {
        server_->ForEach(
            [&](const Connection& connection) { most = std::max(most, connection.HeldBytes()); });
      });
    }
  });
  RawFrameClient client(server_->Connect());
  client.Send(RefusedCalls(200'000));  // returns when the server has closed the connection
  open = false;
  watch.join();
  EXPECT_GT(most, limits.max_stranger_bytes / 3);
  EXPECT_LT(most, limits.max_stranger_bytes + kPiece);
  server_->AwaitNoConnections();
}

TEST_F(ConnectionTest, StrangersThatReadTheirAnswersGetThemAll) {
  constexpr uint32_t kCalls = 50'000;
  Serve();
  RawFrameClient client(server_->Connect());
  std::thread sender([&] { client.Send(RefusedCalls(kCalls)); });
  EXPECT_TRUE(client.Await(NGHTTP2_HEADERS, kCalls));
  sender.join();
}

// Calls that wait take memory that no reading of answers frees, so the limit must leave it to them.
TEST_F(ConnectionTest, AsManyCallsAsAllowedMayWaitAndOthersAreStillServed) {
  Serve({.max_streams = 4096});
  RawHttp2Client client(server_->Connect());
  for (int i = 0; i + 1 < 4096; ++i) client.Call("/silent");
  ASSERT_TRUE(client.RoundTrip());
  const int32_t echo = client.Call("/echo");
  client.Send(echo, "x", /*end=*/true);
  EXPECT_TRUE(client.AwaitEnd(echo));
  EXPECT_EQ(client.answer(echo).body, "x");
}

TEST_F(ConnectionTest, WhoSpeaksAnotherProtocolIsToldSo) {
  Serve();
  for (const std::string request :
       {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "POST /phimap HTTP/1.0\r\n\r\n"}) {
    const int fd = server_->Connect();
    ASSERT_EQ(send(fd, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    std::string answer;
    char piece[1024];
    for (ssize_t got; (got = recv(fd, piece, sizeof(piece), 0)) > 0;) {
      answer.append(piece, static_cast<size_t>(got));
    }
    close(fd);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 505 "));
    EXPECT_THAT(answer, HasSubstr("This port speaks gRPC"));
  }
  server_->AwaitNoConnections();
}

TEST_F(ConnectionTest, FloodOfPingsEndsTheConnection) {
  Serve({.max_control_frames = 100});
  RawHttp2Client client(server_->Connect());
  ASSERT_TRUE(client.RoundTrip());
  for (int i = 0; i < 10'000; ++i) client.Ping();
  EXPECT_FALSE(client.RunUntil([] { return false; }));
  EXPECT_TRUE(client.closed());
  ASSERT_FALSE(client.goaways().empty());
  EXPECT_EQ(client.goaways().back().second, NGHTTP2_ENHANCE_YOUR_CALM);
  server_->AwaitNoConnections();
}

TEST_F(ConnectionTest, FloodOfSettingsEndsTheConnection) {
  Serve({.max_control_frames = 100});
  RawHttp2Client client(server_->Connect());
  ASSERT_TRUE(client.RoundTrip());
  for (int i = 0; i < 900; ++i) client.Settings();
  EXPECT_FALSE(client.RunUntil([] { return false; }));
  EXPECT_TRUE(client.closed());
  server_->AwaitNoConnections();
}

TEST_F(ConnectionTest, FloodsOfUnknownFramesAndOfAStrangersWindowsEndTheConnection) {
  ConnectionLimits limits{.max_control_frames = 100};
  for (const uint8_t type : {uint8_t{0xf0}, uint8_t{NGHTTP2_WINDOW_UPDATE}}) {
    Serve(limits);
    RawFrameClient client(server_->Connect());
    std::string frames;
    for (int i = 0; i < 90; ++i) frames += Frame(type, 0, 0, std::string(3, '\0') + '\1');
    client.Send(frames);
    EXPECT_TRUE(client.RoundTrip());
    for (int i = 0; i < 3; ++i) client.Send(frames);
    EXPECT_FALSE(client.RoundTrip());
    EXPECT_EQ(client.GoAway(), NGHTTP2_ENHANCE_YOUR_CALM);
  }
}

TEST_F(ConnectionTest, PingsBelowTheLimitAreAllAnswered) {
  Serve({.max_control_frames = 100});
  RawHttp2Client client(server_->Connect());
  for (int i = 0; i < 50; ++i) client.Ping();
  EXPECT_TRUE(client.RunUntil([&] { return client.pings_answered() == 50; }));
}

}  // namespace
}  // namespace phimap::testing
