// Tests a server that has no file descriptors left for more connections. gRPC's own server failed
// in this case (CVE-2023-4785).
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/check.h"
#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"
#include "tests/server/support/client_socket.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

using testing::ClientSocket;

// The server's limit of file descriptors, and a number of connections far above that limit.
constexpr int kDescriptors = 128;
constexpr int kConnections = 400;

class DescriptorTest : public ::testing::Test {
 protected:
  DescriptorTest()
      : server_(folder_.path(), {}, {"/usr/bin/prlimit", absl::StrCat("--nofile=", kDescriptors)}) {
    PHIMAP_CHECK(
        absl::SimpleAtoi(server_.address().substr(server_.address().rfind(':') + 1), &port_));
  }

  absl::StatusOr<v1::Version> Build(client::Client& client, const std::string& name) {
    GeneratedRows rows(200, 4, 3);
    return client.Build({.name = name, .spec = "f2(landmarks=20)", .kernel = "rbf(gamma=scale)"},
                        rows);
  }
  static absl::Status Transform(client::Client& client) {
    const std::vector<float> row = {0.1f, 0.2f, 0.3f, 0.4f};
    return client
        .Transform("letters", client::MakeRowBlock(absl::MakeConstSpan(row), 4),
                   {.timeout = absl::Seconds(60)})
        .status();
  }
  // Opens kConnections connections, and waits until the server has refused some of them.
  void Exhaust() {
    for (int i = 0; i < kConnections; ++i) {
      connections_.push_back(std::make_unique<ClientSocket>());
      ASSERT_EQ(connections_.back()->Connect(port_), 0);
    }
    std::string metrics;
    do {
      metrics = HttpGet(server_.http_address(), "/metrics");
    } while (!absl::StrContains(metrics, "\nphimap_connections_refused_total ") ||
             absl::StrContains(metrics, "\nphimap_connections_refused_total 0\n"));
  }
  // Returns how long it takes until a new client is served.
  absl::Duration TimeToServe() {
    const absl::Time start = absl::Now();
    while (!Transform(*server_.Connect()).ok()) {
    }
    return absl::Now() - start;
  }

  TemporaryFolder folder_;
  ServerProcess server_;
  int port_ = 0;
  std::vector<std::unique_ptr<ClientSocket>> connections_;
};

TEST_F(DescriptorTest, AFullServerServesItsClientsBuildsAndServesOthersAgainWhenThereIsRoom) {
  const auto client = server_.Connect();
  ASSERT_TRUE(Build(*client, "letters").ok());
  Exhaust();
  // The store can still open files, because some descriptors are reserved for it.
  const auto built = Build(*client, "digits").value();
  EXPECT_TRUE(Transform(*client).ok());
  connections_.clear();
  const absl::Duration wait = TimeToServe();
  std::cout << "a new client was served after " << wait << "\n";
  EXPECT_LE(wait, absl::Seconds(10));
  EXPECT_TRUE(Transform(*client).ok());
  EXPECT_THAT(server_.process().ErrorsSoFar(), HasSubstr("connections_refused"));
}

TEST_F(DescriptorTest, ConnectionsThatSayNothingAreHungUpOnAndMakeRoom) {
  const auto client = server_.Connect();
  ASSERT_TRUE(Build(*client, "letters").ok());
  Exhaust();
  const absl::Time start = absl::Now();
  for (const auto& connection : connections_) connection->AwaitHangUp();
  const absl::Duration wait = absl::Now() - start;
  std::cout << "the last connection was hung up on after " << wait << "\n";
  // phimapd hangs up after five seconds of silence; gRPC's own limit is 120 s. Even on a busy
  // machine, the bound shows which of the two limits was in effect.
  EXPECT_LE(wait, absl::Seconds(60));
  EXPECT_LE(TimeToServe(), absl::Seconds(10));
  EXPECT_TRUE(Transform(*client).ok());
}

}  // namespace
}  // namespace phimap::e2e
