#include "server/admission/access_control.h"

#include <sys/stat.h>

#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "server/admission/role.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

constexpr Role kRoles[] = {Role::kReader, Role::kBuilder, Role::kAdmin};

std::string TokenOf(Role role) { return absl::StrCat(RoleName(role), "-token-0123456789"); }

class AccessControlTest : public ::testing::Test {
 protected:
  AccessControlTest() {
    const std::string path = folder_.path() + "/tokens";
    std::ofstream file(path);
    for (const Role role : kRoles) file << RoleName(role) << " " << TokenOf(role) << "\n";
    file.close();
    PHIMAP_CHECK(chmod(path.c_str(), 0600) == 0);
    auto tokens = TokenFile::Open(path, logger_).value();
    tokens_ = std::move(tokens);
  }

  TemporaryFolder folder_;
  const Logger logger_{LogLevel::kOff};
  std::unique_ptr<TokenFile> tokens_;
};

TEST_F(AccessControlTest, WithNeitherTokensNorCertificatesEveryoneMayDoEverything) {
  const AccessControl access(nullptr, std::nullopt);
  EXPECT_TRUE(access.open());
  for (const Role role : kRoles) EXPECT_TRUE(access.Admit({}, "m", role, absl::Now()).ok());
}

TEST_F(AccessControlTest, ATokenMayWhatItsRoleAndThoseBelowMay) {
  const AccessControl access(std::move(tokens_), std::nullopt);
  EXPECT_FALSE(access.open());
  for (const Role has : kRoles) {
    const std::string authorization = absl::StrCat("Bearer ", TokenOf(has));
    for (const Role needed : kRoles) {
      SCOPED_TRACE(absl::StrCat(RoleName(has), " calls for ", RoleName(needed)));
      const absl::Status status = access
                                      .Admit({.authorization = authorization, .authorizations = 1},
                                             "method", needed, absl::Now())
                                      .status();
      EXPECT_EQ(status.ok(), has >= needed);
      if (status.ok()) continue;
      EXPECT_THAT(status, IsError(Code::kPermissionDenied, "ROLE_TOO_LOW"));
      EXPECT_EQ(DetailOf(status)->metadata.at("needed"), RoleName(needed));
      EXPECT_EQ(DetailOf(status)->metadata.at("actual"), RoleName(has));
      EXPECT_THAT(std::string(status.message()), HasSubstr("method"));
    }
  }
}

TEST_F(AccessControlTest, ACallerIsOneHoweverItIsSpelled) {
  const AccessControl by_token(std::move(tokens_), std::nullopt);
  for (const char* scheme : {"Bearer ", "bearer ", "bEARER "}) {
    const std::string authorization = absl::StrCat(scheme, TokenOf(Role::kReader));
    const Caller caller{.authorization = authorization, .authorizations = 1};
    const Admitted admitted = by_token.Admit(caller, "m", Role::kReader, absl::Now()).value();
    EXPECT_EQ(by_token.ShareKeyOf(caller, admitted), TokenOf(Role::kReader));
  }
  // If the server does not use tokens, a token in a call has no influence on the caller's identity.
  const AccessControl by_certificate(nullptr, Role::kReader);
  EXPECT_EQ(by_certificate.ShareKeyOf({.authorization = "Bearer x",
                                       .authorizations = 1,
                                       .certificate_verified = true,
                                       .certificate_digest = "digest"},
                                      Admitted()),
            "digest");
}

// A call that the role does not allow counts too: it costs the server as much.
TEST_F(AccessControlTest, CallsOfEachRoleCountForTheRateAndOnlyAnAdminOfAllNamesAdministers) {
  const std::string path = folder_.path() + "/limited";
  std::ofstream(path) << "app reader first-token-0123456789 calls=3\n"
                         "team admin second-token-0123456789 names=team-*\n"
                         "ops admin third-token-0123456789\n";
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  const AccessControl access(TokenFile::Open(path, logger_).value(), std::nullopt);
  const Caller app{.authorization = "Bearer first-token-0123456789", .authorizations = 1};
  const absl::Time now = absl::Now();
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(access.Admit(app, "m", Role::kAdmin, now).status(),
                IsError(Code::kPermissionDenied, "ROLE_TOO_LOW"));
  }
  EXPECT_THAT(access.Admit(app, "m", Role::kAdmin, now).status(),
              IsError(Code::kResourceExhausted, "CALLER_RATE_REACHED"));
  EXPECT_THAT(access.Admit(app, "m", Role::kReader, now).status(),
              IsError(Code::kResourceExhausted, "CALLER_RATE_REACHED"));
  const auto administers = [&](absl::string_view authorization) {
    const Caller caller{.authorization = authorization, .authorizations = 1};
    return access.Admit(caller, "m", Role::kAdmin, now)->administers();
  };
  EXPECT_FALSE(administers("Bearer second-token-0123456789"));
  EXPECT_TRUE(administers("Bearer third-token-0123456789"));
  EXPECT_TRUE(Admitted().administers());
}

TEST_F(AccessControlTest, TokensOfANameAreOneCallerAndAnExpiredOneIsNone) {
  const std::string path = folder_.path() + "/named";
  std::ofstream(path)
      << "shop reader first-token-0123456789\nshop builder second-token-0123456789\n"
         "mill reader third-token-0123456789\nold admin fourth-token-0123456789 until=2001-01-01\n";
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  const AccessControl access(TokenFile::Open(path, logger_).value(), std::nullopt);
  const auto key = [&](const std::string& token) {
    const std::string authorization = absl::StrCat("Bearer ", token);
    const Caller caller{.authorization = authorization, .authorizations = 1};
    const Admitted admitted = access.Admit(caller, "m", Role::kReader, absl::Now()).value();
    return std::string(access.ShareKeyOf(caller, admitted));
  };
  EXPECT_EQ(key("first-token-0123456789"), key("second-token-0123456789"));
  EXPECT_NE(key("first-token-0123456789"), key("third-token-0123456789"));
  const Caller expired{.authorization = "Bearer fourth-token-0123456789", .authorizations = 1};
  EXPECT_THAT(access.Admit(expired, "m", Role::kReader, absl::Now()).status(),
              IsError(Code::kUnauthenticated, "TOKEN_EXPIRED"));
  // It is refused, but it is known whose it was.
  const PrincipalPointer known = access.WhoIs(expired);
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->name, "old");
}

// A thread remembers the tokens of its last calls. It must not mistake one for another, nor know
// those of another file.
TEST_F(AccessControlTest, ATokenMeansWhatTheFileInForceSays) {
  const std::string path = folder_.path() + "/many";
  std::string text;
  const auto token = [](int i) { return absl::StrCat("token-number-0123456789-", i); };
  for (int i = 0; i < 300; ++i) absl::StrAppend(&text, "caller-", i, " reader ", token(i), "\n");
  std::ofstream(path) << text;
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  const AccessControl many(TokenFile::Open(path, logger_).value(), std::nullopt);
  const AccessControl other(std::move(tokens_), std::nullopt);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 300; ++i) {
      const std::string authorization = absl::StrCat("Bearer ", token(i));
      const Caller caller{.authorization = authorization, .authorizations = 1};
      EXPECT_EQ(many.Admit(caller, "m", Role::kReader, absl::Now())->principal->name,
                absl::StrCat("caller-", i));
      if (i % 50 == 0) {
        EXPECT_FALSE(other.Admit(caller, "m", Role::kReader, absl::Now()).ok());
      }
    }
  }
}

TEST_F(AccessControlTest, WithoutAKnownTokenNobodyMayAnything) {
  const AccessControl access(std::move(tokens_), std::nullopt);
  const std::string good = absl::StrCat("Bearer ", TokenOf(Role::kAdmin));
  const struct {
    std::string authorization;
    size_t times;
    const char* reason;
  } cases[] = {
      {"", 0, "TOKEN_MISSING"},
      {"", 1, "TOKEN_MALFORMED"},
      {"Bearer", 1, "TOKEN_MALFORMED"},
      {TokenOf(Role::kAdmin), 1, "TOKEN_MALFORMED"},
      {"Basic c2VjcmV0OnNlY3JldA==", 1, "TOKEN_MALFORMED"},
      {good, 2, "TOKEN_MALFORMED"},
      {"Bearer ", 1, "TOKEN_UNKNOWN"},
      {absl::StrCat("Bearer  ", TokenOf(Role::kAdmin)), 1, "TOKEN_UNKNOWN"},
      {good + "x", 1, "TOKEN_UNKNOWN"},
      {"Bearer secret-that-nobody-knows", 1, "TOKEN_UNKNOWN"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.authorization);
    // Neither a verified certificate nor the socket of the server's own user takes the place of a
    // token.
    const Caller caller{.authorization = c.authorization,
                        .authorizations = c.times,
                        .certificate_verified = true,
                        .unix_socket = true};
    EXPECT_THAT(access.Admit(caller, "method", Role::kReader, absl::Now()).status(),
                IsError(Code::kUnauthenticated, c.reason, _,
                        AllOf(Not(HasSubstr("secret")), Not(HasSubstr("0123456789")))));
  }
  EXPECT_TRUE(access
                  .Admit({.authorization = absl::StrCat("bEARER ", TokenOf(Role::kAdmin)),
                          .authorizations = 1},
                         "method", Role::kAdmin, absl::Now())
                  .ok());
}

TEST_F(AccessControlTest, ACertificateGivesItsRoleAndTheSocketOfTheOwnUserEveryRole) {
  const AccessControl access(nullptr, Role::kBuilder);
  EXPECT_FALSE(access.open());
  const Caller verified{.certificate_verified = true};
  EXPECT_TRUE(access.Admit(verified, "m", Role::kBuilder, absl::Now()).ok());
  EXPECT_EQ(access.Admit(verified, "m", Role::kAdmin, absl::Now()).status().code(),
            Code::kPermissionDenied);
  EXPECT_TRUE(access.Admit({.unix_socket = true}, "m", Role::kAdmin, absl::Now()).ok());
  EXPECT_THAT(access.Admit({}, "m", Role::kReader, absl::Now()).status(),
              IsError(Code::kUnauthenticated, "TLS_CERTIFICATE_MISSING"));
}

TEST_F(AccessControlTest, AMethodThatNobodyThoughtOfHasNoRole) {
  EXPECT_EQ(RoleForMethod("phimap.v1.MappingService/DeleteVersion"), Role::kAdmin);
  EXPECT_EQ(RoleForMethod("phimap.v1.MappingService/Build"), Role::kBuilder);
  EXPECT_EQ(RoleForMethod("phimap.v1.TransformService/Transform"), Role::kReader);
  EXPECT_EQ(RoleForMethod("grpc.reflection.v1.ServerReflection/ServerReflectionInfo"),
            Role::kReader);
  EXPECT_EQ(RoleForMethod("inference.GRPCInferenceService/ModelStreamInfer"), Role::kReader);
  EXPECT_EQ(RoleForMethod("inference.GRPCInferenceService/RepositoryModelUnload"), std::nullopt);
  EXPECT_EQ(RoleForMethod("phimap.v1.MappingService/Nothing"), std::nullopt);
  EXPECT_EQ(RoleForMethod(""), std::nullopt);
}

TEST(MethodRolesTest, CallsThatChangeNamesAreKnown) {
  EXPECT_TRUE(ChangesNames("phimap.v1.MappingService/Build"));
  EXPECT_TRUE(ChangesNames("phimap.v1.MappingService/DeleteMapping"));
  EXPECT_FALSE(ChangesNames("phimap.v1.MappingService/KeepVersion"));
  EXPECT_FALSE(ChangesNames("phimap.v1.MappingService/GetVersion"));
  EXPECT_FALSE(ChangesNames("phimap.v1.MappingService/Nothing"));
}

}  // namespace
}  // namespace phimap::testing
