#include "server/rpc/transport/listening_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/server/support/client_socket.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

bool HasIpv6() { return ListeningSocket::Tcp("[::1]:0").ok(); }

TEST(ListeningSocketTest, PortZeroBecomesAFreeOne) {
  const auto sockets = ListeningSocket::Tcp("127.0.0.1:0").value();
  ASSERT_EQ(sockets.size(), 1u);
  EXPECT_GT(sockets[0].port(), 0);
  EXPECT_EQ(ClientSocket().Connect(sockets[0].port()), 0);
}

TEST(ListeningSocketTest, ATakenPortAndAnAddressOfAnotherMachineAreNamedWithTheReason) {
  const auto first = ListeningSocket::Tcp("127.0.0.1:0").value();
  const struct {
    std::string address;
    const char* says;
  } cases[] = {
      {absl::StrCat("127.0.0.1:", first[0].port()), "in use"},
      {"192.0.2.1:0", "assign requested address"},  // TEST-NET-1, which no machine has
      {"127.0.0.1", "HOST:PORT"},
      {"127.0.0.1:http", "cannot listen"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ListeningSocket::Tcp(c.address).status(),
                IsError(StatusCode::kFailedPrecondition, _, _,
                        AllOf(HasSubstr(c.address), HasSubstr(c.says))));
  }
}

TEST(ListeningSocketTest, ConnectionsDoNotDelayAnswersAndEndWhenTheirPeerIsGone) {
  const auto sockets = ListeningSocket::Tcp("127.0.0.1:0").value();
  ClientSocket client;
  ASSERT_EQ(client.Connect(sockets[0].port()), 0);
  const int connection = accept(sockets[0].fd(), nullptr, nullptr);
  ASSERT_GE(connection, 0);
  int no_delay = 0;
  int user_timeout_ms = 0;
  socklen_t length = sizeof(int);
  EXPECT_EQ(getsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &no_delay, &length), 0);
  EXPECT_EQ(getsockopt(connection, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, &length), 0);
  close(connection);
  EXPECT_NE(no_delay, 0);
  EXPECT_EQ(user_timeout_ms, 20'000);
}

TEST(ListeningSocketTest, WildcardsServeBothFamiliesOnOnePort) {
  for (const char* address : {"0.0.0.0:0", "[::]:0"}) {
    const auto sockets = ListeningSocket::Tcp(address).value();
    ASSERT_EQ(sockets.size(), 1u);
    EXPECT_EQ(ClientSocket(AF_INET).Connect(sockets[0].port()), 0);
    if (!HasIpv6()) continue;
    EXPECT_EQ(ClientSocket(AF_INET6).Connect(sockets[0].port()), 0);
  }
}

TEST(ListeningSocketTest, ANameIsAllItsAddressesOnOnePort) {
  const auto sockets = ListeningSocket::Tcp("localhost:0").value();
  for (const ListeningSocket& socket : sockets) {
    EXPECT_EQ(socket.port(), sockets[0].port());
  }
  EXPECT_EQ(ClientSocket().Connect(sockets[0].port()), 0);
}

TEST(ListeningSocketTest, TheFileOfASocketIsPrivateAndGoesWithIt) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/socket";
  {
    const auto socket = ListeningSocket::Unix(path).value();
    struct stat file {};
    ASSERT_EQ(stat(path.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600);
    EXPECT_EQ(ClientSocket(AF_UNIX).Connect(path), 0);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ListeningSocketTest, AFileThatTookItsPlaceStays) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/socket";
  {
    const auto socket = ListeningSocket::Unix(path).value();
    std::filesystem::rename(path, path + ".before");  // keeps the old file's inode number in use
    std::ofstream(path) << "precious";
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace phimap::testing
