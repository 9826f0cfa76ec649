#include "server/registry/version_registry.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "tests/server/registry/registry_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

class VersionRegistryTest : public RegistryFixture {};

TEST_F(VersionRegistryTest, LoadsOnceAndThenAnswersOnTheCallingThread) {
  store_.Put("a", 1, SmallArtifact());
  Start();
  ASSERT_TRUE(Acquire("a").ok());
  store_.gate.Close();  // from here on the store would block
  const VersionHandle again = Acquire("a").value();
  EXPECT_EQ(again.record().number, 1);
  EXPECT_TRUE(Acquire("a@1").ok());
  EXPECT_EQ(store_.reads(), 1);
  store_.gate.Open();
}

TEST_F(VersionRegistryTest, RequestsThatComeMeanwhileShareOneLoad) {
  store_.Put("a", 1, SmallArtifact());
  store_.gate.Close();
  Start();
  std::atomic<int> served{0};
  for (int i = 0; i < 20; ++i) {
    registry_->Acquire("a@1", [&](absl::StatusOr<VersionHandle> v) { served += v.ok() ? 1 : 0; });
  }
  store_.gate.Open();
  registry_.reset();  // the destructor first completes all requests
  EXPECT_EQ(served, 20);
  EXPECT_EQ(store_.reads(), 1);
}

TEST_F(VersionRegistryTest, PublishingMovesTheBareNameAndNotThoseThatHoldAVersion) {
  store_.Put("a", 1, SmallArtifact());
  Start();
  const absl::StatusOr<VersionHandle> first = Acquire("a");
  store_.Put("a", 2, SmallArtifact());
  EXPECT_EQ(Acquire("a")->record().number, 1);  // the registry does not know version 2 yet
  CatchUp();
  EXPECT_EQ(Acquire("a")->record().number, 2);
  EXPECT_EQ(first->record().number, 1);
}

TEST_F(VersionRegistryTest, ADamagedVersionIsDataLossAndOthersServeOn) {
  store_.Put("good", 1, SmallArtifact());
  std::string damaged = SmallArtifact();
  damaged[damaged.size() / 2] ^= 1;
  store_.Put("bad", 1, damaged);
  store_.Put("short", 1, SmallArtifact().substr(0, 100));
  Start();
  ASSERT_TRUE(Acquire("good").ok());
  EXPECT_EQ(Acquire("bad").status().code(), Code::kDataLoss);
  EXPECT_EQ(Acquire("short").status().code(), Code::kDataLoss);
  EXPECT_TRUE(Acquire("good").ok());
  EXPECT_EQ(metrics_.registry().load_errors->Value(), 2);
}

TEST_F(VersionRegistryTest, UnknownNamesNumbersAndAliasesAreNotFound) {
  store_.Put("a", 1, SmallArtifact());
  Start();
  EXPECT_EQ(Acquire("b").status().code(), Code::kNotFound);
  EXPECT_EQ(Acquire("a@2").status().code(), Code::kNotFound);
  EXPECT_THAT(Acquire("a@prod").status(),
              IsError(Code::kNotFound, _, _, HasSubstr("no such alias")));
  EXPECT_EQ(Acquire("A").status().code(), Code::kInvalidArgument);
}

TEST_F(VersionRegistryTest, MemoryStaysUnderTheLimit) {
  const std::string artifact = SmallArtifact();
  for (int i = 1; i <= 5; ++i) store_.Put("a", i, artifact);
  Start();
  const int64_t one = (*Acquire("a@1")).engine().memory_bytes();
  VersionRegistry::Options options{.max_live_bytes =
                                       std::max<int64_t>(2 * one, artifact.size()) + one / 2};
  Start(options);
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(Acquire(absl::StrCat("a@", i)).ok());
    EXPECT_LE(metrics_.registry().live_bytes->Value(), options.max_live_bytes);
  }
  EXPECT_GE(metrics_.registry().evictions->Value(), 1);
}

TEST_F(VersionRegistryTest, AVersionThatDoesNotFitIsRefusedWithTheLimit) {
  store_.Put("a", 1, SmallArtifact());
  Start({.max_live_bytes = 10});
  const absl::Status refused = Acquire("a").status();
  EXPECT_THAT(refused, IsError(Code::kResourceExhausted, _, _, HasSubstr("limit of 10")));
  EXPECT_EQ(DetailOf(refused)->retry_delay_ms, 0);
}

// Keeps the loader busy with the mapping "busy" while other requests queue up.
class LoadOrderTest : public RegistryFixture {
 protected:
  void Busy(VersionRegistry::Options options = {}) {
    for (const char* name : {"busy", "a", "b", "c"}) store_.Put(name, 1, SmallArtifact());
    store_.gate.Close();
    Start(options);
    Ask("busy", LoadPriority::kLast);
    store_.gate.AwaitWaiting();
  }
  void Ask(const std::string& mapping, LoadPriority priority) {
    registry_->Acquire(mapping + "@1", LivePart::kFeatures, priority,
                       [this, mapping](absl::StatusOr<VersionHandle> version) {
                         answers_.push_back(version.ok() ? mapping : mapping + " refused");
                       });
  }
  // Returns the mappings in the order in which their requests were answered. Requests are answered
  // on this thread or on the loader's, and the loader's thread has ended before the order is read.
  std::vector<std::string> Answers() {
    store_.gate.Open();
    registry_.reset();
    return answers_;
  }

  std::vector<std::string> answers_;
};

TEST_F(LoadOrderTest, AdministrationWaitsForTheLoadUnderWayAndNoOther) {
  Busy();
  Ask("a", LoadPriority::kLast);
  Ask("b", LoadPriority::kLast);
  Ask("c", LoadPriority::kFirst);
  EXPECT_THAT(Answers(), ElementsAre("busy", "c", "a", "b"));
}

TEST_F(LoadOrderTest, AVersionThatReadersWaitForMovesToTheFront) {
  Busy();
  Ask("a", LoadPriority::kLast);
  Ask("b", LoadPriority::kLast);
  Ask("b", LoadPriority::kFirst);
  EXPECT_THAT(Answers(), ElementsAre("busy", "b", "b", "a"));
}

TEST_F(LoadOrderTest, AVersionThatIsBeingLoadedIsLoadedOnce) {
  Busy();
  Ask("busy", LoadPriority::kFirst);
  Ask("a", LoadPriority::kLast);
  EXPECT_THAT(Answers(), ElementsAre("busy", "busy", "a"));
  EXPECT_EQ(store_.reads(), 2);
}

TEST_F(LoadOrderTest, ManyReadersRefuseNoAdministration) {
  Busy({.max_queued_loads = 1, .max_waiters = 1});
  Ask("a", LoadPriority::kLast);
  Ask("b", LoadPriority::kLast);
  Ask("b", LoadPriority::kFirst);
  Ask("a", LoadPriority::kFirst);
  EXPECT_THAT(Answers(), ElementsAre("b refused", "busy", "b", "a", "a"));
}

TEST_F(VersionRegistryTest, WaitersAndLoadsAreBounded) {
  store_.Put("a", 1, SmallArtifact());
  store_.gate.Close();
  Start({.max_queued_loads = 1, .max_waiters = 2});
  std::vector<Code> codes;
  const auto ask = [&](const char* reference) {
    registry_->Acquire(reference, [&codes](absl::StatusOr<VersionHandle> version) {
      codes.push_back(version.status().code());
    });
  };
  ask("a@1");
  store_.gate.AwaitWaiting();  // the loader is busy
  ask("a@1");
  ask("a@1");  // the third waiter
  ask("a@2");
  ask("a@3");  // the second queued load
  EXPECT_THAT(codes, ElementsAre(Code::kResourceExhausted, Code::kResourceExhausted));
  store_.gate.Open();
  registry_.reset();
}

// After a backup is restored, a version number may belong to another artifact than before.
TEST_F(VersionRegistryTest, InAnotherHistoryANumberMayBeAnotherArtifact) {
  store_.Put("a", 1, SmallArtifact());
  store_.Put("b", 1, SmallArtifact());
  Start();
  const absl::StatusOr<VersionHandle> before = Acquire("a@1");
  ASSERT_TRUE(Acquire("b@1").ok());
  const int reads = store_.reads();
  store_.Exchange("a", 1, SmallArtifact());
  store_.ChangeHistory("other");
  CatchUp();
  EXPECT_EQ(Acquire("a@1")->record().digest, before->record().digest + "-exchanged");
  EXPECT_EQ(store_.reads(), reads + 1);
  // An unchanged version stays in memory.
  EXPECT_TRUE(Acquire("b@1").ok());
  EXPECT_EQ(store_.reads(), reads + 1);
}

// While the database is away, the registry uses what it has looked up before. The artifact itself
// may come from a cache.
TEST_F(VersionRegistryTest, WhatWasLookedUpOnceIsLoadedAgainWithoutTheCatalog) {
  store_.Put("a", 1, SmallArtifact());
  store_.Put("a", 2, SmallArtifact());
  store_.PutAlias("a", "prod", 1);
  VersionRegistry::Options options;
  {
    Start();
    options.max_live_bytes = LimitOf(1, *Acquire("a@1"));
  }
  Start(options);
  ASSERT_TRUE(Acquire("a@1").ok());
  ASSERT_TRUE(Acquire("a@2").ok());
  store_.FailLookUps(true);
  store_.FailChanges(true);
  const int reads = store_.reads();
  EXPECT_EQ(NumberOf("a@prod"), 1);
  EXPECT_EQ(NumberOf("a"), 2);
  EXPECT_EQ(store_.reads(), reads + 2);
  EXPECT_TRUE(absl::IsUnavailable(Acquire("a@3").status()));
}

}  // namespace
}  // namespace phimap::testing
