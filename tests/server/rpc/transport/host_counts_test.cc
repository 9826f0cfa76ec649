#include "server/rpc/transport/host_counts.h"

#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

using Taken = HostCounts::Taken;

Peer At(const std::string& host, const std::string& network = "") {
  return {.address = host, .host = host, .network = network.empty() ? host : network};
}

TEST(HostCountsTest, AllConnectionsAreCountedAndThoseOfAHost) {
  HostCounts hosts(4, 2, {"10.0.0.9"});
  EXPECT_EQ(hosts.Take(At("10.0.0.1")), Taken::kYes);
  EXPECT_EQ(hosts.Take(At("10.0.0.1")), Taken::kYes);
  EXPECT_EQ(hosts.Take(At("10.0.0.1")), Taken::kTooManyOfHost);
  EXPECT_EQ(hosts.Take(At("10.0.0.9")), Taken::kYes);
  EXPECT_EQ(hosts.Take(At("10.0.0.9")), Taken::kYes);
  EXPECT_EQ(hosts.Take(At("10.0.0.9")), Taken::kTooMany);
  hosts.Return(At("10.0.0.9"));
  EXPECT_EQ(hosts.Take(At("10.0.0.1")), Taken::kTooManyOfHost);
  hosts.Return(At("10.0.0.1"));
  EXPECT_EQ(hosts.Take(At("10.0.0.1")), Taken::kYes);
}

TEST(HostCountsTest, NewLimitsAreInForceForTheNextConnections) {
  HostCounts hosts(2, 1, {});
  EXPECT_EQ(hosts.Take(At("10.0.0.1")), Taken::kYes);
  hosts.SetLimits(2, 2);
  EXPECT_EQ(hosts.Take(At("10.0.0.1")), Taken::kYes);
  EXPECT_EQ(hosts.Take(At("10.0.0.2")), Taken::kTooMany);
  hosts.SetLimits(3, 1);
  EXPECT_EQ(hosts.Take(At("10.0.0.1")), Taken::kTooManyOfHost);
  EXPECT_EQ(hosts.Take(At("10.0.0.2")), Taken::kYes);
}

TEST(HostCountsTest, AConnectionOfAProxyIsCountedForItsClientOnceThatIsKnown) {
  HostCounts hosts(3, 1, {"10.0.0.9"}, {"10.0.0.8"});
  EXPECT_TRUE(hosts.BeginsWithHeader(At("10.0.0.8")));
  EXPECT_FALSE(hosts.BeginsWithHeader(At("10.0.0.9")));
  Peer proxy = At("10.0.0.8");
  proxy.proxy = true;
  EXPECT_EQ(hosts.Take(proxy), Taken::kYes);
  EXPECT_TRUE(hosts.PassTo(At("10.0.0.1")));
  EXPECT_EQ(hosts.Take(At("10.0.0.1")), Taken::kTooManyOfHost);
  EXPECT_EQ(hosts.Take(proxy), Taken::kYes);
  EXPECT_FALSE(hosts.PassTo(At("10.0.0.1")));
  hosts.Return(proxy);  // the connection still counts for it
  hosts.Return(At("10.0.0.1"));
  EXPECT_EQ(hosts.Take(proxy), Taken::kYes);
  EXPECT_TRUE(hosts.PassTo(At("10.0.0.1")));
  // A client may stand at the proxy's address, or be a proxy without a header itself.
  EXPECT_EQ(hosts.Take(proxy), Taken::kYes);
  EXPECT_TRUE(hosts.PassTo(At("10.0.0.8")));
  EXPECT_FALSE(hosts.IsExempt(At("10.0.0.8")));
  EXPECT_EQ(hosts.Take(proxy), Taken::kYes);
  EXPECT_TRUE(hosts.PassTo(At("10.0.0.9")));
  EXPECT_EQ(hosts.Take(proxy), Taken::kTooMany);
}

TEST(HostCountsTest, TellsWhenNearlyAllConnectionsAreTaken) {
  HostCounts hosts(16, 16, {});
  for (int taken = 0; taken < 14; ++taken) {
    EXPECT_FALSE(hosts.Scarce()) << taken;
    ASSERT_EQ(hosts.Take(At("10.0.0.1")), Taken::kYes);
  }
  EXPECT_TRUE(hosts.Scarce());
  hosts.Return(At("10.0.0.1"));
  EXPECT_FALSE(hosts.Scarce());
}

TEST(HostCountsTest, AddressesOfANetworkAreOneHost) {
  HostCounts hosts(10, 1, {});
  EXPECT_EQ(hosts.Take(At("2001:db8::1", "2001:db8::/64")), Taken::kYes);
  EXPECT_EQ(hosts.Take(At("2001:db8::2", "2001:db8::/64")), Taken::kTooManyOfHost);
  EXPECT_EQ(hosts.Take(At("2001:db8:0:1::1", "2001:db8:0:1::/64")), Taken::kYes);
}

TEST(HostCountsTest, FaultsAreAllowedUpToTheBurstAndComeBackWithTime) {
  HostCounts hosts(10, 10, {"10.0.0.9"});
  const absl::Time now = absl::UnixEpoch();
  for (int i = 0; i < kFaultBurst; ++i) {
    ASSERT_TRUE(hosts.CountFault(At("10.0.0.1"), now)) << i;
  }
  EXPECT_FALSE(hosts.CountFault(At("10.0.0.1"), now));
  EXPECT_TRUE(hosts.CountFault(At("10.0.0.2"), now)) << "another host";
  for (int i = 0; i <= kFaultBurst; ++i) {
    EXPECT_TRUE(hosts.CountFault(At("10.0.0.9"), now)) << "a proxy";
  }
  const absl::Time later = now + absl::Seconds(2);
  int allowed = 0;
  while (hosts.CountFault(At("10.0.0.1"), later)) ++allowed;
  EXPECT_NEAR(allowed, 2 * kFaultsPerSecond, 1);
}

// Whoever connects again does not get a new allowance.
TEST(HostCountsTest, FaultsOutliveTheConnection) {
  HostCounts hosts(10, 10, {});
  const absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(hosts.Take(At("10.0.0.1")), Taken::kYes);
  while (hosts.CountFault(At("10.0.0.1"), now)) {
  }
  hosts.Return(At("10.0.0.1"));
  EXPECT_EQ(hosts.Take(At("10.0.0.1")), Taken::kYes);
  EXPECT_FALSE(hosts.CountFault(At("10.0.0.1"), now));
}

}  // namespace
}  // namespace phimap::testing
