#include "server/rpc/transport/connection.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/transport/connection_fixture.h"
#include "tests/server/support/raw_frames.h"
#include "tests/server/support/raw_http2_client.h"

namespace phimap::testing {
namespace {

TEST_F(ConnectionTest, EchoesABodyAndEndsWithTrailers) {
  Serve();
  RawHttp2Client client(server_->Connect());
  const int32_t stream = client.Call("/echo", {{"x-name", "value"}});
  client.Send(stream, "hello", /*end=*/true);
  ASSERT_TRUE(client.AwaitEnd(stream));
  EXPECT_EQ(client.answer(stream).body, "hello");
  EXPECT_EQ(client.answer(stream).headers[":status"], "200");
  EXPECT_EQ(client.answer(stream).headers["done"], "yes");
  EXPECT_FALSE(client.answer(stream).reset.has_value());
  const StreamEvents events = EventsOf(0);
  EXPECT_EQ(events.closed, 1);
  EXPECT_EQ(events.code, ResetCode::kNoError);
  EXPECT_EQ(acceptor_.heads[0].Find("x-name"), "value");
}

TEST_F(ConnectionTest, LargeBodiesOfManyStreamsPassBothWaysThroughTheWindows) {
  Serve();
  RawHttp2Client client(server_->Connect());
  std::vector<int32_t> streams;
  std::vector<std::string> bodies;
  for (int i = 0; i < 4; ++i) {
    std::string body;
    for (int k = 0; k < 300'000 + i; ++k) body += static_cast<char>((k * 31 + i + k / 251) % 256);
    streams.push_back(client.Call("/echo"));
    client.Send(streams.back(), body, /*end=*/true);
    bodies.push_back(std::move(body));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    ASSERT_TRUE(client.AwaitEnd(streams[i]));
    EXPECT_TRUE(client.answer(streams[i]).body == bodies[i]);
    EXPECT_TRUE(client.answer(streams[i]).has_trailers);
  }
}

TEST_F(ConnectionTest, StreamMaySendItsWindowAndNoMoreUntilItIsConsumed) {
  ConnectionLimits limits{.stream_window = 32 << 10};
  Serve(limits);
  RawHttp2Client client(server_->Connect());
  ASSERT_TRUE(client.RoundTrip());
  const int32_t held = client.Call("/hold");
  client.Send(held, std::string(100'000, 'x'));
  ASSERT_TRUE(
      client.RunUntil([&] { return client.unsent(held) <= 100'000 - limits.stream_window; }));
  ASSERT_TRUE(client.RoundTrip());
  EXPECT_EQ(client.unsent(held), 100'000 - limits.stream_window);
  EXPECT_EQ(EventsOf(0).data_bytes, limits.stream_window);
  // A stream whose flow-control window is used up does not block other streams.
  const int32_t other = client.Call("/count");
  client.Send(other, std::string(1'000'000, 'y'), /*end=*/true);
  ASSERT_TRUE(client.AwaitEnd(other));
  EXPECT_EQ(EventsOf(1).data_bytes, 1'000'000);
}

TEST_F(ConnectionTest, ResetOfTheClientClosesTheStreamOnce) {
  Serve();
  RawHttp2Client client(server_->Connect());
  const int32_t stream = client.Call("/silent");
  client.Send(stream, "x");
  ASSERT_TRUE(client.RoundTrip());
  client.Reset(stream);
  ASSERT_TRUE(client.RoundTrip());
  EXPECT_EQ(EventsOf(0).closed, 1);
  EXPECT_EQ(EventsOf(0).code, ResetCode::kCancel);
}

TEST_F(ConnectionTest, ResetOfTheServerReachesTheClient) {
  Serve();
  RawHttp2Client client(server_->Connect());
  const int32_t stream = client.Call("/reset");
  ASSERT_TRUE(client.AwaitEnd(stream));
  EXPECT_EQ(client.answer(stream).reset, NGHTTP2_REFUSED_STREAM);
  ASSERT_TRUE(client.RoundTrip());
  EXPECT_EQ(EventsOf(0).closed, 1);
}

TEST_F(ConnectionTest, EndOfTheConnectionClosesEveryStream) {
  Serve();
  {
    RawHttp2Client client(server_->Connect());
    client.Call("/silent");
    client.Call("/hold");
    ASSERT_TRUE(client.RoundTrip());
  }
  server_->AwaitNoConnections();
  EXPECT_EQ(EventsOf(0).closed, 1);
  EXPECT_EQ(EventsOf(1).closed, 1);
}

TEST_F(ConnectionTest, HeadersUpToTheLimitAreKeptAndOneByteMoreIsNot) {
  // RFC 9113 counts the lengths of names and values, plus 32 bytes for each field.
  const auto client_headers = [](size_t value) {
    return RawHttp2Client::Headers{{"x", std::string(value, 'v')}};
  };
  // The size of the headers that Call sends by itself for the path "/silent".
  constexpr size_t kUsual = 7 + 4 + 7 + 4 + 5 + 7 + 10 + 4 + 2 + 8 + 12 + 16 + 6 * 32;
  ConnectionLimits limits{.max_header_bytes = 2'000};
  Serve(limits);
  RawHttp2Client client(server_->Connect());
  const size_t room = limits.max_header_bytes - kUsual - 33;
  client.Call("/silent", client_headers(room));
  const int32_t refused = client.Call("/silent", client_headers(room + 1));
  ASSERT_TRUE(client.AwaitEnd(refused));
  ASSERT_EQ(Streams(), 2);
  EXPECT_FALSE(acceptor_.heads[0].too_large);
  EXPECT_EQ(acceptor_.heads[0].list_bytes(), limits.max_header_bytes);
  EXPECT_TRUE(acceptor_.heads[1].too_large);
  // The connection is still served.
  EXPECT_TRUE(client.RoundTrip());
}

TEST_F(ConnectionTest, AnswerBeforeTheRequestEndsStopsTheClient) {
  ConnectionLimits limits;
  limits.max_header_bytes = 100;  // every header block is too large, and answered at once
  limits.linger = absl::Milliseconds(10);
  Serve(limits);
  RawHttp2Client client(server_->Connect());
  const int32_t stream = client.Call("/echo");
  client.Send(stream, std::string(10'000'000, 'x'), /*end=*/true);
  ASSERT_TRUE(client.RunUntil([&] { return client.answer(stream).reset.has_value(); }));
  EXPECT_EQ(client.answer(stream).headers[":status"], "200");
  EXPECT_EQ(client.answer(stream).reset, NGHTTP2_NO_ERROR);
}

// The server must not reset the stream at once, because HAProxy would pass on the reset before the
// answer.
TEST_F(ConnectionTest, AnswerBeforeTheRequestEndsIsNotResetWhileTheClientMayStillEndIt) {
  Serve({.max_header_bytes = 100, .linger = absl::InfiniteDuration()});
  RawHttp2Client client(server_->Connect());
  const int32_t stream = client.Call("/echo");
  ASSERT_TRUE(client.RunUntil([&] { return client.answer(stream).headers.contains(":status"); }));
  ASSERT_TRUE(client.RoundTrip());
  EXPECT_FALSE(client.answer(stream).reset.has_value());
  client.Send(stream, "x", /*end=*/true);
  ASSERT_TRUE(client.RoundTrip());
  EXPECT_FALSE(client.answer(stream).reset.has_value());
  EXPECT_TRUE(client.AwaitEnd(stream));
}

TEST_F(ConnectionTest, StreamOverTheLimitIsRefusedAndTheOthersAreServed) {
  Serve({.max_streams = 3});
  RawHttp2Client client(server_->Connect());
  std::vector<int32_t> streams;
  // The requests are sent before the server's settings arrive, so the client does not know the
  // limit.
  for (int i = 0; i < 4; ++i) streams.push_back(client.Call("/hold"));
  ASSERT_TRUE(client.AwaitEnd(streams[3]));
  EXPECT_EQ(client.answer(streams[3]).reset, NGHTTP2_REFUSED_STREAM);
  ASSERT_TRUE(client.RoundTrip());
  EXPECT_EQ(Streams(), 3);
}

TEST_F(ConnectionTest, ClientIsToldTheLimitOfStreamsAndOneOverItIsRefusedWhenItKnows) {
  Serve({.max_streams = 3});
  RawHttp2Client client(server_->Connect());
  ASSERT_TRUE(client.RoundTrip());
  ASSERT_TRUE(client.RoundTrip());  // now the server has the client's acknowledgement
  EXPECT_EQ(client.max_streams(), 3U);
  // The raw client sends the fourth request at once; nghttp2's own client would hold it back.
  RawFrameClient rude(server_->Connect());
  ASSERT_TRUE(rude.RoundTrip());
  ASSERT_TRUE(rude.RoundTrip());
  for (uint32_t stream : {1, 3, 5, 7}) rude.Headers(stream, UsualHeaders("/hold"));
  rude.Headers(5, Literal("a", "b"), /*end=*/true);
  ASSERT_TRUE(rude.RoundTrip());
  ASSERT_TRUE(rude.RoundTrip());
  EXPECT_EQ(rude.ResetOf(5), -1);
  EXPECT_EQ(rude.ResetOf(7), NGHTTP2_REFUSED_STREAM);
  EXPECT_EQ(rude.GoAway(), -1);
  EXPECT_EQ(Streams(), 3);
  // Once a stream has ended, another one is accepted.
  rude.Send(Frame(NGHTTP2_RST_STREAM, 0, 3, std::string(4, '\0')));
  rude.Headers(9, UsualHeaders("/hold"));
  ASSERT_TRUE(rude.RoundTrip());
  EXPECT_EQ(Streams(), 4);
}

TEST_F(ConnectionTest, AnswerThatIsNotReadStaysWithTheCallBeyondTheLimitOfOutput) {
  Serve({.max_output_bytes = 64 << 10});
  // The flow-control windows are larger than the answer.
  RawHttp2Client client(server_->Connect(),
                        {.stream_window = 1 << 30, .connection_window = 1 << 30});
  ASSERT_TRUE(client.RoundTrip());
  constexpr size_t kBytes = 32 << 20;
  const int32_t stream = client.Call("/large/" + std::to_string(kBytes));
  ASSERT_TRUE(client.Flush());
  // The socket and the output queue take a part of the answer, and the stream keeps the rest.
  Settle();
  ASSERT_EQ(Streams(), 1);
  EXPECT_EQ(EventsOf(0).sent, 0);
  ASSERT_TRUE(client.RunUntil([&] { return client.answer(stream).body.size() == kBytes; }));
  EXPECT_EQ(EventsOf(0).sent, 1);
}

TEST_F(ConnectionTest, NothingMoreIsReadOfAClientThatDoesNotRead) {
  Serve({.max_output_bytes = 64 << 10});
  RawHttp2Client client(server_->Connect(),
                        {.stream_window = 1 << 30, .connection_window = 1 << 30});
  ASSERT_TRUE(client.RoundTrip());
  client.Call("/large/32000000");  // more than the socket and the output queue hold
  ASSERT_TRUE(client.Flush());
  Settle();
  ASSERT_EQ(Streams(), 1);
  constexpr int kMore = 300;
  for (int i = 0; i < kMore; ++i) client.Call("/large/1");
  ASSERT_TRUE(client.Flush());
  Settle();
  EXPECT_EQ(Streams(), 1);
  // When the client reads again, the server continues where it stopped.
  ASSERT_TRUE(client.RunUntil([&] { return Streams() == 1 + kMore; }));
}

TEST_F(ConnectionTest, GoAwayGivesNoticeFirstAndEndsWithTheLastCall) {
  Serve();
  RawHttp2Client client(server_->Connect());
  const int32_t before = client.Call("/echo");
  ASSERT_TRUE(client.RoundTrip());
  server_->Run([&] { server_->ForEach([](Connection& c) { c.BeginGoAway(); }); });
  ASSERT_TRUE(client.RunUntil([&] { return client.goaways().size() == 1; }));
  EXPECT_EQ(client.goaways()[0], std::make_pair(int32_t{0x7fffffff}, uint32_t{NGHTTP2_NO_ERROR}));
  // After a GOAWAY, nghttp2's own client opens no new stream. Streams that are already open are
  // still served.
  server_->Run([&] { server_->ForEach([](Connection& c) { c.FinishGoAway(); }); });
  ASSERT_TRUE(client.RunUntil([&] { return client.goaways().size() == 2; }));
  EXPECT_EQ(client.goaways()[1], std::make_pair(before, uint32_t{NGHTTP2_NO_ERROR}));
  EXPECT_FALSE(client.closed());
  client.Send(before, "served on", /*end=*/true);
  ASSERT_TRUE(client.AwaitEnd(before));
  EXPECT_EQ(client.answer(before).body, "served on");
  EXPECT_FALSE(client.RunUntil([] { return false; }));
  EXPECT_TRUE(client.closed());
  server_->AwaitNoConnections();
}

TEST_F(ConnectionTest, ConnectionWithoutCallsEndsAfterItsIdleTime) {
  Serve({.max_idle = absl::Milliseconds(50)});
  RawHttp2Client client(server_->Connect());
  ASSERT_TRUE(client.RoundTrip());
  EXPECT_FALSE(client.RunUntil([] { return false; }));
  ASSERT_EQ(client.goaways().size(), 1);
  EXPECT_EQ(client.goaways()[0].second, NGHTTP2_NO_ERROR);
  server_->AwaitNoConnections();
}

TEST_F(ConnectionTest, ConnectionGrowsOldGracefully) {
  Serve({.max_age = absl::Milliseconds(20), .go_away_notice = absl::Milliseconds(20)});
  RawHttp2Client client(server_->Connect());
  const int32_t stream = client.Call("/echo");
  ASSERT_TRUE(client.RunUntil([&] { return client.goaways().size() == 2; }));
  client.Send(stream, "served on", /*end=*/true);
  ASSERT_TRUE(client.AwaitEnd(stream));
  EXPECT_EQ(client.answer(stream).body, "served on");
  EXPECT_FALSE(client.RunUntil([] { return false; }));
  server_->AwaitNoConnections();
}

}  // namespace
}  // namespace phimap::testing
