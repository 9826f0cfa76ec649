#include "server/http/probe_endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "prometheus/counter.h"
#include "prometheus/registry.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// A client's connected socket.
class Peer {
 public:
  explicit Peer(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }
  Peer(Peer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Peer() {
    if (fd_ >= 0) close(fd_);
  }
  void Send(const std::string& text) { send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  // Returns true as long as the server has not closed the connection.
  bool IsOpen() {
    char byte;
    return recv(fd_, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }
  // Returns everything that arrives until the server closes the connection.
  std::string Rest() {
    std::string all;
    char chunk[4096];
    for (ssize_t got; (got = recv(fd_, chunk, sizeof(chunk), 0)) > 0;) {
      all.append(chunk, static_cast<size_t>(got));
    }
    return all;
  }

 private:
  int fd_;
};

class ProbeEndpointTest : public ::testing::Test {
 protected:
  ProbeEndpointTest() : metrics_(std::make_shared<prometheus::Registry>()) {
    prometheus::BuildCounter().Name("things_total").Register(*metrics_).Add({}).Increment(7);
    std::unique_ptr<ProbeEndpoint> endpoint =
        ProbeEndpoint::Listen("127.0.0.1:0", metrics_, logger_).value();
    endpoint_ = std::move(endpoint);
  }
  std::string Ask(const std::string& request) {
    Peer peer(endpoint_->port());
    peer.Send(request);
    return peer.Rest();
  }

  const Logger logger_{LogLevel::kOff};
  std::shared_ptr<prometheus::Registry> metrics_;
  std::unique_ptr<ProbeEndpoint> endpoint_;
};

TEST_F(ProbeEndpointTest, MetricsAreServed) {
  for (const char* target : {"/metrics", "/metrics?name=x"}) {
    const std::string answer =
        Ask(std::string("GET ") + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("text/plain; version=0.0.4"));
    EXPECT_THAT(answer, HasSubstr("things_total 7"));
  }
}

TEST_F(ProbeEndpointTest, EverythingElseIsAnErrorAndServiceGoesOn) {
  const std::pair<std::string, const char*> cases[] = {
      {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "HTTP/1.1 404 "},
      {"GET /favicon.ico HTTP/1.0\r\n\r\n", "HTTP/1.1 404 "},
      {"GET /metricsandmore HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
       "HTTP/1.1 404 "},
      {"POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
       "HTTP/1.1 405 "},
      {"garbage\r\n\r\n", "HTTP/1.1 400 "},
      {"GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
      {"GET /metrics HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n", "HTTP/1.1 421 "},
      {"GET /metrics SMTP/1.1\r\n\r\n", "HTTP/1.1 400 "},
      {std::string("\x16\x03\x01\x00", 4) + "\r\n\r\n", "HTTP/1.1 400 "},
      {"GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
       "HTTP/1.1 431 "},
  };
  for (const auto& [request, begin] : cases) {
    EXPECT_THAT(Ask(request), StartsWith(begin)) << request.substr(0, 40);
  }
  EXPECT_THAT(Ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
              HasSubstr("things_total"));
}

TEST_F(ProbeEndpointTest, ARequestInPiecesIsOneRequest) {
  Peer peer(endpoint_->port());
  for (const char* piece :
       {"GE", "T /metrics HT", "TP/1.1\r\n", "Host: a\r\n", "Connection: close\r\n", "\r", "\n"}) {
    peer.Send(piece);
  }
  EXPECT_THAT(peer.Rest(), HasSubstr("things_total"));
}

TEST_F(ProbeEndpointTest, SilentAndVanishedClientsHoldNobodyUp) {
  std::vector<Peer> silent;
  for (int i = 0; i < 20; ++i) silent.emplace_back(endpoint_->port());
  { Peer vanished(endpoint_->port()); }
  EXPECT_THAT(Ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
              HasSubstr("things_total"));
  endpoint_.reset();  // returns although clients are still connected
}

// There are more silent clients than allowed connections. The oldest client is disconnected at
// once; new clients need not wait until the silent ones reach their time limit.
TEST_F(ProbeEndpointTest, ACrowdOfSilentClientsDoesNotKeepOneWhoAsksOut) {
  std::vector<Peer> silent;
  for (int i = 0; i < 80; ++i) {
    silent.emplace_back(endpoint_->port());
    silent.back().Send("G");
  }
  EXPECT_THAT(Ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
              HasSubstr("things_total"));
  EXPECT_EQ(silent.front().Rest(), "");
  EXPECT_TRUE(silent.back().IsOpen());
}

// The answer is larger than what the sockets hold, so each client that does not read keeps its
// connection.
TEST_F(ProbeEndpointTest, ACrowdThatDoesNotReadItsMetricsDoesNotKeepProbesOut) {
  auto& family = prometheus::BuildCounter().Name("many_total").Register(*metrics_);
  for (int i = 0; i < 20'000; ++i) {
    family.Add({{"label", std::string(200, 'x') + std::to_string(i)}});
  }
  std::vector<Peer> readers;
  for (int i = 0; i < 40; ++i) {
    readers.emplace_back(endpoint_->port());
    readers.back().Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }
  for (const char* path : {"/livez", "/readyz", "/metrics"}) {
    EXPECT_THAT(Ask(std::string("GET ") + path +
                    " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
                StartsWith("HTTP/1.1 200 "))
        << path;
  }
}

TEST_F(ProbeEndpointTest, ATakenPortAndAForeignAddressAreRefused) {
  for (const std::string& address :
       {"127.0.0.1:" + std::to_string(endpoint_->port()), std::string("192.0.2.1:0"),
        std::string("nonsense"), std::string("nobody.invalid:80")}) {
    const auto second = ProbeEndpoint::Listen(address, metrics_, logger_);
    EXPECT_THAT(second.status(), IsError(StatusCode::kFailedPrecondition, _, _, HasSubstr(address)))
        << address;
  }
}

}  // namespace
}  // namespace phimap::testing
