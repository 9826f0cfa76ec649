#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/admission/token_file.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr char kReaderToken[] = "reader-token-0123456789";
constexpr char kAdminToken[] = "admin-token-0123456789";
// printf %s admin-token-0123456789 | sha256sum
constexpr char kAdminDigest[] = "ca8d40e6ce4716b552f1c69863335b502f2afb57ffae171d6675fd56d91ca5b2";

// The role of a token; nullopt if the table does not have it.
std::optional<Role> RoleIn(const TokenTable& table, absl::string_view token) {
  const PrincipalPointer principal = table.Find(token);
  return principal == nullptr ? std::nullopt : std::optional<Role>(principal->role);
}

TEST(TokenTableTest, ATokenAndItsDigestAreTheSame) {
  const std::string text =
      absl::StrCat("# who asks\nreader ", kReaderToken,
                   "# the web shop\n\n\tadmin\tsha256:", kAdminDigest, " # ops\r\n");
  const TokenTable table = TokenTable::Parse(text).value();
  EXPECT_EQ(table.size(), 2);
  EXPECT_EQ(RoleIn(table, kReaderToken), Role::kReader);
  EXPECT_EQ(RoleIn(table, kAdminToken), Role::kAdmin);
  EXPECT_TRUE(table.holds_secrets());
}

TEST(TokenTableTest, NothingButTheWholeTokenIsKnown) {
  const TokenTable table =
      TokenTable::Parse(absl::StrCat("builder ", kReaderToken, "\nadmin sha256:", kAdminDigest))
          .value();
  const std::string token = kReaderToken;
  EXPECT_EQ(RoleIn(table, token), Role::kBuilder);
  for (const std::string& other :
       {std::string(), token.substr(1), token.substr(0, token.size() - 1), token + "0", token + " ",
        std::string("READER-token-0123456789"), std::string(kAdminDigest),
        absl::StrCat("sha256:", kAdminDigest), std::string(1 << 20, 'x')}) {
    EXPECT_EQ(RoleIn(table, other), std::nullopt) << other.substr(0, 80);
  }
}

TEST(TokenTableTest, ATableOfDigestsHoldsNoSecrets) {
  const TokenTable table = TokenTable::Parse(absl::StrCat("admin sha256:", kAdminDigest)).value();
  EXPECT_FALSE(table.holds_secrets());
}

TEST(TokenTableTest, AWrongLineIsNumberedAndNotQuoted) {
  const struct {
    std::string line;
    const char* says;
  } cases[] = {
      {"reader", "expected a role"},
      {"secret-0123456789abcdef", "expected a role"},
      {"secret-0123456789abcdef reader", "expected a role"},
      {"writer secret-0123456789abcdef", "reader, builder or admin"},
      {"READER secret-0123456789abcdef", "reader, builder or admin"},
      {"reader secret-0123456789abcdef more", "expected nothing after the token, or options"},
      {"a reader secret-0123456789abcdef nmes=fraud-*", "did you mean names=?"},
      {"reader secret-0123456789abcdef until=secret", "until=2027-03-31"},
      {"reader secret-0123456789abcdef until=2027-13-31", "until=2027-03-31"},
      {"reader secret-0123456789abcdef until=2027-03-31 secret",
       "expected nothing after the token"},
      {"secret reader", "expected a role"},
      {"Secret reader secret-0123456789abcdef", "a name has 1 to 63 lower-case letters"},
      {"-secret reader secret-0123456789abcdef", "begins with a letter or a digit"},
      {absl::StrCat("secret", std::string(60, 'x'), " reader secret-0123456789abcdef"), "1 to 63"},
      {"secret writer secret-0123456789abcdef", "expected a role"},
      {"reader secret-0123456789abcdef names=fraud-*", "expected a name before the role"},
      {"reader secret-0123456789abcdef calls=3", "expected a name before the role"},
      {"secret reader secret-0123456789abcdef names=", "names=PATTERN"},
      {"secret reader secret-0123456789abcdef names=Fraud", "names=PATTERN"},
      {"secret reader secret-0123456789abcdef names=a,,b", "names=PATTERN"},
      {"secret reader secret-0123456789abcdef names=a:admin", "a role up to reader"},
      {"secret reader secret-0123456789abcdef names=a:writer", "a role up to reader"},
      {"secret reader secret-0123456789abcdef export=maybe", "export=no or export=yes"},
      {"secret reader secret-0123456789abcdef export=no export=yes", "given twice"},
      {"secret reader secret-0123456789abcdef calls=0", "calls=N"},
      {"secret reader secret-0123456789abcdef rows=1.5", "rows=N"},
      {"secret reader secret-0123456789abcdef bytes=-1", "bytes=N"},
      {"reader certificate:secret", "certificate: to be followed by"},
      {"reader certificate:DNS:", "certificate: to be followed by"},
      {"reader certificate:sha256:secret", "64 hexadecimal digits"},
      {"reader user:no-such-user-secret", "no user of the name"},
      {"reader secret-3", "16 to 256 bytes, got 8"},
      {absl::StrCat("reader secret", std::string(300, 'x')), "16 to 256 bytes, got 306"},
      {"reader secret-0123456789\"abcdef", "letters, digits"},
      {absl::StrCat("reader secret-0123456789", std::string("\0", 1)), "letters, digits"},
      {"reader secret-0123456789\xc3\xa4", "letters, digits"},
      {"reader sha256:secret", "64 hexadecimal digits"},
      {absl::StrCat("reader sha256:", std::string(64, 'g')), "64 hexadecimal digits"},
      {absl::StrCat("reader ", kReaderToken), "an earlier line"},
      {absl::StrCat("admin ", kReaderToken), "an earlier line"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.line);
    const absl::StatusOr<TokenTable> table =
        TokenTable::Parse(absl::StrCat("reader ", kReaderToken, "\n# more\n", c.line, "\n"));
    ASSERT_FALSE(table.ok());
    const std::string message(table.status().message());
    EXPECT_THAT(message, HasSubstr("line 3: "));
    EXPECT_THAT(message, HasSubstr(c.says));
    EXPECT_THAT(message, Not(HasSubstr("secret")));
  }
}

TEST(TokenTableTest, ATokenMayHaveANameAndAnEnd) {
  const TokenTable table =
      TokenTable::Parse(absl::StrCat("web.shop-2 reader ", kReaderToken, " until=2027-03-31\n",
                                     "admin admin sha256:", kAdminDigest,
                                     " until=2027-03-31T12:00:00+02:00\n",
                                     "builder a-token-without-a-name until=2001-01-01\n"))
          .value();
  const PrincipalPointer reader = table.Find(kReaderToken);
  EXPECT_EQ(reader->name, "web.shop-2");
  EXPECT_EQ(reader->role, Role::kReader);
  EXPECT_EQ(reader->until, absl::FromUnixSeconds(1806451200));  // date -ud 2027-03-31 +%s
  const PrincipalPointer admin = table.Find(kAdminToken);
  EXPECT_EQ(admin->name, "admin");
  EXPECT_EQ(admin->until, absl::FromUnixSeconds(1806451200 + 10 * 3600));
  const PrincipalPointer past = table.Find("a-token-without-a-name");
  EXPECT_EQ(past->name, "");
  EXPECT_THAT(past->Check(), IsError(StatusCode::kUnauthenticated, "TOKEN_EXPIRED", _,
                                     HasSubstr("2001-01-01T00:00:00")));
}

TEST(TokenTableTest, ATokenEndsAtItsTimeAndNotBefore) {
  Principal principal;
  principal.until = absl::Now() + absl::Hours(1);
  EXPECT_TRUE(principal.Check().ok());
  principal.until = absl::Now();
  EXPECT_THAT(principal.Check(), IsError(StatusCode::kUnauthenticated, "TOKEN_EXPIRED"));
}

// The next table says the same of one token, gives another a role more, and leaves a third out.
TEST(TokenTableTest, TheNextTableRevokesWhatItDoesNotSay) {
  const TokenTable before = TokenTable::Parse(
                                "shop reader token-that-stays-01\n"
                                "reader token-that-rises-02\n"
                                "reader token-that-leaves-3\n")
                                .value();
  TokenTable next = TokenTable::Parse(
                        "builder token-that-rises-02\n"
                        "shop reader token-that-stays-01\n")
                        .value();
  next.KeepFrom(before);
  before.RevokeOthers(next);
  EXPECT_EQ(next.Find("token-that-stays-01"), before.Find("token-that-stays-01"));
  EXPECT_TRUE(before.Find("token-that-stays-01")->Check().ok());
  EXPECT_TRUE(next.Find("token-that-rises-02")->Check().ok());
  for (const char* const token : {"token-that-rises-02", "token-that-leaves-3"}) {
    EXPECT_THAT(before.Find(token)->Check(), IsError(StatusCode::kUnauthenticated, "TOKEN_REVOKED"))
        << token;
  }
}

TEST(TokenTableTest, ATableWithoutTokensIsRefused) {
  for (const char* text : {"", "\n\n", "# reader 0123456789abcdef\n"}) {
    EXPECT_FALSE(TokenTable::Parse(text).ok()) << text;
  }
}

TEST(TokenTableTest, TenThousandTokensAreTheMost) {
  std::string text;
  for (int i = 0; i < kMaxTokens; ++i) absl::StrAppend(&text, "reader token-0123456789-", i, "\n");
  const TokenTable table = TokenTable::Parse(text).value();
  EXPECT_EQ(RoleIn(table, "token-0123456789-9999"), Role::kReader);
  const absl::StatusOr<TokenTable> more =
      TokenTable::Parse(absl::StrCat(text, "reader token-0123456789-10000"));
  EXPECT_THAT(std::string(more.status().message()),
              HasSubstr("line 10001: the file has more than 10000 tokens"));
}

TEST(TokenTableTest, ALineMayLimitWhatItsCallerMayDo) {
  const TokenTable table =
      TokenTable::Parse(absl::StrCat("fraud builder ", kReaderToken,
                                     " names=fraud-*,shared-*:reader export=no calls=10 rows=20 "
                                     "builds=30 versions=40 bytes=50 until=2100-01-31"))
          .value();
  const PrincipalPointer principal = table.Find(kReaderToken);
  ASSERT_NE(principal, nullptr);
  EXPECT_EQ(principal->names,
            (std::vector<NameRight>{{"fraud-*", Role::kBuilder}, {"shared-*", Role::kReader}}));
  EXPECT_FALSE(principal->exports);
  EXPECT_EQ(principal->rates.of[0], 10);
  EXPECT_EQ(principal->rates.of[1], 20);
  EXPECT_EQ(principal->rates.of[2], 30);
  EXPECT_EQ(principal->stored, (StoreShare{.versions = 40, .bytes = 50}));
}

TEST(TokenTableTest, CertificatesAndUsersAreCredentialsToo) {
  const std::string digest(64, 'a');
  const TokenTable table =
      TokenTable::Parse(absl::StrCat("shop reader certificate:sha256:", std::string(64, 'A'),
                                     "\nteam builder certificate:DNS:Team.example\n"
                                     "spiffe admin certificate:URI:spiffe://example/x\n"
                                     "part admin certificate:URI:https://e.example/x#y # its part\n"
                                     "root admin user:root\nother reader user:4711"))
          .value();
  EXPECT_EQ(table.size(), 6);
  EXPECT_FALSE(table.holds_secrets());
  EXPECT_EQ(table.FindCertificate(digest, {})->name, "shop");
  EXPECT_EQ(table.FindCertificate("0", {"DNS:other", "DNS:team.example"})->name, "team");
  EXPECT_EQ(table.FindCertificate("0", {"URI:spiffe://example/x"})->name, "spiffe");
  EXPECT_EQ(table.FindCertificate(digest, {"DNS:team.example"})->name, "shop");
  EXPECT_EQ(table.FindCertificate("0", {"URI:https://e.example/x#y"})->name, "part");
  EXPECT_EQ(table.FindCertificate("0", {"URI:team.example"}), nullptr);
  EXPECT_EQ(table.FindUser(0)->name, "root");
  EXPECT_EQ(table.FindUser(4711)->name, "other");
  EXPECT_EQ(table.FindUser(4712), nullptr);
}

TEST(TokenTableTest, LinesOfANameShareTheirLimits) {
  const auto parse = [](const char* first, const char* second) {
    return TokenTable::Parse(absl::StrCat("team builder ", kReaderToken, " ", first,
                                          "\nteam reader ", kAdminToken, " ", second));
  };
  const TokenTable table = parse("calls=10 names=a-*", "calls=10").value();
  EXPECT_EQ(table.Find(kReaderToken)->spent, table.Find(kAdminToken)->spent);
  EXPECT_NE(table.Find(kReaderToken)->spent, nullptr);
  for (const char* other : {"calls=11", "", "calls=10 bytes=7"}) {
    EXPECT_THAT(parse("calls=10", other).status(),
                IsError(StatusCode::kInvalidArgument, "TOKEN_FILE_INVALID", "",
                        HasSubstr("line 2: an earlier line of this name has other limits")));
  }
}

TEST(TokenTableTest, WhatACallerHasSpentOutlivesANewFile) {
  const std::string line = absl::StrCat("team builder ", kReaderToken, " calls=1");
  const TokenTable before = TokenTable::Parse(line).value();
  TokenTable same = TokenTable::Parse(absl::StrCat(line, "\nreader ", kAdminToken)).value();
  same.KeepFrom(before);
  EXPECT_EQ(same.Find(kReaderToken), before.Find(kReaderToken));
  TokenTable renamed =
      TokenTable::Parse(absl::StrCat("team builder ", kAdminToken, " calls=1")).value();
  renamed.KeepFrom(before);
  EXPECT_EQ(renamed.Find(kAdminToken)->spent, before.Find(kReaderToken)->spent);
  TokenTable limited = TokenTable::Parse(absl::StrCat(line, " names=a-*")).value();
  limited.KeepFrom(before);
  before.RevokeOthers(limited);
  EXPECT_NE(limited.Find(kReaderToken), before.Find(kReaderToken));
  EXPECT_TRUE(before.Find(kReaderToken)->revoked.load());
  EXPECT_EQ(limited.Find(kReaderToken)->spent, before.Find(kReaderToken)->spent);
}

}  // namespace
}  // namespace phimap::testing
