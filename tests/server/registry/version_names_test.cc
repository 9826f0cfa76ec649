// Tests the registry while aliases move and versions are deleted, even in the middle of a load.
#include <memory>
#include <set>
#include <string>

#include "tests/server/registry/registry_fixture.h"

namespace phimap::testing {
namespace {

class VersionNamesTest : public RegistryFixture {
 protected:
  VersionNamesTest() {
    for (int64_t i = 1; i <= 3; ++i) store_.Put("a", i, SmallArtifact());
    store_.PutAlias("a", "prod", 1);
    Start();
  }

  // Moves the alias the way the server does: first in the store, then in the registry.
  void Move(int64_t number) {
    store_.PutAlias("a", "prod", number);
    CatchUp();
  }
  void Delete(int64_t number) {
    store_.Remove("a", number);
    CatchUp();
  }
  // Asks for `reference`, which is not live. Returns once the loader has looked up the name and is
  // about to read the artifact.
  void StopWhileLoading(const std::string& reference, Answer& answer) {
    store_.read_gate.Close();
    registry_->Acquire(reference, answer.Callback());
    store_.read_gate.AwaitWaiting();
  }
};

TEST_F(VersionNamesTest, AnAliasIsLookedUpOnceAndThenAnsweredOnTheCallingThread) {
  EXPECT_EQ(NumberOf("a@prod"), 1);
  store_.gate.Close();  // from here on the store would block
  EXPECT_EQ(NumberOf("a@prod"), 1);
  EXPECT_EQ(store_.reads(), 1);
  store_.gate.Open();
}

TEST_F(VersionNamesTest, AMovedAliasMeansItsNewVersionAtOnceIfThatIsLive) {
  EXPECT_EQ(NumberOf("a@prod"), 1);
  EXPECT_EQ(NumberOf("a@2"), 2);  // now version 2 is live
  Move(2);
  store_.gate.Close();
  EXPECT_EQ(NumberOf("a@prod"), 2);
  store_.gate.Open();
  EXPECT_EQ(store_.reads(), 2);
}

TEST_F(VersionNamesTest, AnAliasThatMovesWhileItIsLoadedIsAnsweredWithItsNewVersion) {
  Answer before;
  StopWhileLoading("a@prod", before);  // at this time the alias is at version 1
  Move(2);
  Answer after;
  registry_->Acquire("a@prod", after.Callback());  // waits with the first request
  EXPECT_FALSE(after.here());
  store_.read_gate.Open();
  EXPECT_EQ(NumberIn(after.Await()), 2);
  EXPECT_EQ(NumberIn(before.Await()), 2);
  EXPECT_EQ(NumberOf("a@prod"), 2);
}

TEST_F(VersionNamesTest, AnAliasThatIsDeletedWhileItIsLoadedIsNotFoundAndWhatWasReadIsKept) {
  Answer before;
  StopWhileLoading("a@prod", before);
  store_.RemoveAlias("a", "prod");
  CatchUp();
  store_.read_gate.Open();
  EXPECT_EQ(NumberIn(before.Await()), 0);
  EXPECT_EQ(NumberOf("a@prod"), 0);
  EXPECT_EQ(NumberOf("a@1"), 1);
}

TEST_F(VersionNamesTest, OtherNewsDoNotMakeALoadReadTwice) {
  Answer answer;
  StopWhileLoading("a@1", answer);
  store_.PutAlias("b", "prod", 7);
  CatchUp();
  store_.read_gate.Open();
  EXPECT_EQ(NumberIn(answer.Await()), 1);
  EXPECT_EQ(store_.reads(), 1);
  EXPECT_EQ(metrics_.registry().loads->Value(), 1);
}

TEST_F(VersionNamesTest, ADeletedVersionIsNotFoundAndWhoHoldsItGoesOn) {
  const VersionHandle held = Acquire("a@2").value();
  Delete(2);
  EXPECT_EQ(NumberOf("a@2"), 0);
  EXPECT_FALSE(registry_->FindLive("a", 2));
  EXPECT_EQ(held.record().number, 2);
  EXPECT_GT(held.engine().output_columns(), 0);
  // The deleted version still takes its memory.
  EXPECT_EQ(metrics_.registry().live_versions->Value(), 1);
  EXPECT_EQ(metrics_.registry().live_bytes->Value(), held.engine().memory_bytes());
}

TEST_F(VersionNamesTest, TheBareNameMeansTheNextOlderVersionOnceTheNewestIsDeleted) {
  EXPECT_EQ(NumberOf("a"), 3);
  Delete(3);
  EXPECT_EQ(NumberOf("a"), 2);
  Delete(1);  // not the newest version
  EXPECT_EQ(NumberOf("a"), 2);
  Delete(2);
  EXPECT_EQ(NumberOf("a"), 0);
  store_.Put("a", 4, SmallArtifact());
  CatchUp();
  EXPECT_EQ(NumberOf("a"), 4);
}

TEST_F(VersionNamesTest, AVersionThatIsDeletedWhileItIsLoadedDoesNotBecomeLive) {
  Answer answer;
  StopWhileLoading("a@2", answer);
  Delete(2);
  store_.read_gate.Open();
  EXPECT_EQ(NumberIn(answer.Await()), 0);
  EXPECT_FALSE(registry_->FindLive("a", 2));
  EXPECT_EQ(NumberOf("a@2"), 0);
}

// Version 3 is deleted in the store without the registry's knowledge. Its load fails, and then the
// name without a version means the next older version.
TEST_F(VersionNamesTest, TheNewestThatVanishesWhileItIsLoadedIsReplacedByTheNextOlder) {
  Answer answer;
  StopWhileLoading("a", answer);
  store_.Remove("a", 3);
  store_.read_gate.Open();
  EXPECT_EQ(NumberIn(answer.Await()), 2);
}

TEST_F(VersionNamesTest, APublishedVersionIsTheNewestAlsoForWhoWaitsForALoad) {
  Answer before;
  StopWhileLoading("a", before);  // at this time the name means version 3
  store_.Put("a", 4, SmallArtifact());
  CatchUp();
  Answer after;
  registry_->Acquire("a", after.Callback());
  store_.read_gate.Open();
  EXPECT_EQ(NumberIn(after.Await()), 4);
}

TEST_F(VersionNamesTest, WhenNamesCannotBeReadTheyMeanWhatTheyMeantUntilAnUnknownOneIsAskedFor) {
  EXPECT_EQ(NumberOf("a"), 3);
  store_.Put("a", 4, SmallArtifact());
  store_.FailChanges(true);
  EXPECT_TRUE(absl::IsUnavailable(registry_->CatchUp()));
  EXPECT_EQ(NumberOf("a"), 3);
  EXPECT_EQ(NumberOf("a@prod"), 1);
  store_.FailChanges(false);
  EXPECT_EQ(NumberOf("a"), 3);
  EXPECT_EQ(NumberOf("a@4"), 4);
  EXPECT_EQ(NumberOf("a"), 4);
}

TEST_F(VersionNamesTest, ADeletedMappingIsNotFoundUnderAnyOfItsNames) {
  for (const char* reference : {"a", "a@1", "a@2", "a@prod"}) EXPECT_NE(NumberOf(reference), 0);
  store_.RemoveAlias("a", "prod");
  for (int64_t i = 1; i <= 3; ++i) store_.Remove("a", i);
  CatchUp();
  for (const char* reference : {"a", "a@1", "a@2", "a@prod"}) EXPECT_EQ(NumberOf(reference), 0);
}

// If an alias moves while its version is being loaded, and the old version is then deleted, the
// load must not fail.
TEST_F(VersionNamesTest, AnAliasThatMovesWhileItsEvictedVersionIsReadMeansTheOther) {
  VersionRegistry::Options options{.max_live_bytes = LimitOf(1, *Acquire("a@1"))};
  Start(options);
  EXPECT_EQ(NumberOf("a@prod"), 1);
  EXPECT_EQ(NumberOf("a@3"), 3);
  EXPECT_FALSE(registry_->FindLive("a", 1));
  store_.read_gate.Close();
  Answer answer;
  registry_->Acquire("a@prod", answer.Callback());
  store_.read_gate.AwaitWaiting();
  Move(2);
  Delete(1);
  store_.read_gate.Open();
  EXPECT_EQ(NumberIn(answer.Await()), 2);
}

TEST_F(VersionNamesTest, ADigestOfALiveVersionIsAnsweredWithoutTheStore) {
  const std::string digest(64, 'd');
  store_.PutDigest("a", 4, SmallArtifact(), digest);
  CatchUp();
  EXPECT_EQ(NumberOf("a@4"), 4);
  store_.gate.Close();  // from here on the store would block
  EXPECT_EQ(NumberOf("a@sha256:" + digest), 4);
  EXPECT_EQ(NumberOf("a@sha256:ddddddd"), 4);
  store_.gate.Open();
  EXPECT_EQ(store_.reads(), 1);
}

TEST_F(VersionNamesTest, ADigestIsLoadedIfNeedBeAndFoundBeforeTheRegistryHasHeardOfIt) {
  const std::string digest(64, 'e');
  EXPECT_EQ(NumberOf("a@sha256:" + digest), 0);
  store_.PutDigest("a", 4, SmallArtifact(), digest);  // done by another server
  EXPECT_EQ(NumberOf("a@sha256:" + digest), 4);
  Delete(4);
  EXPECT_EQ(NumberOf("a@sha256:" + digest), 0);
  store_.PutDigest("a", 5, SmallArtifact(), digest);
  CatchUp();
  EXPECT_EQ(NumberOf("a@sha256:" + digest), 5);
}

TEST_F(VersionNamesTest, WhatWasLoadedForSomebodyOrNotedAsUsedIsToldOnce) {
  EXPECT_TRUE(registry_->TakeUses().empty());
  EXPECT_EQ(NumberOf("a@prod"), 1);
  EXPECT_EQ(NumberOf("a@3"), 3);
  EXPECT_EQ(NumberOf("a@9"), 0);
  EXPECT_EQ(registry_->TakeUses(), (std::set<VersionName>{{"a", 1}, {"a", 3}}));
  const VersionHandle live = Acquire("a@3").value();
  EXPECT_TRUE(registry_->TakeUses().empty());
  registry_->NoteUse(live);
  EXPECT_EQ(registry_->TakeUses(), (std::set<VersionName>{{"a", 3}}));
}

}  // namespace
}  // namespace phimap::testing
