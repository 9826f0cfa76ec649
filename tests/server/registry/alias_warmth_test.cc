// Tests that the versions that aliases point to are loaded in advance and evicted last.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/registry/registry_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Warmth = VersionRegistry::Warmth;

constexpr std::chrono::hours kLong{1};

class AliasWarmthTest : public RegistryFixture {
 protected:
  AliasWarmthTest() {
    for (const char* name : {"a", "b", "c", "d"}) {
      store_.Put(name, 1, SmallArtifact());
      store_.Put(name, 2, SmallArtifact());
    }
  }

  void AwaitWarm() {
    ASSERT_EQ(registry_->AwaitWarm(std::chrono::steady_clock::now() + kLong), Warmth::kWarm);
  }
  // Returns how many versions with an alias are warm, how many are loading, and how many could not
  // be loaded.
  std::vector<double> States() {
    const RegistryMetrics& metrics = metrics_.registry();
    return {metrics.alias_versions_warm->Value(), metrics.alias_versions_loading->Value(),
            metrics.alias_versions_failed->Value()};
  }
  // Options with a memory limit that fits exactly `versions` versions.
  VersionRegistry::Options Fitting(int versions) {
    Start();
    const int64_t limit = LimitOf(versions, *Acquire("d@2"));
    registry_.reset();
    read_before_ = store_.reads();
    return {.max_live_bytes = limit};
  }
  std::vector<std::string> Read() {
    std::vector<std::string> read = store_.read_digests();
    read.erase(read.begin(), read.begin() + read_before_);
    return read;
  }

  int read_before_ = 0;
};

TEST_F(AliasWarmthTest, WhatAliasesNameIsLoadedOnceAndNothingElse) {
  store_.PutAlias("a", "prod", 1);
  store_.PutAlias("a", "canary", 1);
  store_.PutAlias("b", "prod", 2);
  Start();
  registry_->WarmAliases();
  AwaitWarm();
  EXPECT_TRUE(registry_->FindLive("a", 1));
  EXPECT_TRUE(registry_->FindLive("b", 2));
  EXPECT_EQ(store_.reads(), 2);
  EXPECT_THAT(States(), ElementsAre(2, 0, 0));
}

TEST_F(AliasWarmthTest, WithoutAliasesThereIsNothingToWaitFor) {
  store_.gate.Close();
  Start();
  registry_->WarmAliases();
  EXPECT_EQ(registry_->warming(), 0);
  AwaitWarm();
  store_.gate.Open();
  EXPECT_EQ(store_.reads(), 0);
}

TEST_F(AliasWarmthTest, TheAliasThatWasMovedLastComesFirst) {
  store_.PutAlias("b", "prod", 1);
  store_.PutAlias("d", "prod", 1);
  store_.PutAlias("a", "prod", 1);
  store_.PutAlias("c", "prod", 1);
  store_.PutAlias("b", "canary", 1);
  Start();
  registry_->WarmAliases();
  AwaitWarm();
  EXPECT_THAT(Read(), ElementsAre("b1", "c1", "a1", "d1"));
}

TEST_F(AliasWarmthTest, WhatDoesNotFitBesideTheOthersIsPassedOver) {
  const VersionRegistry::Options two = Fitting(2);
  store_.PutAlias("c", "prod", 1);
  store_.PutAlias("a", "prod", 1);
  store_.PutAlias("b", "prod", 1);
  Start(two);
  registry_->WarmAliases();
  AwaitWarm();
  EXPECT_THAT(Read(), ElementsAre("b1", "a1"));
  EXPECT_THAT(States(), ElementsAre(2, 0, 1));
  EXPECT_EQ(metrics_.registry().load_errors->Value(), 0);
  // A reader that asks for this version still gets it. Another version is evicted to make room.
  EXPECT_EQ(NumberOf("c@prod"), 1);
  EXPECT_THAT(States(), ElementsAre(2, 0, 1));
  EXPECT_LE(metrics_.registry().live_bytes->Value(), two.max_live_bytes);
}

TEST_F(AliasWarmthTest, ADamagedVersionIsPassedOverAndCounted) {
  std::string damaged = SmallArtifact();
  damaged[damaged.size() / 2] ^= 1;
  store_.Put("b", 1, damaged);
  store_.PutAlias("a", "prod", 1);
  store_.PutAlias("b", "prod", 1);  // this alias was moved last, so its version is loaded first
  Start();
  registry_->WarmAliases();
  AwaitWarm();
  EXPECT_TRUE(registry_->FindLive("a", 1));
  EXPECT_THAT(States(), ElementsAre(1, 0, 1));
  EXPECT_EQ(metrics_.registry().load_errors->Value(), 1);
}

TEST_F(AliasWarmthTest, ReadersComeBeforeWhatIsLoadedInTheBackground) {
  store_.PutAlias("b", "prod", 1);
  store_.PutAlias("a", "prod", 1);
  store_.read_gate.Close();
  Start();
  registry_->WarmAliases();
  store_.read_gate.AwaitWaiting();  // a is being read
  Answer c, d;
  registry_->Acquire("c@1", c.Callback());
  registry_->Acquire("d@1", LivePart::kFeatures, LoadPriority::kFirst, d.Callback());
  EXPECT_THAT(States(), ElementsAre(0, 2, 0));
  store_.read_gate.Open();
  AwaitWarm();
  EXPECT_TRUE(c.Await().ok());
  EXPECT_THAT(Read(), ElementsAre("a1", "d1", "c1", "b1"));
}

TEST_F(AliasWarmthTest, AReaderSharesTheLoadThatIsUnderWayAndMayTakeThePlaceOfPinnedVersions) {
  const VersionRegistry::Options one = Fitting(1);
  store_.PutAlias("b", "prod", 1);
  store_.PutAlias("a", "prod", 1);
  store_.gate.Close();
  Start(one);
  registry_->WarmAliases();
  store_.gate.AwaitWaiting();
  store_.gate.Pass();  // lets a be loaded
  store_.gate.AwaitWaiting();
  // A load in the background would find no capacity for b. Because a reader waits for b, the
  // registry evicts a.
  Answer reader;
  registry_->Acquire("b@1", reader.Callback());
  store_.gate.Open();
  EXPECT_TRUE(reader.Await().ok());
  EXPECT_FALSE(registry_->FindLive("a", 1));
  AwaitWarm();
  EXPECT_THAT(States(), ElementsAre(1, 0, 1));
}

TEST_F(AliasWarmthTest, TheNewVersionOfAnAliasIsLoadedAsSoonAsTheMoveIsSeen) {
  store_.PutAlias("a", "prod", 1);
  Start();
  registry_->WarmAliases();
  AwaitWarm();
  Answer old;
  registry_->Acquire("a@prod", old.Callback());
  const VersionHandle held = *old.Await();
  store_.PutAlias("a", "prod", 2);  // done by another server
  CatchUp();
  AwaitWarm();
  EXPECT_TRUE(registry_->FindLive("a", 2));
  EXPECT_EQ(held.record().number, 1);
  EXPECT_THAT(States(), ElementsAre(1, 0, 0));
}

TEST_F(AliasWarmthTest, AnAliasMovesToAColdVersionWhileAnotherIsRead) {
  store_.PutAlias("a", "prod", 1);
  Start();
  registry_->WarmAliases();
  AwaitWarm();
  store_.read_gate.Close();
  store_.PutAlias("a", "prod", 2);
  CatchUp();
  store_.read_gate.AwaitWaiting();
  Answer moved;
  registry_->Acquire("a@prod", moved.Callback());
  EXPECT_FALSE(moved.here());
  EXPECT_EQ(NumberOf("a@1"), 1);  // version 1 is served while version 2 is being read
  store_.read_gate.Open();
  EXPECT_EQ(NumberIn(moved.Await()), 2);
  EXPECT_THAT(Read(), ElementsAre("a1", "a2"));
}

TEST_F(AliasWarmthTest, WhatNoAliasNamesAnyMoreIsNotLoaded) {
  store_.PutAlias("c", "prod", 1);
  store_.PutAlias("a", "prod", 1);
  store_.PutAlias("b", "prod", 1);
  store_.gate.Close();
  Start();
  registry_->WarmAliases();
  store_.gate.AwaitWaiting();  // b is being loaded
  store_.RemoveAlias("c", "prod");
  store_.PutAlias("a", "prod", 2);
  CatchUp();
  EXPECT_THAT(States(), ElementsAre(0, 2, 0));
  store_.gate.Open();
  AwaitWarm();
  EXPECT_THAT(Read(), ElementsAre("b1", "a2"));
  EXPECT_THAT(States(), ElementsAre(2, 0, 0));
}

TEST_F(AliasWarmthTest, PinnedVersionsOutliveARandomLoadOfOthersAndPinsMove) {
  const VersionRegistry::Options two = Fitting(2);
  store_.PutAlias("a", "prod", 1);
  Start(two);
  registry_->WarmAliases();
  AwaitWarm();
  for (const char* other : {"b@1", "c@1", "d@1", "b@2", "c@2"}) {
    ASSERT_TRUE(Acquire(other).ok());
    EXPECT_TRUE(registry_->FindLive("a", 1)) << other;
  }
  store_.PutAlias("a", "prod", 2);
  CatchUp();
  AwaitWarm();
  for (const char* other : {"b@1", "c@1", "d@1"}) {
    ASSERT_TRUE(Acquire(other).ok());
    EXPECT_TRUE(registry_->FindLive("a", 2)) << other;
    EXPECT_FALSE(registry_->FindLive("a", 1)) << other;
  }
}

TEST_F(AliasWarmthTest, StoppingPassesOverWhatIsLeft) {
  for (const char* name : {"a", "b", "c", "d"}) store_.PutAlias(name, "prod", 1);
  store_.read_gate.Close();
  Start();
  registry_->WarmAliases();
  store_.read_gate.AwaitWaiting();
  registry_->StopWarming();
  EXPECT_EQ(registry_->AwaitWarm(std::chrono::steady_clock::now() + kLong), Warmth::kStopped);
  store_.PutAlias("a", "prod", 2);
  CatchUp();
  store_.read_gate.Open();
  registry_.reset();
  EXPECT_THAT(Read(), ElementsAre("d1"));
}

TEST_F(AliasWarmthTest, WhoeverWaitsIsToldWhenTheTimeIsOver) {
  store_.PutAlias("a", "prod", 1);
  store_.read_gate.Close();
  Start();
  registry_->WarmAliases();
  EXPECT_EQ(registry_->AwaitWarm(std::chrono::steady_clock::now()), Warmth::kLate);
  store_.read_gate.Open();
  AwaitWarm();
}

}  // namespace
}  // namespace phimap::testing
