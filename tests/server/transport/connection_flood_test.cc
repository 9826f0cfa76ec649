// Tests that a client that makes the server work for nothing loses its connection.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "server/transport/reset_allowance.h"
#include "tests/server/support/raw_frames.h"
#include "tests/server/support/raw_http2_client.h"
#include "tests/server/transport/connection_fixture.h"

namespace phimap {
namespace {

using testing::ConnectionTest;
using testing::Frame;
using testing::LoopServer;
using testing::RawFrameClient;
using testing::RawHttp2Client;
using testing::UsualHeaders;

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

TEST_F(ConnectionTest, FloodOfPingsEndsTheConnection) {
  ConnectionLimits limits;
  limits.max_control_frames = 100;
  Serve(limits);
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
  ConnectionLimits limits;
  limits.max_control_frames = 100;
  Serve(limits);
  RawHttp2Client client(server_->Connect());
  ASSERT_TRUE(client.RoundTrip());
  for (int i = 0; i < 900; ++i) client.Settings();
  EXPECT_FALSE(client.RunUntil([] { return false; }));
  EXPECT_TRUE(client.closed());
  server_->AwaitNoConnections();
}

TEST_F(ConnectionTest, PingsBelowTheLimitAreAllAnswered) {
  ConnectionLimits limits;
  limits.max_control_frames = 100;
  Serve(limits);
  RawHttp2Client client(server_->Connect());
  for (int i = 0; i < 50; ++i) client.Ping();
  EXPECT_TRUE(client.RunUntil([&] { return client.pings_answered() == 50; }));
}

}  // namespace
}  // namespace phimap
