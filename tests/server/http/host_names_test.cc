#include "server/http/host_names.h"

#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(HostNames, NamesThatNobodyElseCanOwnAreKnownToEveryServer) {
  const HostNames names;
  for (const char* authority :
       {"127.0.0.1", "127.0.0.1:7451", "[::1]", "[::1]:7451", "10.0.0.7:80", "localhost",
        "LOCALHOST:7451", "phimapd:7451", "a.localhost", "phimapd.default.svc.cluster.local:7451",
        "ip-10-0-0-7.ec2.internal"}) {
    EXPECT_TRUE(names.Know(authority)) << authority;
  }
}

// Each could be registered by a stranger, or is no name at all.
TEST(HostNames, OtherNamesAreNotKnown) {
  const HostNames names;
  for (const char* authority :
       {"", ":7451", "evil.example", "127.0.0.1.evil.example", "127.0.0.1.nip.io:7451",
        "localhost.evil.example", "features.example.com", "a.localhost.evil.example", "[::1",
        "x@localhost", "local host", "evil.example.", "internal.example"}) {
    EXPECT_FALSE(names.Know(authority)) << authority;
  }
}

TEST(HostNames, ListedNamesAreKnownInEitherCaseAndWithAnyPort) {
  const HostNames names({"Features.Example.com"});
  EXPECT_TRUE(names.Know("features.example.com"));
  EXPECT_TRUE(names.Know("FEATURES.example.COM:443"));
  EXPECT_FALSE(names.Know("evil.features.example.com"));
  EXPECT_FALSE(names.Know("features.example.com.evil.example"));
}

TEST(HostNames, AListedNameHasNoPortAndNoScheme) {
  EXPECT_TRUE(HostNames::Check("--http_hosts", "features.example.com").ok());
  for (const char* name : {"", "features.example.com:443", "https://features.example.com", "*"}) {
    EXPECT_THAT(HostNames::Check("--http_hosts", name),
                IsError(StatusCode::kInvalidArgument, "ADDRESS_INVALID", "--http_hosts",
                        HasSubstr("without a port")))
        << name;
  }
}

}  // namespace
}  // namespace phimap::testing
