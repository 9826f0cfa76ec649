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

TEST(TokenTableTest, ATokenAndItsDigestAreTheSame) {
  const std::string text =
      absl::StrCat("# who asks\nreader ", kReaderToken,
                   "  # the web shop\n\n\tadmin\tsha256:", kAdminDigest, "\r\n");
  const TokenTable table = TokenTable::Parse(text).value();
  EXPECT_EQ(table.size(), 2);
  EXPECT_EQ(table.RoleOf(kReaderToken), Role::kReader);
  EXPECT_EQ(table.RoleOf(kAdminToken), Role::kAdmin);
  EXPECT_TRUE(table.holds_secrets());
}

TEST(TokenTableTest, NothingButTheWholeTokenIsKnown) {
  const TokenTable table =
      TokenTable::Parse(absl::StrCat("builder ", kReaderToken, "\nadmin sha256:", kAdminDigest))
          .value();
  const std::string token = kReaderToken;
  EXPECT_EQ(table.RoleOf(token), Role::kBuilder);
  for (const std::string& other :
       {std::string(), token.substr(1), token.substr(0, token.size() - 1), token + "0", token + " ",
        std::string("READER-token-0123456789"), std::string(kAdminDigest),
        absl::StrCat("sha256:", kAdminDigest), std::string(1 << 20, 'x')}) {
    EXPECT_EQ(table.RoleOf(other), std::nullopt) << other.substr(0, 80);
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
      {"reader secret-0123456789abcdef more", "expected a role"},
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

TEST(TokenTableTest, ATableWithoutTokensIsRefused) {
  for (const char* text : {"", "\n\n", "# reader 0123456789abcdef\n"}) {
    EXPECT_FALSE(TokenTable::Parse(text).ok()) << text;
  }
}

TEST(TokenTableTest, TenThousandTokensAreTheMost) {
  std::string text;
  for (int i = 0; i < kMaxTokens; ++i) absl::StrAppend(&text, "reader token-0123456789-", i, "\n");
  const TokenTable table = TokenTable::Parse(text).value();
  EXPECT_EQ(table.RoleOf("token-0123456789-9999"), Role::kReader);
  const absl::StatusOr<TokenTable> more =
      TokenTable::Parse(absl::StrCat(text, "reader token-0123456789-10000"));
  EXPECT_THAT(std::string(more.status().message()),
              HasSubstr("line 10001: the file has more than 10000 tokens"));
}

}  // namespace
}  // namespace phimap::testing
