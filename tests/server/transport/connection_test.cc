#include "server/transport/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "server/sync/steady_time.h"
#include "tests/server/support/loop_server.h"
#include "tests/server/support/raw_frames.h"
#include "tests/server/support/raw_http2_client.h"

namespace phimap {
namespace {

using testing::Frame;
using testing::Literal;
using testing::LoopServer;
using testing::RawFrameClient;
using testing::RawHttp2Client;
using testing::UsualHeaders;

class AnswerText final : public OutputBytes {
 public:
  explicit AnswerText(std::string text) : text_(std::move(text)) {}
  absl::string_view bytes() const override { return text_; }

 private:
  const std::string text_;
};

constexpr Header kOk[] = {{":status", "200"}};
constexpr Header kDone[] = {{"done", "yes"}};

// Of the loop's thread, as are all that follow. What a stream was told.
struct Told {
  std::string path;
  size_t data_bytes = 0;
  bool request_ended = false;
  int sent = 0;
  int closed = 0;
  ResetCode code = ResetCode::kNoError;
};

// Does what its path says.
class ScriptedStream final : public StreamHandler {
 public:
  ScriptedStream(Stream& stream, Told& told) : stream_(&stream), told_(told) {
    if (told_.path == "/reset") stream_->Reset(ResetCode::kRefusedStream);
    if (told_.path == "/reset" || told_.path == "/silent") return;
    stream_->SendHeaders(kOk, /*end=*/false);
    // /large/BYTES
    if (told_.path.rfind("/large/", 0) == 0) {
      stream_->Send(
          std::make_shared<AnswerText>(std::string(std::stoul(told_.path.substr(7)), 'x')));
    }
    // /megabytes/COUNT, one over and over: the loop's times are those of its turns, and a turn that
    // fills a hundred is taken for a client that waits.
    if (told_.path.rfind("/megabytes/", 0) == 0) {
      const auto megabyte = std::make_shared<AnswerText>(std::string(1'000'000, 'x'));
      for (size_t i = std::stoul(told_.path.substr(11)); i > 0; --i) stream_->Send(megabyte);
    }
  }

  void OnData(absl::string_view bytes) override {
    told_.data_bytes += bytes.size();
    if (told_.path == "/hold") return;
    stream_->Consume(bytes.size());
    if (told_.path == "/echo") stream_->Send(std::make_shared<AnswerText>(std::string(bytes)));
  }
  void OnRequestEnd() override {
    told_.request_ended = true;
    if (told_.path == "/echo" || told_.path == "/count") stream_->SendTrailers(kDone);
  }
  void OnSent() override { ++told_.sent; }
  void OnClosed(ResetCode code) override {
    ++told_.closed;
    told_.code = code;
    stream_ = nullptr;
  }

 private:
  Stream* stream_;
  Told& told_;
};

class ScriptedAcceptor final : public StreamAcceptor {
 public:
  void OnRequest(Stream& stream, const RequestHead& head, bool) override {
    told.push_back(std::make_unique<Told>());
    told.back()->path = std::string(head.Find(":path"));
    heads.push_back(head);
    if (head.too_large) return stream.SendHeaders(kOk, /*end=*/true);
    stream.SetHandler(std::make_shared<ScriptedStream>(stream, *told.back()));
  }
  std::vector<std::unique_ptr<Told>> told;
  std::vector<RequestHead> heads;
};

class ConnectionTest : public ::testing::Test {
 protected:
  void Serve(const ConnectionLimits& limits = {}) {
    server_ = std::make_unique<LoopServer>(acceptor_, limits);
  }
  // What the i-th stream was told by now.
  Told ToldTo(size_t i) {
    Told told;
    server_->Run([&] { told = *acceptor_.told.at(i); });
    return told;
  }
  // Several turns of the loop: each handles kEventsPerTurn events at most, and these are events.
  void Settle() {
    for (int i = 0; i < 5 * EventLoop::kEventsPerTurn; ++i) server_->Run([] {});
  }
  size_t Streams() {
    size_t count = 0;
    server_->Run([&] { count = acceptor_.told.size(); });
    return count;
  }

  ScriptedAcceptor acceptor_;
  std::unique_ptr<LoopServer> server_;
};

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
  const Told told = ToldTo(0);
  EXPECT_EQ(told.closed, 1);
  EXPECT_EQ(told.code, ResetCode::kNoError);
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
  ConnectionLimits limits;
  limits.stream_window = 32 << 10;
  Serve(limits);
  RawHttp2Client client(server_->Connect());
  ASSERT_TRUE(client.RoundTrip());
  const int32_t held = client.Call("/hold");
  client.Send(held, std::string(100'000, 'x'));
  ASSERT_TRUE(
      client.RunUntil([&] { return client.unsent(held) <= 100'000 - limits.stream_window; }));
  ASSERT_TRUE(client.RoundTrip());
  EXPECT_EQ(client.unsent(held), 100'000 - limits.stream_window);
  EXPECT_EQ(ToldTo(0).data_bytes, limits.stream_window);
  // Others have windows of their own.
  const int32_t other = client.Call("/count");
  client.Send(other, std::string(1'000'000, 'y'), /*end=*/true);
  ASSERT_TRUE(client.AwaitEnd(other));
  EXPECT_EQ(ToldTo(1).data_bytes, 1'000'000);
}

// Long enough for a busy machine not to be taken for a slow client.
constexpr absl::Duration kStall = absl::Milliseconds(200);

// A client that lets one byte go at a time, as fast as it can, over and over: far above a floor of
// a byte a second, and far below one of a gibibyte.
class SlowReaderTest : public ConnectionTest {
 protected:
  void Begin(int64_t min_bytes_per_second, int32_t stream_window, int32_t connection_window) {
    ConnectionLimits limits;
    limits.max_stall = kStall;
    limits.min_bytes_per_second = min_bytes_per_second;
    Serve(limits);
    client_ = std::make_unique<RawHttp2Client>(
        server_->Connect(), RawHttp2Client::Options{.stream_window = stream_window,
                                                    .connection_window = connection_window,
                                                    .consumes = false});
    stream_ = client_->Call("/megabytes/10");
  }
  // For so long as the server lets it, at most five stall limits: whether it did to the end.
  bool ReadByteByByte(int32_t window_of) {
    const absl::Time until = SteadyNow() + 5 * kStall;
    while (SteadyNow() < until) {
      const size_t before = client_->answer(stream_).body.size();
      const bool more = client_->RunUntil([&] {
        return client_->answer(stream_).body.size() > before || client_->answer(stream_).ended;
      });
      if (!more || client_->answer(stream_).ended) return false;
      client_->AddWindow(window_of, 1);
    }
    return true;
  }

  std::unique_ptr<RawHttp2Client> client_;
  int32_t stream_ = 0;
};

constexpr int64_t kGibibyte = int64_t{1} << 30;
constexpr int32_t kOpenWindow = 1 << 24;

TEST_F(SlowReaderTest, StreamOfWhichTooLittleIsTakenIsReset) {
  Begin(kGibibyte, /*stream_window=*/100, kOpenWindow);
  EXPECT_FALSE(ReadByteByByte(stream_));
  EXPECT_EQ(client_->answer(stream_).reset, NGHTTP2_CANCEL);
  EXPECT_TRUE(client_->RoundTrip());
}

TEST_F(SlowReaderTest, StreamOfWhichEnoughIsTakenGoesOn) {
  Begin(1, /*stream_window=*/100, kOpenWindow);
  EXPECT_TRUE(ReadByteByByte(stream_));
}

TEST_F(SlowReaderTest, ConnectionOfWhichTooLittleIsTakenEnds) {
  Begin(kGibibyte, kOpenWindow, /*connection_window=*/65'535);
  EXPECT_FALSE(ReadByteByByte(0));
  server_->AwaitNoConnections();
  EXPECT_EQ(ToldTo(0).closed, 1);
}

TEST_F(SlowReaderTest, ConnectionOfWhichEnoughIsTakenGoesOn) {
  Begin(1, kOpenWindow, /*connection_window=*/65'535);
  EXPECT_TRUE(ReadByteByByte(0));
}

// Reads from a socket, at 8 MB a second and windows being open, until the server hangs up; false if
// it does not within so many stall limits. By pages: on a busy machine a read may take a turn of
// the scheduler, whatever it brings.
bool HangsUpOnASlowSocket(LoopServer& server, int limits) {
  constexpr double kBytesPerSecond = 8e6;
  const int fd = server.Connect();
  const int socket = dup(fd);
  RawHttp2Client client(fd, {.stream_window = kGibibyte / 4, .connection_window = kGibibyte / 4});
  client.Call("/megabytes/100");
  EXPECT_TRUE(client.Flush());
  const absl::Time start = SteadyNow();
  pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
  std::array<char, 4096> page;
  double taken = 0;
  ssize_t got = 1;
  while (got > 0 && SteadyNow() < start + limits * kStall) {
    if (taken > kBytesPerSecond * absl::ToDoubleSeconds(SteadyNow() - start)) {
      std::this_thread::yield();
      continue;
    }
    EXPECT_EQ(poll(&ready, 1, 10'000), 1);
    got = recv(socket, page.data(), page.size(), 0);
    taken += static_cast<double>(got);
  }
  close(socket);
  return got <= 0;
}

TEST_F(ConnectionTest, SocketOfWhichTooLittleIsReadIsClosed) {
  ConnectionLimits limits;
  limits.max_stall = kStall;
  limits.min_bytes_per_second = kGibibyte;
  Serve(limits);
  EXPECT_TRUE(HangsUpOnASlowSocket(*server_, /*limits=*/100));
}

TEST_F(ConnectionTest, SocketOfWhichEnoughIsReadStaysOpen) {
  ConnectionLimits limits;
  limits.max_stall = kStall;
  limits.min_bytes_per_second = 1;
  Serve(limits);
  EXPECT_FALSE(HangsUpOnASlowSocket(*server_, /*limits=*/5));
}

TEST(ConnectionLimitsTest, OwedIsTheFloorOrTheRest) {
  ConnectionLimits limits;
  limits.max_stall = absl::Seconds(300);
  limits.min_bytes_per_second = 1024;
  EXPECT_EQ(limits.OwedOf(307'201), 307'200);
  EXPECT_EQ(limits.OwedOf(307'199), 307'199);
  EXPECT_EQ(limits.OwedOf(0), 1);
}

TEST_F(ConnectionTest, ResetOfTheClientClosesTheStreamOnce) {
  Serve();
  RawHttp2Client client(server_->Connect());
  const int32_t stream = client.Call("/silent");
  client.Send(stream, "x");
  ASSERT_TRUE(client.RoundTrip());
  client.Reset(stream);
  ASSERT_TRUE(client.RoundTrip());
  EXPECT_EQ(ToldTo(0).closed, 1);
  EXPECT_EQ(ToldTo(0).code, ResetCode::kCancel);
}

TEST_F(ConnectionTest, ResetOfTheServerReachesTheClient) {
  Serve();
  RawHttp2Client client(server_->Connect());
  const int32_t stream = client.Call("/reset");
  ASSERT_TRUE(client.AwaitEnd(stream));
  EXPECT_EQ(client.answer(stream).reset, NGHTTP2_REFUSED_STREAM);
  ASSERT_TRUE(client.RoundTrip());
  EXPECT_EQ(ToldTo(0).closed, 1);
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
  EXPECT_EQ(ToldTo(0).closed, 1);
  EXPECT_EQ(ToldTo(1).closed, 1);
}

TEST_F(ConnectionTest, HeadersUpToTheLimitAreKeptAndOneByteMoreIsNot) {
  // As RFC 9113 counts: names, values and 32 bytes each.
  const auto client_headers = [](size_t value) {
    return RawHttp2Client::Headers{{"x", std::string(value, 'v')}};
  };
  // What Call sends besides, with the path "/silent".
  constexpr size_t kUsual = 7 + 4 + 7 + 4 + 5 + 7 + 10 + 4 + 2 + 8 + 12 + 16 + 6 * 32;
  ConnectionLimits limits;
  limits.max_header_bytes = 2'000;
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
  // The connection serves on.
  EXPECT_TRUE(client.RoundTrip());
}

TEST_F(ConnectionTest, AnswerBeforeTheRequestEndsStopsTheClient) {
  ConnectionLimits limits;
  limits.max_header_bytes = 100;  // so that the acceptor answers at once
  limits.linger = absl::Milliseconds(10);
  Serve(limits);
  RawHttp2Client client(server_->Connect());
  const int32_t stream = client.Call("/echo");
  client.Send(stream, std::string(10'000'000, 'x'), /*end=*/true);
  ASSERT_TRUE(client.RunUntil([&] { return client.answer(stream).reset.has_value(); }));
  EXPECT_EQ(client.answer(stream).headers[":status"], "200");
  EXPECT_EQ(client.answer(stream).reset, NGHTTP2_NO_ERROR);
}

// HAProxy passes a reset on before the answer that came with it.
TEST_F(ConnectionTest, AnswerBeforeTheRequestEndsIsNotResetWhileTheClientMayStillEndIt) {
  ConnectionLimits limits;
  limits.max_header_bytes = 100;
  limits.linger = absl::InfiniteDuration();
  Serve(limits);
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
  ConnectionLimits limits;
  limits.max_streams = 3;
  Serve(limits);
  RawHttp2Client client(server_->Connect());
  std::vector<int32_t> streams;
  // In one flight with the settings: the client does not know the limit yet.
  for (int i = 0; i < 4; ++i) streams.push_back(client.Call("/hold"));
  ASSERT_TRUE(client.AwaitEnd(streams[3]));
  EXPECT_EQ(client.answer(streams[3]).reset, NGHTTP2_REFUSED_STREAM);
  ASSERT_TRUE(client.RoundTrip());
  EXPECT_EQ(Streams(), 3);
}

TEST_F(ConnectionTest, ClientIsToldTheLimitOfStreamsAndOneOverItIsRefusedWhenItKnows) {
  ConnectionLimits limits;
  limits.max_streams = 3;
  Serve(limits);
  RawHttp2Client client(server_->Connect());
  ASSERT_TRUE(client.RoundTrip());
  ASSERT_TRUE(client.RoundTrip());  // its acknowledgement has come
  EXPECT_EQ(client.max_streams(), 3U);
  // nghttp2's own client would keep the fourth back.
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
  // There is room again when one has ended.
  rude.Send(Frame(NGHTTP2_RST_STREAM, 0, 3, std::string(4, '\0')));
  rude.Headers(9, UsualHeaders("/hold"));
  ASSERT_TRUE(rude.RoundTrip());
  EXPECT_EQ(Streams(), 4);
}

// Opens streams and resets each of them at once.
void OpenAndReset(RawFrameClient& client, const std::string& path, uint32_t first, uint32_t count) {
  std::string frames;
  for (uint32_t stream = first; stream < first + 2 * count; stream += 2) {
    frames += Frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream, UsualHeaders(path));
    frames += Frame(NGHTTP2_RST_STREAM, 0, stream, std::string(3, '\0') + char{NGHTTP2_CANCEL});
  }
  client.Send(frames);
}
constexpr uint32_t kManyResets = 10'000;  // a burst, and what is allowed within 40 s

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
  // Nor have they used up what others may.
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

TEST_F(ConnectionTest, AnswerThatIsNotReadStaysWithTheCallBeyondTheLimitOfOutput) {
  ConnectionLimits limits;
  limits.max_output_bytes = 64 << 10;
  Serve(limits);
  // Windows that would take all of it.
  RawHttp2Client client(server_->Connect(),
                        {.stream_window = 1 << 30, .connection_window = 1 << 30});
  ASSERT_TRUE(client.RoundTrip());
  constexpr size_t kBytes = 32 << 20;
  const int32_t stream = client.Call("/large/" + std::to_string(kBytes));
  ASSERT_TRUE(client.Flush());
  // The socket takes some, the queue some more, and the stream keeps the rest.
  Settle();
  ASSERT_EQ(Streams(), 1);
  EXPECT_EQ(ToldTo(0).sent, 0);
  ASSERT_TRUE(client.RunUntil([&] { return client.answer(stream).body.size() == kBytes; }));
  EXPECT_EQ(ToldTo(0).sent, 1);
}

TEST_F(ConnectionTest, NothingMoreIsReadOfAClientThatDoesNotRead) {
  ConnectionLimits limits;
  limits.max_output_bytes = 64 << 10;
  Serve(limits);
  RawHttp2Client client(server_->Connect(),
                        {.stream_window = 1 << 30, .connection_window = 1 << 30});
  ASSERT_TRUE(client.RoundTrip());
  client.Call("/large/32000000");  // more than the socket and the queue hold
  ASSERT_TRUE(client.Flush());
  Settle();
  ASSERT_EQ(Streams(), 1);
  constexpr int kMore = 300;
  for (int i = 0; i < kMore; ++i) client.Call("/large/1");
  ASSERT_TRUE(client.Flush());
  Settle();
  EXPECT_EQ(Streams(), 1);
  // It goes on where it stopped when the client reads again.
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
  // nghttp2's own client begins nothing after a GOAWAY: what was begun is served on.
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
  ConnectionLimits limits;
  limits.max_idle = absl::Milliseconds(50);
  Serve(limits);
  RawHttp2Client client(server_->Connect());
  ASSERT_TRUE(client.RoundTrip());
  EXPECT_FALSE(client.RunUntil([] { return false; }));
  ASSERT_EQ(client.goaways().size(), 1);
  EXPECT_EQ(client.goaways()[0].second, NGHTTP2_NO_ERROR);
  server_->AwaitNoConnections();
}

TEST_F(ConnectionTest, ConnectionGrowsOldGracefully) {
  ConnectionLimits limits;
  limits.max_age = absl::Milliseconds(20);
  limits.go_away_notice = absl::Milliseconds(20);
  Serve(limits);
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
}  // namespace phimap
