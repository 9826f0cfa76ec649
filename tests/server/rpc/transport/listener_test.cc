// Tests connections to a real port: which ones are accepted, and what is logged and counted about
// the refused ones.
#include "server/rpc/transport/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status/check.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "server/rpc/transport/transport.h"
#include "tests/server/support/client_socket.h"
#include "tests/server/support/raw_http2_client.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class NoCalls final : public StreamAcceptor {
 public:
  void OnRequest(Stream& stream, const RequestHead&, bool) override {
    if (admits) stream.NoteAdmitted();
    stream.Reset(ResetCode::kRefusedStream);
  }

  bool admits = false;
};

class ListenerTest : public ::testing::Test {
 protected:
  void Serve(const Transport::Options& options, const std::string& address = "127.0.0.1:0") {
    transport_ = std::make_unique<Transport>(options, calls_, metrics_, logger_);
    absl::StatusOr<std::vector<ListeningSocket>> sockets = ListeningSocket::Tcp(address);
    PHIMAP_CHECK(sockets.ok() && sockets->size() == 1);
    port_ = sockets->front().port();
    std::vector<Transport::Endpoint> endpoints;
    endpoints.push_back({std::move(sockets->front())});
    transport_->Listen(std::move(endpoints));
  }
  RawHttp2Client& Connect() {
    clients_.push_back(std::make_unique<RawHttp2Client>(ConnectToLoopback(port_)));
    return *clients_.back();
  }
  std::vector<std::string> lines() {
    MutexLock lock(&mutex_);
    return lines_;
  }

  prometheus::Registry registry_;
  ConnectionMetrics metrics_{registry_};
  NoCalls calls_;

 private:
  Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
  const Logger logger_{LogLevel::kInfo, [this](absl::string_view line) {
                         MutexLock lock(&mutex_);
                         lines_.emplace_back(line);
                       }};
  std::unique_ptr<Transport> transport_;
  int port_ = 0;
  std::vector<std::unique_ptr<RawHttp2Client>> clients_;
};

TEST_F(ListenerTest, OneConnectionMoreThanAnAddressMayHaveIsClosedCountedAndToldOfOnce) {
  Serve({.max_connections_per_host = 2});
  EXPECT_TRUE(Connect().RoundTrip());
  EXPECT_TRUE(Connect().RoundTrip());
  EXPECT_THAT(lines(), ElementsAre());
  EXPECT_FALSE(Connect().RoundTrip());
  EXPECT_FALSE(Connect().RoundTrip());
  EXPECT_EQ(metrics_.accepted->Value(), 2);
  EXPECT_EQ(metrics_.refused_by_address->Value(), 2);
  EXPECT_EQ(metrics_.refused->Value(), 0);
  EXPECT_THAT(lines(), ElementsAre(AllOf(
                           HasSubstr("WARNING connections_refused_by_address address=127.0.0.1 "),
                           HasSubstr(" limit=2 "), HasSubstr("--max_connections_per_host"))));
}

TEST_F(ListenerTest, AConnectionThatEndsForWhatItsClientSentIsCountedAndToldOf) {
  Transport::Options options;
  options.limits.max_control_frames = 100;
  Serve(options);
  RawHttp2Client& client = Connect();
  ASSERT_TRUE(client.RoundTrip());
  for (int i = 0; i < 10'000; ++i) client.Ping();
  EXPECT_FALSE(client.RunUntil([] { return false; }));
  EXPECT_EQ(metrics_.ended_for_control_frames->Value(), 1);
  EXPECT_EQ(metrics_.ended_for_resets->Value(), 0);
  EXPECT_THAT(lines(), ElementsAre(AllOf(HasSubstr("WARNING connection_ended peer=ipv4:127.0.0.1:"),
                                         HasSubstr(" reason=control_frames "))));
}

TEST_F(ListenerTest, ProxiesConnectAsOftenAsTheyLike) {
  Serve({.max_connections_per_host = 1, .proxies = {"127.0.0.1"}});
  EXPECT_TRUE(Connect().RoundTrip());
  EXPECT_TRUE(Connect().RoundTrip());
  EXPECT_EQ(metrics_.accepted->Value(), 2);
  EXPECT_EQ(metrics_.refused_by_address->Value(), 0);
}

// With this address, one socket listens for IPv4 and IPv6, and sees 127.0.0.1 as ::ffff:127.0.0.1.
TEST_F(ListenerTest, AnIpv4AddressIsNamedAsSuchWhereBothFamiliesAreListenedTo) {
  Serve({.max_connections_per_host = 1}, "0.0.0.0:0");
  EXPECT_TRUE(Connect().RoundTrip());
  EXPECT_FALSE(Connect().RoundTrip());
  EXPECT_THAT(lines(), ElementsAre(HasSubstr(" address=127.0.0.1 ")));
}

TEST_F(ListenerTest, ProxiesAreKnownWhereBothFamiliesAreListenedTo) {
  Serve({.max_connections_per_host = 1, .proxies = {"127.0.0.1"}}, "0.0.0.0:0");
  EXPECT_TRUE(Connect().RoundTrip());
  EXPECT_TRUE(Connect().RoundTrip());
  EXPECT_EQ(metrics_.refused_by_address->Value(), 0);
}

TEST_F(ListenerTest, ConnectionsBeyondTheMaximumOfAllAreClosed) {
  Serve({.max_connections = 2, .proxies = {"127.0.0.1"}});
  EXPECT_TRUE(Connect().RoundTrip());
  EXPECT_TRUE(Connect().RoundTrip());
  EXPECT_FALSE(Connect().RoundTrip());
  EXPECT_EQ(metrics_.refused->Value(), 1);
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("WARNING connections_refused reason=")));
}

// Otherwise five hosts could keep all others out for half an hour, by connections on which they ask
// for nothing.
TEST_F(ListenerTest, ConnectionsWithoutACallMakeRoomForOthers) {
  Transport::Options options{.max_connections = 4, .proxies = {"127.0.0.1"}};
  options.limits.stranger_time = absl::ZeroDuration();
  calls_.admits = true;
  Serve(options);
  RawHttp2Client& caller = Connect();
  ASSERT_TRUE(caller.AwaitEnd(caller.Call("/any")));
  RawHttp2Client& stranger = Connect();
  ASSERT_TRUE(stranger.RoundTrip());
  EXPECT_TRUE(Connect().RoundTrip());
  EXPECT_TRUE(Connect().RoundTrip());
  EXPECT_FALSE(Connect().RoundTrip()) << "this one found no place, but made some";
  EXPECT_FALSE(stranger.RunUntil([] { return false; }));
  EXPECT_TRUE(Connect().RoundTrip());
  EXPECT_TRUE(caller.RoundTrip());
  EXPECT_EQ(metrics_.ended_for_no_call->Value(), 3);
  EXPECT_THAT(lines(), Contains(AllOf(HasSubstr("WARNING connection_ended peer=ipv4:127.0.0.1:"),
                                      HasSubstr(" reason=no_call "))));
}

TEST_F(ListenerTest, ConnectionsBeyondTheDescriptorsAreOfAnotherCount) {
  Serve({.max_descriptor = 0, .max_connections_per_host = 1});
  EXPECT_FALSE(Connect().RoundTrip());
  EXPECT_EQ(metrics_.accepted->Value(), 0);
  EXPECT_EQ(metrics_.refused->Value(), 1);
  EXPECT_EQ(metrics_.refused_by_address->Value(), 0);
  EXPECT_THAT(lines(), ElementsAre(HasSubstr("WARNING connections_refused reason=")));
}

}  // namespace
}  // namespace phimap::testing
