// Tests that clients that read their answers too slowly are disconnected, and that clients that are
// merely slow are not.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <thread>

#include "core/thread/steady_time.h"
#include "gmock/gmock.h"
#include "tests/server/rpc/transport/connection_fixture.h"
#include "tests/server/support/raw_http2_client.h"

namespace phimap::testing {
namespace {

// The stall limit. It is long enough that a busy machine is not mistaken for a slow client.
constexpr absl::Duration kStall = absl::Milliseconds(200);

// A client that lets the server send one byte at a time, as fast as it can. This is far faster than
// a required minimum of a byte per second, and far slower than a required minimum of a gibibyte per
// second.
class SlowReaderTest : public ConnectionTest {
 protected:
  void Begin(int64_t min_bytes_per_second, int32_t stream_window, int32_t connection_window) {
    Serve({.max_stall = kStall, .min_bytes_per_second = min_bytes_per_second});
    client_ = std::make_unique<RawHttp2Client>(
        server_->Connect(), RawHttp2Client::Options{.stream_window = stream_window,
                                                    .connection_window = connection_window,
                                                    .consumes = false});
    stream_ = client_->Call("/megabytes/10");
  }
  // Reads until the server ends the stream, but at most for five times kStall. Returns true if the
  // stream lasted that long.
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
  EXPECT_EQ(EventsOf(0).closed, 1);
}

TEST_F(SlowReaderTest, ConnectionOfWhichEnoughIsTakenGoesOn) {
  Begin(1, kOpenWindow, /*connection_window=*/65'535);
  EXPECT_TRUE(ReadByteByByte(0));
}

// Reads from a socket at 8 MB per second, with large flow-control windows, until the server hangs
// up. Returns false if that takes longer than `limits` times kStall. Reads whole pages, because on
// a busy machine every read may take a time slice, even if it returns few bytes.
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
  ConnectionLimits limits{.max_stall = kStall, .min_bytes_per_second = kGibibyte};
  Serve(limits);
  EXPECT_TRUE(HangsUpOnASlowSocket(*server_, /*limits=*/100));
}

TEST_F(ConnectionTest, SocketOfWhichEnoughIsReadStaysOpen) {
  ConnectionLimits limits{.max_stall = kStall, .min_bytes_per_second = 1};
  Serve(limits);
  EXPECT_FALSE(HangsUpOnASlowSocket(*server_, /*limits=*/5));
}

TEST(ConnectionLimitsTest, OwedIsTheFloorOrTheRest) {
  ConnectionLimits limits{.max_stall = absl::Seconds(300), .min_bytes_per_second = 1024};
  EXPECT_EQ(limits.OwedOf(307'201), 307'200);
  EXPECT_EQ(limits.OwedOf(307'199), 307'199);
  EXPECT_EQ(limits.OwedOf(0), 1);
}

}  // namespace
}  // namespace phimap::testing
