#include "server/kernel_client/kernel_address.h"

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(KernelAddressTest, NameAndAddressAreTakenApart) {
  struct Case {
    const char* text;
    const char* name;
    const char* target;
    bool tls;
  };
  for (const Case& c : {Case{"edit=127.0.0.1:9000", "edit", "127.0.0.1:9000", false},
                        Case{"k_2=[::1]:1", "k_2", "[::1]:1", false},
                        Case{"edit=unix:/run/edit.sock", "edit", "unix:/run/edit.sock", false},
                        Case{"edit=tls:words.example:443", "edit", "words.example:443", true}}) {
    const KernelAddress address = ParseKernelAddress(c.text).value();
    EXPECT_EQ(address.name, c.name);
    EXPECT_EQ(address.target, c.target);
    EXPECT_EQ(address.tls, c.tls);
  }
}

TEST(KernelAddressTest, WhatIsNoAddressIsRefused) {
  for (const char* text :
       {"", "edit", "=127.0.0.1:1", "Edit=127.0.0.1:1", "2k=127.0.0.1:1", "e-d=127.0.0.1:1",
        "edit=", "edit=host", "edit=host:", "edit=host:0", "edit=host:65536", "edit=:1",
        "edit=dns:///host:1", "edit=unix:relative", "edit=tls:", "edit=tls:host"}) {
    EXPECT_THAT(ParseKernelAddress(text).status(),
                IsError(StatusCode::kInvalidArgument, "KERNEL_SERVICE_INVALID"))
        << text;
  }
}

}  // namespace
}  // namespace phimap::testing
