#include "server/registry/reference.h"

#include <string>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

const std::string k63(63, 'a');

TEST(ReferenceTest, ReadsNameNumberAndAlias) {
  const auto newest = ParseReference("letter").value();
  EXPECT_EQ(newest.mapping, "letter");
  EXPECT_EQ(newest.number, std::nullopt);
  EXPECT_EQ(newest.alias, "");
  EXPECT_EQ(*ParseReference("letter@7")->number, 7);
  EXPECT_EQ(*ParseReference("a@9223372036854775807")->number, INT64_MAX);
  EXPECT_EQ(ParseReference("a-b-1@prod-2")->alias, "prod-2");
}

TEST(ReferenceTest, ReadsADigestOrItsFirstSevenDigitsAndMore) {
  const std::string digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  for (const size_t digits : {size_t{7}, size_t{12}, size_t{64}}) {
    const std::string text = "letter@sha256:" + digest.substr(0, digits);
    const auto reference = ParseReference(text);
    ASSERT_TRUE(reference.ok()) << text;
    EXPECT_EQ(reference->mapping, "letter");
    EXPECT_EQ(reference->digest, digest.substr(0, digits));
    EXPECT_EQ(reference->number, std::nullopt);
    EXPECT_EQ(reference->alias, "");
  }
  EXPECT_EQ(ParseReference("letter@sha256")->alias, "sha256");
}

TEST(ReferenceTest, AnythingElseIsRefusedAndNamesTheField) {
  std::vector<std::string> bad = {"",     "@",    "@7",    "A",     "a_b",      "-a",
                                  "a-",   "7a",   "a@",    "a@0",   "a@01",     "a@-1",
                                  "a@ 1", "a@1 ", "a@P",   "a@1@2", "a@prod@1", "a b",
                                  "a\n",  "ä",    "a@1e3", "a@@1",  "a@sha256:"};
  bad.insert(bad.end(), {"a@+1", "a@sha256:012345", "a@sha256:0123456789ABCDEF", "a@sha256:012345g",
                         "a@sha256:" + std::string(65, '0'), "a@SHA256:0123456", "a@sha512:0123456",
                         "a@0123456:sha256", k63 + "a", "a@9223372036854775808", "a@" + k63 + "a",
                         std::string("a\0b", 3)});
  for (const std::string& text : bad) {
    const auto parsed = ParseReference(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(parsed.status(), IsError(StatusCode::kInvalidArgument, _, "reference"));
  }
}

TEST(ReferenceTest, NamesHaveAtMostSixtyThreeBytes) {
  EXPECT_TRUE(IsMappingName(k63));
  EXPECT_FALSE(IsMappingName(k63 + "a"));
  EXPECT_TRUE(IsMappingName("a"));
  EXPECT_FALSE(IsMappingName("a-"));
  EXPECT_TRUE(IsAliasName("a-"));
  EXPECT_FALSE(IsAliasName("1"));
}

TEST(ReferenceTest, AnErrorShowsLittleOfALongText) {
  const absl::Status status = CheckMappingName(std::string(100'000, 'X'), "mapping");
  EXPECT_LT(status.message().size(), 500);
}

}  // namespace
}  // namespace phimap::testing
