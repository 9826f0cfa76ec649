#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/arguments/flags.h"
#include "client/cli/commands/prune_plan.h"
#include "tests/support/matchers.h"

namespace phimap::cli {
namespace {

const absl::Time kBegin = absl::FromUnixSeconds(1'700'000'000);

// Returns the versions n, …, 2, 1. Version i was created i days after kBegin.
std::vector<v1::Version> VersionsOf(const std::string& mapping, int n) {
  std::vector<v1::Version> versions;
  for (int i = n; i >= 1; --i) {
    v1::Version& version = versions.emplace_back();
    version.mutable_ref()->set_name(mapping);
    version.mutable_ref()->set_number(i);
    version.mutable_create_time()->set_seconds(absl::ToUnixSeconds(kBegin) + i * 86'400);
  }
  return versions;
}

v1::Mapping MappingOf(const std::string& name, int64_t aliased = 0, int64_t before = 0) {
  v1::Mapping mapping;
  mapping.set_name(name);
  if (aliased == 0) return mapping;
  v1::Alias& alias = *mapping.add_aliases();
  alias.set_name("prod");
  alias.set_version(aliased);
  alias.set_previous_version(before);
  return mapping;
}

std::vector<std::string> DeletedBy(const PrunePlan& plan) {
  std::vector<std::string> names;
  for (const v1::Version& version : plan.versions) {
    names.push_back(client::ReferenceTo(version.ref()));
  }
  return names;
}

TEST(CliPruneTest, AllVersionsOfAMappingAreDeletedAndTheMappingWithThem) {
  PrunePlan plan;
  AddToPlan(MappingOf("f2-a"), VersionsOf("f2-a", 2), {}, plan);
  AddToPlan(MappingOf("f2-b"), {}, {}, plan);
  EXPECT_THAT(DeletedBy(plan), ElementsAre("f2-a@2", "f2-a@1"));
  EXPECT_THAT(plan.emptied, ElementsAre("f2-a", "f2-b"));
  EXPECT_THAT(plan.kept_by_aliases, IsEmpty());
}

TEST(CliPruneTest, OnlyOldVersionsAreDeletedIfAnAgeIsGiven) {
  PrunePlan plan;
  const PruneRule rule{.created_before = kBegin + absl::Hours(2 * 24)};
  AddToPlan(MappingOf("f2-a"), VersionsOf("f2-a", 3), rule, plan);
  EXPECT_THAT(DeletedBy(plan), ElementsAre("f2-a@1"));
  EXPECT_THAT(plan.emptied, IsEmpty());
}

TEST(CliPruneTest, WhatAliasesKeepIsNamedOrPassedOver) {
  PrunePlan named;
  AddToPlan(MappingOf("f2-a", 3, 1), VersionsOf("f2-a", 3), {}, named);
  EXPECT_THAT(DeletedBy(named), ElementsAre("f2-a@2"));
  EXPECT_THAT(named.kept_by_aliases, ElementsAre("f2-a@3 (prod)", "f2-a@1 (a rollback of prod)"));
  EXPECT_THAT(named.emptied, IsEmpty());
  PrunePlan passed_over;
  AddToPlan(MappingOf("f2-a", 3, 1), VersionsOf("f2-a", 3), {.unaliased = true}, passed_over);
  EXPECT_THAT(DeletedBy(passed_over), ElementsAre("f2-a@2"));
  EXPECT_THAT(passed_over.kept_by_aliases, IsEmpty());
  // The version with the alias is too young to be deleted anyway, so it is not listed as kept by
  // its alias.
  PrunePlan young;
  AddToPlan(MappingOf("f2-a", 3), VersionsOf("f2-a", 3),
            {.created_before = kBegin + absl::Hours(2 * 24)}, young);
  EXPECT_THAT(young.kept_by_aliases, IsEmpty());
}

TEST(CliPruneTest, PatternsAreThoseOfAShell) {
  EXPECT_TRUE(MatchesName("f2-*", "f2-0123"));
  EXPECT_TRUE(MatchesName("f2-*", "f2-"));
  EXPECT_FALSE(MatchesName("f2-*", "f2"));
  EXPECT_FALSE(MatchesName("f2-*", "my-f2-1"));
  EXPECT_TRUE(MatchesName("f?-[ab]", "f2-a"));
  EXPECT_FALSE(MatchesName("f?-[ab]", "f2-c"));
  EXPECT_TRUE(MatchesName("letters", "letters"));
  EXPECT_TRUE(MatchesName("*", "letters"));
}

TEST(CliDurationTest, ANumberAndAUnit) {
  const struct {
    const char* text;
    absl::Duration duration;
  } cases[] = {{"90s", absl::Seconds(90)},   {"15m", absl::Minutes(15)},
               {"12h", absl::Hours(12)},     {"7d", absl::Hours(7 * 24)},
               {"2w", absl::Hours(14 * 24)}, {"1.5h", absl::Minutes(90)},
               {"0d", absl::ZeroDuration()}};
  for (const auto& c : cases) {
    const absl::StatusOr<absl::Duration> read = DurationOf(c.text, "--ttl");
    ASSERT_TRUE(read.ok()) << c.text;
    EXPECT_EQ(*read, c.duration) << c.text;
  }
  for (const char* text : {"", "d", "7", "7 d", "-7d", "+7d", "7dd", "7D", "1h30m", "1e3s", "infd",
                           "nand", "1.2.3d", "999999999999w"}) {
    const absl::StatusOr<absl::Duration> read = DurationOf(text, "--ttl");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(read.status()));
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("--ttl: expected"));
  }
}

TEST(CliDurationTest, IsShownInTheLargestUnitThatLeavesNoDecimals) {
  EXPECT_EQ(DurationArgumentText(absl::Hours(7 * 24)), "7d");
  EXPECT_EQ(DurationArgumentText(absl::Hours(36)), "36h");
  EXPECT_EQ(DurationArgumentText(absl::Seconds(90)), "90s");
  EXPECT_EQ(DurationArgumentText(absl::Milliseconds(90'500)), "90.5s");
}

}  // namespace
}  // namespace phimap::cli
