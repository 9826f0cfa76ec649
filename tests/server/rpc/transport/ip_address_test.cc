#include <arpa/inet.h>

#include "gtest/gtest.h"
#include "server/rpc/transport/peer.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(IpAddressTest, AnAddressHasOneFormHoweverItWasWritten) {
  struct Case {
    const char* written;
    const char* canonical;
  };
  for (const Case& one : {Case{"127.0.0.1", "127.0.0.1"}, Case{"::ffff:10.1.2.3", "10.1.2.3"},
                          Case{"::FFFF:0a01:0203", "10.1.2.3"}, Case{"::1", "::1"},
                          Case{"FD00:0:0:0:0:0:0:7", "fd00::7"}, Case{"::10.1.2.3", "::10.1.2.3"},
                          Case{"0:0:0:0:0:ffff:255.255.255.255", "255.255.255.255"}}) {
    const std::string address = CanonicalIpAddress("--proxy", one.written).value();
    EXPECT_EQ(address, one.canonical) << one.written;
  }
}

TEST(IpAddressTest, ANetworkIsTheFirstHalfOfAnAddress) {
  in6_addr address{};
  ASSERT_EQ(inet_pton(AF_INET6, "2001:db8:0:1:ffff::7", &address), 1);
  EXPECT_EQ(NetworkText(address), "2001:db8:0:1::/64");
  ASSERT_EQ(inet_pton(AF_INET6, "::1", &address), 1);
  EXPECT_EQ(NetworkText(address), "::/64");
}

TEST(IpAddressTest, WhatIsNoAddressIsRefusedWithItsFlag) {
  for (const char* text : {"", "foo", "localhost", "127.1", "256.0.0.1", "127.0.0.1:80", "[::1]",
                           "10.0.0.0/8", "fe80::1%eth0", " 127.0.0.1", "::fffff:1.2.3.4"}) {
    const absl::StatusOr<std::string> address = CanonicalIpAddress("--proxy", text);
    EXPECT_EQ(address.status().code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(address.status().message().find("--proxy"), absl::string_view::npos);
    EXPECT_NE(address.status().message().find(text), absl::string_view::npos);
  }
}

}  // namespace
}  // namespace phimap::testing
