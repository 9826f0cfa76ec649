#include "server/registry/live_versions.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace phimap::testing {
namespace {

class SizedEngine : public Engine {
 public:
  explicit SizedEngine(int64_t bytes)
      : Engine({.input = {.columns = 1}, .output_columns = 1}), bytes_(bytes) {}
  int64_t memory_bytes() const override { return bytes_; }
  int64_t multiplications_per_row() const override { return 1; }
  void Transform(absl::Span<TransformPart>, EngineScratch&) const override {}

 private:
  const int64_t bytes_;
};

std::shared_ptr<const LiveVersion> Version(const char* mapping, int64_t number, int64_t bytes) {
  auto version = std::make_shared<LiveVersion>();
  version->record.mapping = mapping;
  version->record.number = number;
  version->engine = std::make_unique<SizedEngine>(bytes);
  return version;
}

void Add(LiveVersions& live, const char* mapping, int64_t number, int64_t bytes) {
  ASSERT_TRUE(live.FreeCapacity(bytes));
  live.Insert(Version(mapping, number, bytes));
}

TEST(LiveVersionsTest, TheLongestUnusedMakeRoom) {
  LiveVersions live(100);
  Add(live, "a", 1, 40);
  Add(live, "b", 1, 40);
  EXPECT_NE(live.Find("a", 1), nullptr);  // now b has been unused for the longest time
  Add(live, "a", 2, 40);
  EXPECT_EQ(live.Find("b", 1), nullptr);
  EXPECT_NE(live.Find("a", 1), nullptr);
  EXPECT_NE(live.Find("a", 2), nullptr);
  EXPECT_EQ(live.bytes(), 80);
  EXPECT_EQ(live.count(), 2);
  EXPECT_EQ(live.evictions(), 1);
}

TEST(LiveVersionsTest, AllAreThoseThatCanBeFoundInOrderAndNoneIsUsedByIt) {
  LiveVersions live(100);
  Add(live, "b", 1, 20);
  Add(live, "a", 2, 20);
  Add(live, "a", 1, 20);
  Add(live, "c", 1, 20);
  const std::shared_ptr<const LiveVersion> held = live.Find("c", 1);
  live.Retire("c", 1);
  std::string names;
  for (const auto& version : live.All()) {
    names += version->record.mapping + std::to_string(version->record.number) + " ";
  }
  EXPECT_EQ(names, "a1 a2 b1 ");
  EXPECT_TRUE(live.FreeCapacity(40));  // c is held, so b is evicted, unused the longest
  EXPECT_EQ(live.Find("b", 1), nullptr);
  EXPECT_NE(live.Find("a", 1), nullptr);
}

TEST(LiveVersionsTest, VersionsThatAreHeldStay) {
  LiveVersions live(100);
  Add(live, "a", 1, 60);
  Add(live, "b", 1, 40);
  {
    const VersionHandle pinned(live.Find("a", 1));
    EXPECT_NE(live.Find("b", 1), nullptr);
    // a is held, and evicting b would not free enough memory. Therefore b stays, too.
    EXPECT_FALSE(live.FreeCapacity(60));
    EXPECT_NE(live.Find("b", 1), nullptr);
    EXPECT_NE(live.Find("a", 1), nullptr);
    // A pinned engine keeps its version in memory, too.
    const std::shared_ptr<const Engine> engine = pinned.pinned_engine();
    EXPECT_EQ(engine->memory_bytes(), 60);
  }
  EXPECT_TRUE(live.FreeCapacity(60));
  EXPECT_EQ(live.bytes(), 0);
}

TEST(LiveVersionsTest, WhatIsOverTheLimitAloneNeverFits) {
  LiveVersions live(100);
  Add(live, "a", 1, 60);
  EXPECT_FALSE(live.FreeCapacity(101));
  EXPECT_NE(live.Find("a", 1), nullptr);  // the cache was not emptied
  EXPECT_EQ(live.evictions(), 0);
  EXPECT_TRUE(live.FreeCapacity(100));
}

TEST(LiveVersionsTest, ARetiredVersionIsNotFoundAndItsMemoryIsFreeUnlessItIsHeld) {
  LiveVersions live(100);
  Add(live, "a", 1, 40);
  Add(live, "a", 2, 40);
  live.Retire("a", 1);
  live.Retire("a", 7);  // not in memory
  live.Retire("b", 1);
  EXPECT_EQ(live.Find("a", 1), nullptr);
  EXPECT_NE(live.Find("a", 2), nullptr);
  EXPECT_EQ(live.bytes(), 40);
  EXPECT_EQ(live.count(), 1);
  EXPECT_EQ(live.evictions(), 0);
}

TEST(LiveVersionsTest, ARetiredVersionThatIsHeldCountsUntilItIsLetGoAndThenGoesFirst) {
  LiveVersions live(100);
  Add(live, "a", 1, 30);
  Add(live, "b", 1, 30);
  {
    const VersionHandle held(live.Find("b", 1));  // b was used last
    live.Retire("b", 1);
    EXPECT_EQ(live.Find("b", 1), nullptr);
    EXPECT_EQ(live.bytes(), 60);
    EXPECT_FALSE(live.FreeCapacity(80));
    EXPECT_NE(live.Find("a", 1), nullptr);
  }
  Add(live, "c", 1, 70);
  EXPECT_NE(live.Find("a", 1), nullptr);
  EXPECT_EQ(live.bytes(), 100);
}

TEST(LiveVersionsTest, DroppingARetiredVersionLeavesTheOneThatTookItsPlace) {
  LiveVersions live(100);
  Add(live, "a", 1, 30);
  {
    const VersionHandle held(live.Find("a", 1));
    live.Retire("a", 1);
    Add(live, "a", 1, 30);
  }
  EXPECT_TRUE(live.FreeCapacity(70));
  EXPECT_NE(live.Find("a", 1), nullptr);
  EXPECT_EQ(live.bytes(), 30);
}

TEST(LiveVersionsTest, PinnedVersionsMakeRoomAfterAllOthersAndTheLongestUnusedFirst) {
  LiveVersions live(100);
  live.Pin("a", {1, 2});
  for (int64_t i = 1; i <= 3; ++i) Add(live, "a", i, 20);
  Add(live, "b", 1, 20);
  EXPECT_NE(live.Find("a", 1), nullptr);  // now a2 is the pinned version unused the longest
  EXPECT_TRUE(live.FreeCapacity(60));     // evicting a3 and b1 is enough
  EXPECT_TRUE(live.Contains("a", 1));
  EXPECT_TRUE(live.Contains("a", 2));
  EXPECT_EQ(live.count(), 2);
  EXPECT_TRUE(live.FreeCapacity(61));
  EXPECT_TRUE(live.Contains("a", 1));
  EXPECT_FALSE(live.Contains("a", 2));
}

TEST(LiveVersionsTest, PinnedVersionsStayWhereOnlyOthersMayMakeRoom) {
  LiveVersions live(100);
  live.Pin("a", {1});
  Add(live, "a", 1, 40);
  Add(live, "b", 1, 40);
  EXPECT_FALSE(live.FreeCapacity(61, Eviction::kUnpinned));
  EXPECT_TRUE(live.Contains("b", 1));  // evicting b alone would not have been enough
  EXPECT_TRUE(live.FreeCapacity(60, Eviction::kUnpinned));
  EXPECT_TRUE(live.Contains("a", 1));
  EXPECT_FALSE(live.Contains("b", 1));
}

TEST(LiveVersionsTest, ALowerLimitUnloadsTheLongestUnusedPinnedOnesLastAndHeldOnesNever) {
  LiveVersions live(100);
  live.Pin("a", {1});
  for (int64_t i = 1; i <= 4; ++i) Add(live, "a", i, 20);
  const std::shared_ptr<const LiveVersion> held = live.Find("a", 4);
  live.SetMaxBytes(60);
  EXPECT_FALSE(live.Contains("a", 2));
  EXPECT_TRUE(live.Contains("a", 1));
  live.SetMaxBytes(40);
  EXPECT_FALSE(live.Contains("a", 3));
  EXPECT_TRUE(live.Contains("a", 1));
  live.SetMaxBytes(10);
  EXPECT_EQ(live.bytes(), 20);
  EXPECT_TRUE(live.Contains("a", 4));
  EXPECT_FALSE(live.FreeCapacity(1));
}

TEST(LiveVersionsTest, AVersionThatALowerLimitMeetsOnItsWayInMakesOthersGo) {
  LiveVersions live(100);
  Add(live, "a", 1, 40);
  ASSERT_TRUE(live.FreeCapacity(40));
  live.SetMaxBytes(50);
  const std::shared_ptr<const LiveVersion> coming = Version("b", 1, 40);
  live.Insert(coming);
  EXPECT_FALSE(live.Contains("a", 1));
  EXPECT_TRUE(live.Contains("b", 1));
}

TEST(LiveVersionsTest, PinsMoveAndAreCountedHereAndNotHere) {
  LiveVersions live(100);
  live.Pin("a", {1, 3});
  live.Pin("b", {1});
  Add(live, "a", 1, 40);
  Add(live, "a", 2, 40);
  EXPECT_EQ(live.pinned(), 3);
  EXPECT_EQ(live.pinned_here(), 1);
  EXPECT_EQ(live.MissingPinned(), (std::vector<VersionName>{{"a", 3}, {"b", 1}}));
  live.Pin("a", {2});
  live.Pin("b", {});
  EXPECT_EQ(live.pinned(), 1);
  EXPECT_EQ(live.pinned_here(), 1);
  EXPECT_EQ(live.MissingPinned(), std::vector<VersionName>());
  EXPECT_NE(live.Find("a", 1), nullptr);  // used last, but no longer pinned, so evicted first
  EXPECT_TRUE(live.FreeCapacity(60));
  EXPECT_TRUE(live.Contains("a", 2));
  EXPECT_FALSE(live.Contains("a", 1));
  live.Retire("a", 2);
  EXPECT_EQ(live.pinned_here(), 0);
  Add(live, "a", 2, 40);
  EXPECT_EQ(live.pinned_here(), 1);
  EXPECT_TRUE(live.FreeCapacity(100));
  EXPECT_EQ(live.pinned_here(), 0);
}

// Aliases are sorted by their names, not by their versions, and several may point at one version.
TEST(AliasedVersions, AreEachNamedOnceInTheirOrder) {
  const MappingNames names{.mapping = "m",
                           .versions = {3, 5, 7},
                           .aliases = {{"a", 7}, {"b", 3}, {"c", 7}, {"d", 5}, {"e", 3}}};
  EXPECT_THAT(AliasedVersions(names), ::testing::ElementsAre(3, 5, 7));
  EXPECT_THAT(AliasedVersions({.mapping = "m"}), ::testing::IsEmpty());
}

}  // namespace
}  // namespace phimap::testing
