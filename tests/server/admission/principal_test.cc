#include "server/admission/principal.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace phimap::testing {
namespace {

// Whether `name` matches, by trying every number of characters for each "*".
bool MatchesNaively(const std::string& name, const std::string& pattern) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] != '*') {
    return !name.empty() && name[0] == pattern[0] &&
           MatchesNaively(name.substr(1), pattern.substr(1));
  }
  for (size_t taken = 0; taken <= name.size(); ++taken) {
    if (MatchesNaively(name.substr(taken), pattern.substr(1))) return true;
  }
  return false;
}

// All texts of `letters` with up to `length` characters.
std::vector<std::string> Texts(const std::string& letters, size_t length) {
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == length) continue;
    for (const char letter : letters) texts.push_back(texts[i] + letter);
  }
  return texts;
}

TEST(PatternTest, MatchesAsTheDefinitionSays) {
  int matched = 0;
  for (const std::string& pattern : Texts("ab*", 5)) {
    for (const std::string& name : Texts("ab", 5)) {
      ASSERT_EQ(MatchesPattern(name, pattern), MatchesNaively(name, pattern))
          << name << " " << pattern;
      matched += MatchesPattern(name, pattern) ? 1 : 0;
    }
  }
  EXPECT_GT(matched, 1000);
}

TEST(PatternTest, ManyStarsTakeLittleTime) {
  std::string pattern;
  for (int i = 0; i < 31; ++i) pattern += "*a";
  // A matcher that tries all ways would not end.
  EXPECT_FALSE(MatchesPattern(std::string(62, 'a') + "b", pattern));
}

TEST(PrincipalTest, TheFirstPatternThatMatchesCounts) {
  Principal principal;
  principal.role = Role::kAdmin;
  EXPECT_EQ(principal.RoleOn("anything"), Role::kAdmin);
  principal.names = {{"fraud-shared-*", Role::kReader}, {"fraud-*", Role::kBuilder}};
  EXPECT_EQ(principal.RoleOn("fraud-shared-1"), Role::kReader);
  EXPECT_EQ(principal.RoleOn("fraud-cards"), Role::kBuilder);
  EXPECT_EQ(principal.RoleOn("fraud"), std::nullopt);
  EXPECT_EQ(principal.RoleOn("risk-fraud-cards"), std::nullopt);
  EXPECT_EQ(principal.NamesText(), "fraud-shared-* (reader), fraud-* (builder)");
}

}  // namespace
}  // namespace phimap::testing
