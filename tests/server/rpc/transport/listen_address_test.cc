#include "gtest/gtest.h"
#include "server/rpc/transport/listening_socket.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(ListenAddressTest, OnlyWhatThisMachineAloneCanReachIsLoopback) {
  for (const char* address :
       {"127.0.0.1:7450", "127.1.2.3:0", "[::1]:7450", "localhost:1", "unix:/tmp/phimapd.sock"}) {
    EXPECT_TRUE(IsLoopbackAddress(address)) << address;
  }
  for (const char* address :
       {"0.0.0.0:7450", "[::]:7450", "10.0.0.1:7450", "example.com:7450", "localhost.evil.org:1",
        "", ":7450", "127.0.0.1", "localhost", "128.0.0.1:1", "[::2]:1", "127.0.0.1.x.org:1",
        "[::ffff:10.0.0.1]:1", "ip6-localhost:1"}) {
    EXPECT_FALSE(IsLoopbackAddress(address)) << address;
  }
}

TEST(ListenAddressTest, AnAddressHasAHostAndAPortThatExists) {
  for (const char* address : {"127.0.0.1:0", "[::1]:7450", "localhost:65535", "unix:/tmp/s"}) {
    EXPECT_TRUE(CheckAddress("--listen", address).ok()) << address;
  }
  for (const char* address :
       {"", "foo", "127.0.0.1", "127.0.0.1:", ":7450", "127.0.0.1:65536", "127.0.0.1:99999",
        "127.0.0.1: 74", "127.0.0.1:+74", "127.0.0.1:-1", "127.0.0.1:7450x", "none2",
        "unix:", "127.0.0.1:99999999999999999999"}) {
    const absl::Status refused = CheckAddress("--listen", address);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << address;
    EXPECT_NE(refused.message().find(address), absl::string_view::npos) << refused;
  }
}

TEST(ListenAddressTest, OtherAddressesNeedInsecure) {
  EXPECT_TRUE(CheckReachable("listen", "0.0.0.0:1", /*allowed=*/true).ok());
  const absl::Status refused = CheckReachable("listen", "0.0.0.0:1", /*allowed=*/false);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("--insecure"), absl::string_view::npos);
}

TEST(ListenAddressTest, ThePortIsReplaced) {
  EXPECT_EQ(WithPort("127.0.0.1:0", 81), "127.0.0.1:81");
  EXPECT_EQ(WithPort("[::1]:0", 81), "[::1]:81");
  EXPECT_EQ(WithPort("unix:/tmp/s", 1), "unix:/tmp/s");
}

}  // namespace
}  // namespace phimap::testing
