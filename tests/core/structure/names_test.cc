// Tests that the code of server, clients and protos contains no name of a mapping, kernel, policy
// or learner. Only the tables of core/ contain these names. The other parts get them at run time,
// from texts and from ListCapabilities.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "core/kernel/leaf_kernel.h"
#include "core/landmark/landmark_policy.h"
#include "core/learn/learner_type.h"
#include "core/mapping/spec/family.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/source_dir.h"

namespace phimap {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  for (const Family* family : Families()) names.emplace_back(family->name);
  for (const LeafKernel* kernel : LeafKernels()) names.emplace_back(kernel->name);
  for (const LandmarkPolicy* policy : LandmarkPolicies()) names.emplace_back(policy->name);
  for (const LearnerType* learner : LearnerTypes()) names.emplace_back(learner->name);
  return names;
}

// Returns the string literals of a C++ text, except those in comments.
std::vector<std::string> LiteralsOf(const std::string& text) {
  std::vector<std::string> literals;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) {
      i = text.find('\n', i);
      if (i == std::string::npos) break;
    } else if (text[i] == '\'') {
      i += text[i + 1] == '\\' ? 3 : 2;
    } else if (text[i] == '"') {
      std::string literal;
      for (++i; i < text.size() && text[i] != '"'; ++i) {
        if (text[i] == '\\') ++i;
        literal.push_back(text[i]);
      }
      literals.push_back(literal);
    }
  }
  return literals;
}

// Whether `literal` contains `name`, the name of a mapping, kernel, policy or learner. Many of
// these names are also English words, so the literal must be the name alone or contain a call of
// it, such as "f2(".
bool Names(const std::string& literal, const std::string& name) {
  if (literal == name) return true;
  const std::string call = name + "(";
  for (size_t at = literal.find(call); at != std::string::npos; at = literal.find(call, at + 1)) {
    const char before = at == 0 ? ' ' : literal[at - 1];
    if (!absl::ascii_isalnum(before) && before != '_') return true;
  }
  return false;
}

std::vector<std::string> NamesUnder(const std::string& folder) {
  std::vector<std::string> found;
  const fs::path root = testing::SourcePath(folder);
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string path = entry.path().string();
    if (!absl::EndsWith(path, ".cc") && !absl::EndsWith(path, ".h")) continue;
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    for (const std::string& literal : LiteralsOf(text.str())) {
      for (const std::string& name : AllNames()) {
        if (Names(literal, name)) found.push_back(absl::StrCat(path, ": \"", literal, "\""));
      }
    }
  }
  return found;
}

// Returns the identifiers of a proto in lower case, without those in comments and strings.
std::vector<std::string> IdentifiersOf(const std::string& text) {
  std::vector<std::string> identifiers;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text[i] == '"') {
      i = std::min(text.find('"', i + 1), text.size() - 1) + 1;
    } else if (absl::ascii_isalpha(text[i])) {
      size_t end = i;
      while (end < text.size() && (absl::ascii_isalnum(text[end]) || text[end] == '_')) ++end;
      identifiers.push_back(absl::AsciiStrToLower(text.substr(i, end - i)));
      i = end;
    } else {
      ++i;
    }
  }
  return identifiers;
}

TEST(NamesTest, NoProtoNamesAMappingKernelPolicyOrLearner) {
  std::set<std::string> names;
  for (const std::string& name : AllNames()) names.insert(name);
  names.erase("spectrum");  // in the protos, "spectrum" means the eigenvalues in a certificate
  ASSERT_EQ(names.count("rbf"), 1u);
  EXPECT_THAT(IdentifiersOf("enum A { F2 = 1;  // MATERN\n D2 = 2; }"),
              ::testing::ElementsAre("enum", "a", "f2", "d2"));
  for (const char* folder : {"proto/phimap", "proto/inference", "proto/artifact"}) {
    for (const auto& entry : fs::recursive_directory_iterator(testing::SourcePath(folder))) {
      if (entry.path().extension() != ".proto") continue;
      std::ifstream file(entry.path());
      std::stringstream text;
      text << file.rdbuf();
      for (const std::string& identifier : IdentifiersOf(text.str())) {
        EXPECT_EQ(names.count(identifier), 0u) << entry.path() << ": " << identifier;
      }
    }
  }
}

// Expects that docs/maths.md has a row for `what` ("the kernel"), which begins with `begin` and
// names the parameters. `last` is the line after which a missing row can be put: that of the row
// found before.
void ExpectRow(absl::string_view what, absl::string_view name, const std::string& begin,
               const std::vector<std::string>& parameters, int64_t& last) {
  std::ifstream file(testing::SourcePath("docs/maths.md"));
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!absl::StartsWith(line, begin)) continue;
    last = number;
    for (const std::string& parameter : parameters) {
      EXPECT_TRUE(absl::StrContains(line, absl::StrCat(parameter, "=")))
          << "docs/maths.md:" << number << ": write " << parameter << "= into the row of " << what
          << " " << name;
    }
    return;
  }
  ADD_FAILURE() << "docs/maths.md:" << last + 1 << ": add a row for " << what << " " << name
                << ", which begins with " << begin
                << (parameters.empty() ? "" : absl::StrJoin(parameters, "=…, ") + "=…)`");
}

std::vector<std::string> ParameterNames(absl::Span<const Parameter> parameters) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) {
    // Two parameters that many kernels share have a paragraph of their own.
    if (parameter.name == "columns" || parameter.name == "scales") continue;
    names.emplace_back(parameter.name);
  }
  return names;
}

TEST(NamesTest, TheMathematicsHaveARowForEachKernelMappingPolicyAndLearner) {
  int64_t last = 0;
  for (const Family* mapping : Families()) {
    ExpectRow("the mapping", mapping->name, absl::StrCat("| `", mapping->name, "("), {}, last);
  }
  for (const LandmarkPolicy* policy : LandmarkPolicies()) {
    ExpectRow("the landmark policy", policy->name, absl::StrCat("| `", policy->name, "` |"), {},
              last);
  }
  for (const LeafKernel* kernel : LeafKernels()) {
    ExpectRow("the kernel", kernel->name, absl::StrCat("| `", kernel->name, "("),
              ParameterNames(kernel->parameters), last);
  }
  for (const LearnerType* learner : LearnerTypes()) {
    ExpectRow("the learner", learner->name, absl::StrCat("| `", learner->name, "("),
              ParameterNames(learner->parameters), last);
  }
}

TEST(NamesTest, TheGlossaryNamesEachLandmarkPolicy) {
  std::ifstream file(testing::SourcePath("docs/glossary.md"));
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!absl::StartsWith(line, "- **Policy**:")) continue;
    for (const LandmarkPolicy* policy : LandmarkPolicies()) {
      EXPECT_TRUE(absl::StrContains(line, absl::StrCat("`", policy->name, "`")))
          << "docs/glossary.md:" << number << ": add `" << policy->name
          << "` to the names of policies under \"Policy\"";
    }
    return;
  }
  FAIL() << "docs/glossary.md has no entry \"Policy\"";
}

TEST(NamesTest, LiteralsThatNameSomethingAreFound) {
  EXPECT_TRUE(Names("f2", "f2"));
  EXPECT_TRUE(Names("expected f2(landmarks=5)", "f2"));
  EXPECT_FALSE(Names("elf2(", "f2"));
  EXPECT_FALSE(Names("a uniform sample", "uniform"));
  EXPECT_THAT(LiteralsOf("a(\"x\\\"y\");  // \"z\"\nb('\"', \"w\");"),
              ::testing::ElementsAre("x\"y", "w"));
}

TEST(NamesTest, TheClientNamesNoMappingKernelPolicyOrLearner) {
  EXPECT_THAT(NamesUnder("client"), ::testing::IsEmpty());
}

TEST(NamesTest, TheServerNamesNoMappingKernelPolicyOrLearner) {
  EXPECT_THAT(NamesUnder("server"), ::testing::IsEmpty());
}

}  // namespace
}  // namespace phimap
