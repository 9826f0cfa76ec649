#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/cpp/channel_factory.h"
#include "client/cpp/client.h"
#include "core/status/error.h"
#include "tests/support/matchers.h"

namespace phimap::client {
namespace {

TEST(ClientAccessTest, ATokenDoesNotLeaveThisMachineInTheClear) {
  const std::string token = "secret-token-0123456789";
  for (const char* target : {"example.com:7450", "10.0.0.1:7450", "[2001:db8::1]:7450",
                             "127.example.com:7450", "localhost.example.com:7450"}) {
    EXPECT_THAT(
        Client::Connect(target, {.token = token}).status(),
        testing::IsError(StatusCode::kInvalidArgument, "TOKEN_IN_CLEAR", _, Not(HasSubstr(token))))
        << target;
    EXPECT_TRUE(Client::Connect(target, {}).ok()) << target;
  }
  for (const char* target :
       {"127.0.0.1:7450", "127.3.4.5:7450", "[::1]:7450", "localhost:7450", "unix:/run/phimapd"}) {
    EXPECT_TRUE(Client::Connect(target, {.token = token}).ok()) << target;
  }
}

TEST(ClientAccessTest, ATokenThatNoHeaderMayCarryIsRefusedAndNotQuoted) {
  for (const char* token : {"two words", "line\nbreak", "umlaut-\xc3\xa4", "\x7f", "a\"b"}) {
    const absl::Status status = Client::Connect("127.0.0.1:7450", {.token = token}).status();
    EXPECT_EQ(testing::ReasonOf(status), "TOKEN_INVALID") << token;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr(token)));
  }
}

TEST(ClientAccessTest, FilesThatBelongTogetherAreNamed) {
  const auto field_of = [](const TlsOptions& tls) {
    const absl::Status status = Client::Connect("127.0.0.1:7450", {.tls = tls}).status();
    return DetailOf(status).value_or(ErrorDetail()).field;
  };
  EXPECT_EQ(field_of({.ca_file = "ca", .certificate_file = "certificate"}), "tls.certificate_file");
  EXPECT_EQ(field_of({.ca_file = "ca", .key_file = "key"}), "tls.key_file");
  EXPECT_EQ(field_of({.certificate_file = "certificate", .key_file = "key"}), "tls.ca_file");
}

TEST(ClientAccessTest, AFileThatCannotBeReadIsNamedWithItsReason) {
  EXPECT_THAT(Client::Connect("127.0.0.1:7450", {.tls = {.ca_file = "/nowhere/ca.pem"}}).status(),
              testing::IsError(StatusCode::kInvalidArgument, _, _,
                               HasSubstr("/nowhere/ca.pem: No such file")));
  const absl::Status empty =
      Client::Connect("127.0.0.1:7450", {.tls = {.ca_file = "/dev/null"}}).status();
  EXPECT_THAT(std::string(empty.message()), HasSubstr("it is empty"));
}

}  // namespace
}  // namespace phimap::client
