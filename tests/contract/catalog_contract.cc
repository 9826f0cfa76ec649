#include "tests/contract/catalog_contract.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/error.h"
#include "tests/contract/publish_request.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using ::testing::UnorderedElementsAreArray;

// Writes the names as texts such as "letters=1,3 prod->1", which make expectations easy to read.
std::vector<std::string> TextOf(const std::vector<MappingNames>& mappings) {
  std::vector<std::string> texts;
  for (const MappingNames& names : mappings) {
    std::string text = absl::StrCat(names.mapping, "=", absl::StrJoin(names.versions, ","));
    for (const AliasTarget& alias : names.aliases) {
      absl::StrAppend(&text, " ", alias.alias, "->", alias.version);
    }
    texts.push_back(text);
  }
  return texts;
}

// Follows the changes of a catalog and keeps the names that result from these changes.
class Follower {
 public:
  // Applies the changes since the last call; returns false if there are none.
  bool Look(Store& catalog) {
    const absl::StatusOr<NameChanges> changes = catalog.ChangesSince(revision_);
    EXPECT_TRUE(changes.ok()) << changes.status();
    if (!changes.ok() || changes->revision == revision_) return false;
    if (changes->whole) {
      names_.clear();
    } else {
      EXPECT_GT(changes->revision.number, revision_.number);
      EXPECT_FALSE(changes->mappings.empty());
    }
    for (const MappingNames& mapping : changes->mappings) names_[mapping.mapping] = mapping;
    revision_ = changes->revision;
    ++looks_;
    return true;
  }
  std::vector<std::string> Living() const {
    std::vector<MappingNames> living;
    for (const auto& [name, mapping] : names_) {
      if (!mapping.versions.empty()) living.push_back(mapping);
    }
    return TextOf(living);
  }
  const Revision& revision() const { return revision_; }
  int looks() const { return looks_; }

 private:
  Revision revision_;
  std::map<std::string, MappingNames> names_;
  int looks_ = 0;
};

}  // namespace

int64_t CatalogContractTest::Insert(Store& catalog, const std::string& mapping,
                                    const std::string& build_id) {
  const absl::StatusOr<VersionRecord> version =
      catalog.Publish(PublishRequestFor(mapping, build_id), absl::StrCat(mapping, build_id));
  EXPECT_TRUE(version.ok()) << version.status();
  return version.ok() ? version->number : 0;
}

NameChanges CatalogContractTest::ChangesSince(const Revision& since) {
  const absl::StatusOr<NameChanges> changes = catalog_->ChangesSince(since);
  EXPECT_TRUE(changes.ok()) << changes.status();
  return changes.value_or(NameChanges());
}

TEST_P(CatalogContractTest, AFreshOneHasARevisionAndNothingElse) {
  const NameChanges changes = ChangesSince(Revision());
  EXPECT_FALSE(changes.revision.id.empty());
  EXPECT_EQ(changes.revision.number, 0);
  EXPECT_TRUE(changes.whole);
  EXPECT_THAT(changes.mappings, IsEmpty());
}

TEST_P(CatalogContractTest, EachChangeOfNamesIsTheNextRevision) {
  const Revision start = Now();
  std::vector<int64_t> after;
  const auto note = [&] { after.push_back(Now().number - start.number); };
  Insert("letters", "build-1");
  note();
  Insert("letters", "build-2");
  note();
  ASSERT_TRUE(catalog_->SetAlias("letters", "prod", 1, "", "").ok());
  note();
  ASSERT_TRUE(catalog_->SetAlias("letters", "prod", 2, "", "").ok());
  note();
  VersionRecord imported = PublishRequestFor("letters", "").version;
  ASSERT_TRUE(catalog_->Import(imported, "new").ok());
  note();
  ASSERT_TRUE(catalog_->DeleteAlias("letters", "prod", "", "").ok());
  note();
  ASSERT_TRUE(catalog_->DeleteVersion("letters", 1, Rollbacks::kKeep, "").ok());
  note();
  ASSERT_TRUE(catalog_->DeleteMapping("letters", Occupied::kDelete, "").ok());
  note();
  EXPECT_THAT(after, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_P(CatalogContractTest, WhatChangesNoNameTakesNoRevision) {
  Insert("letters", "build-1");
  PublishRequest expiring = PublishRequestFor("trial", "build-2");
  expiring.version.ttl = absl::Hours(1);
  ASSERT_TRUE(catalog_->Publish(expiring, "trial").ok());
  ASSERT_TRUE(catalog_->SetAlias("letters", "prod", 1, "", "").ok());
  const Revision before = Now();
  // In order: the alias already points to this version; there is no version 7; the etag does not
  // match; the build id is in use.
  EXPECT_TRUE(catalog_->SetAlias("letters", "prod", 1, "", "").ok());
  EXPECT_FALSE(catalog_->SetAlias("letters", "prod", 7, "", "").ok());
  EXPECT_FALSE(catalog_->SetAlias("letters", "prod", 1, "0123456789abcdef", "").ok());
  EXPECT_FALSE(catalog_->Publish(PublishRequestFor("letters", "build-1"), "x").ok());
  // In order: the artifact is already there; a failed build adds no name.
  EXPECT_TRUE(catalog_->Import(PublishRequestFor("letters", "").version, "lettersbuild-1").ok());
  BuildRecord failed{.mapping = "digits", .build_id = "build-9", .spec_digest = "spec"};
  failed.error = absl::InternalError("failed");
  EXPECT_TRUE(catalog_->RecordFailedBuild(failed).ok());
  EXPECT_FALSE(catalog_->DeleteVersion("letters", 1, Rollbacks::kKeep, "").ok());
  EXPECT_FALSE(catalog_->DeleteMapping("letters", Occupied::kDelete, "").ok());
  // Keeping a version alive and recording its use do not change the catalog's revision either.
  EXPECT_TRUE(catalog_->KeepVersion("trial", 1, absl::Hours(2), "").ok());
  EXPECT_TRUE(catalog_->RecordUses({{"trial", 1}}).ok());
  EXPECT_TRUE(catalog_->KeepVersion("trial", 1, absl::InfiniteDuration(), "").ok());
  EXPECT_EQ(Now(), before);
  EXPECT_THAT(ChangesSince(before).mappings, IsEmpty());
}

TEST_P(CatalogContractTest, ChangesAreThoseMappingsThatChangedAsTheyAreNow) {
  Insert("digits", "build-1");
  Insert("letters", "build-2");
  Insert("spam", "build-3");
  const Revision before = Now();
  Insert("letters", "build-4");
  ASSERT_TRUE(catalog_->SetAlias("letters", "prod", 1, "", "").ok());
  ASSERT_TRUE(catalog_->SetAlias("letters", "canary", 2, "", "").ok());
  ASSERT_TRUE(catalog_->SetAlias("letters", "prod", 2, "", "").ok());
  ASSERT_TRUE(catalog_->SetAlias("digits", "prod", 1, "", "").ok());
  const NameChanges changes = ChangesSince(before);
  EXPECT_FALSE(changes.whole);
  EXPECT_THAT(TextOf(changes.mappings),
              ElementsAre("digits=1 prod->1", "letters=1,2 canary->2 prod->2"));
  EXPECT_EQ(changes.revision, Now());
  EXPECT_THAT(ChangesSince(changes.revision).mappings, IsEmpty());
}

TEST_P(CatalogContractTest, ADeletedMappingIsAChangeAndNotAmongAllThatAreThere) {
  Insert("letters", "build-1");
  Insert("spam", "build-2");
  const Revision before = Now();
  ASSERT_TRUE(catalog_->DeleteMapping("letters", Occupied::kDelete, "").ok());
  EXPECT_THAT(TextOf(ChangesSince(before).mappings), ElementsAre("letters="));
  EXPECT_THAT(TextOf(ChangesSince(Revision()).mappings), ElementsAre("spam=1"));
  Insert("letters", "build-3");
  EXPECT_THAT(TextOf(ChangesSince(before).mappings), ElementsAre("letters=2"));
}

TEST_P(CatalogContractTest, OfAnotherHistoryComesTheWhole) {
  Insert("letters", "build-1");
  Insert("spam", "build-2");
  const Revision now = Now();
  for (const Revision& since :
       {Revision{"0123456789abcdef", 1}, Revision{now.id, now.number + 1}}) {
    EXPECT_FALSE(*catalog_->IsInHistory(since));
    const NameChanges changes = ChangesSince(since);
    EXPECT_TRUE(changes.whole);
    EXPECT_EQ(changes.revision, now);
    EXPECT_THAT(TextOf(changes.mappings), ElementsAre("letters=1", "spam=1"));
  }
}

TEST_P(CatalogContractTest, EachRevisionHasAnIdAndIsInItsHistoryAlone) {
  std::vector<Revision> revisions = {Now()};
  for (int i = 1; i <= 3; ++i) {
    Insert("letters", absl::StrCat("build-", i));
    revisions.push_back(Now());
  }
  EXPECT_THAT(ChangesSince(revisions[1]).passed, ElementsAre(revisions[2], revisions[3]));
  EXPECT_THAT(ChangesSince(Revision()).passed, ElementsAreArray(revisions));
  for (const Revision& revision : revisions) {
    EXPECT_TRUE(*catalog_->IsInHistory(revision));
    EXPECT_FALSE(*catalog_->IsInHistory({revision.id, revision.number + 1}));
    EXPECT_FALSE(*catalog_->IsInHistory({revision.id + "0", revision.number}));
  }
}

TEST_P(CatalogContractTest, ARepeatedOperationMakesNoChangeAndHasItsFirstResult) {
  Insert("letters", "build-1");
  Insert("letters", "build-2");
  const AliasRecord first = catalog_->SetAlias("letters", "prod", 1, "none", "a1").value();
  const VersionRecord kept =
      catalog_->KeepVersion("letters", 1, absl::InfiniteDuration(), "k1").value();
  // Meanwhile others change the same things, so that the same requests would now fail or undo that.
  const std::unique_ptr<Store> other = harness_->Open();
  ASSERT_TRUE(other->SetAlias("letters", "prod", 2, first.etag, "").ok());
  const Revision before = Now();
  for (Store* const catalog : {catalog_.get(), other.get()}) {
    const AliasRecord again = catalog->SetAlias("letters", "prod", 1, "none", "a1").value();
    EXPECT_EQ(again.etag, first.etag);
    EXPECT_EQ(again.version, 1);
    EXPECT_EQ(again.digest, first.digest);
    EXPECT_EQ(again.move_time, first.move_time);
    const VersionRecord kept_again =
        catalog->KeepVersion("letters", 1, absl::InfiniteDuration(), "k1").value();
    EXPECT_EQ(kept_again.digest, kept.digest);
    EXPECT_EQ(kept_again.create_time, kept.create_time);
  }
  EXPECT_EQ(Now(), before);
  EXPECT_EQ(catalog_->GetAliasedVersion("letters", "prod")->number, 2);
}

TEST_P(CatalogContractTest, ARepeatedDeletionDeletesNothingThatCameSince) {
  Insert("letters", "build-1");
  ASSERT_TRUE(catalog_->SetAlias("letters", "prod", 1, "", "").ok());
  ASSERT_TRUE(catalog_->DeleteAlias("letters", "prod", "", "d1").ok());
  ASSERT_TRUE(catalog_->DeleteVersion("letters", 1, Rollbacks::kKeep, "d2").ok());
  ASSERT_TRUE(catalog_->DeleteMapping("letters", Occupied::kDelete, "d3").ok());
  EXPECT_EQ(Insert("letters", "build-2"), 2);
  ASSERT_TRUE(catalog_->SetAlias("letters", "prod", 2, "", "").ok());
  const Revision before = Now();
  EXPECT_TRUE(catalog_->DeleteAlias("letters", "prod", "", "d1").ok());
  EXPECT_TRUE(catalog_->DeleteVersion("letters", 1, Rollbacks::kKeep, "d2").ok());
  EXPECT_TRUE(catalog_->DeleteMapping("letters", Occupied::kDelete, "d3").ok());
  EXPECT_EQ(Now(), before);
}

TEST_P(CatalogContractTest, AnIdIsForOneRequestAndAFailedOneMayTryAgain) {
  Insert("letters", "build-1");
  EXPECT_TRUE(absl::IsNotFound(catalog_->SetAlias("letters", "prod", 2, "", "a1").status()));
  Insert("letters", "build-2");
  EXPECT_TRUE(catalog_->SetAlias("letters", "prod", 2, "", "a1").ok());
  const Revision before = Now();
  for (const absl::Status& refused :
       {catalog_->SetAlias("letters", "prod", 1, "", "a1").status(),
        catalog_->SetAlias("letters", "canary", 2, "", "a1").status(),
        catalog_->DeleteMapping("letters", Occupied::kDelete, "a1"),
        catalog_->DeleteVersion("letters", 1, Rollbacks::kKeep, "a1")}) {
    EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
    EXPECT_EQ(ReasonOf(refused), "OPERATION_ID_REUSED");
    EXPECT_EQ(FieldOf(refused), "operation_id");
  }
  EXPECT_EQ(Now(), before);
}

TEST_P(CatalogContractTest, AnotherProcessSeesWhatWasCommitted) {
  const std::unique_ptr<Store> other = harness_->Open();
  const Revision before = Now();
  EXPECT_EQ(Insert("letters", "build-1"), 1);
  EXPECT_EQ(Insert(*other, "letters", "build-2"), 2);
  EXPECT_EQ(catalog_->GetVersion("letters", std::nullopt)->number, 2);
  EXPECT_TRUE(*other->IsInHistory(before));
  const NameChanges changes = other->ChangesSince(before).value();
  EXPECT_THAT(TextOf(changes.mappings), ElementsAre("letters=1,2"));
}

TEST_P(CatalogContractTest, TwoWritersAtOnceLoseNothingAndTakeEachNumberOnce) {
  constexpr int kWrites = 40;
  const std::unique_ptr<Store> other = harness_->Open();
  const std::unique_ptr<Store> third = harness_->Open();
  std::vector<int64_t> numbers[2];
  std::atomic<int> writing{2};
  const auto write = [&](int writer) {
    Store& catalog = writer == 0 ? *catalog_ : *other;
    for (int i = 0; i < kWrites; ++i) {
      numbers[writer].push_back(Insert(catalog, "letters", absl::StrCat("build-", writer, "-", i)));
      EXPECT_TRUE(
          catalog.SetAlias("letters", absl::StrCat("of-", writer), numbers[writer].back(), "", "")
              .ok());
    }
    --writing;
  };
  std::thread one(write, 0);
  std::thread two(write, 1);
  Follower follower;
  while (writing > 0) follower.Look(*third);
  one.join();
  two.join();
  follower.Look(*third);

  std::vector<int64_t> all = numbers[0];
  all.insert(all.end(), numbers[1].begin(), numbers[1].end());
  std::vector<int64_t> expected;
  for (int64_t i = 1; i <= 2 * kWrites; ++i) expected.push_back(i);
  EXPECT_THAT(all, UnorderedElementsAreArray(expected));
  // Each write inserts a version and moves an alias.
  EXPECT_EQ(follower.revision().number, 4 * kWrites);
  EXPECT_EQ(follower.Living(), TextOf(ChangesSince(Revision()).mappings));
  EXPECT_GT(follower.looks(), 1);
}

// If two writers move an alias with the same etag, exactly one succeeds.
TEST_P(CatalogContractTest, OfTwoWhoMoveAnAliasFromWhatTheySawOneIsRefused) {
  constexpr int kRounds = 20;
  const std::unique_ptr<Store> other = harness_->Open();
  Insert("letters", "build-1");
  Insert("letters", "build-2");
  Insert("letters", "build-3");
  std::string etag = catalog_->SetAlias("letters", "prod", 1, "", "")->etag;
  for (int round = 0; round < kRounds; ++round) {
    absl::StatusOr<AliasRecord> moved[2];
    const int64_t from = catalog_->GetAliasedVersion("letters", "prod")->number;
    const auto move = [&](int writer) {
      Store& catalog = writer == 0 ? *catalog_ : *other;
      // Each writer moves the alias to a different version, and neither of them to the present one.
      moved[writer] = catalog.SetAlias("letters", "prod", (from + writer) % 3 + 1, etag, "");
    };
    std::thread one(move, 0);
    std::thread two(move, 1);
    one.join();
    two.join();
    ASSERT_NE(moved[0].ok(), moved[1].ok()) << moved[0].status() << moved[1].status();
    const absl::StatusOr<AliasRecord>& refused = moved[0].ok() ? moved[1] : moved[0];
    EXPECT_TRUE(absl::IsAborted(refused.status())) << refused.status();
    etag = (moved[0].ok() ? moved[0] : moved[1])->etag;
  }
}

// Two writers each change a mapping of their own at the same time. All followers of the changes
// must end with the same names.
TEST_P(CatalogContractTest, WhoeverFollowsNeverMissesAChange) {
  constexpr int kWrites = 30;
  const std::unique_ptr<Store> other = harness_->Open();
  std::atomic<int> writing{2};
  const auto write = [&](int writer) {
    Store& catalog = writer == 0 ? *catalog_ : *other;
    const std::string mapping = absl::StrCat("mapping-", writer);
    for (int i = 0; i < kWrites; ++i) {
      const int64_t number = Insert(catalog, mapping, absl::StrCat("build-", i));
      EXPECT_TRUE(catalog.SetAlias(mapping, "prod", number, "", "").ok());
      if (i % 5 != 4) continue;
      EXPECT_TRUE(catalog.DeleteAlias(mapping, "prod", "", "").ok());
      EXPECT_TRUE(catalog.DeleteMapping(mapping, Occupied::kDelete, "").ok());
    }
    EXPECT_GT(Insert(catalog, mapping, "last"), 0);
    --writing;
  };
  std::vector<Follower> followers(2);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back(write, i);
  const std::unique_ptr<Store> third = harness_->Open();
  threads.emplace_back([&] {
    while (writing > 0) followers[1].Look(*third);
    followers[1].Look(*third);
  });
  while (writing > 0) followers[0].Look(*catalog_);
  for (std::thread& thread : threads) thread.join();
  followers[0].Look(*catalog_);
  for (const Follower& follower : followers) {
    EXPECT_THAT(follower.Living(), ElementsAre(absl::StrCat("mapping-0=", kWrites + 1),
                                               absl::StrCat("mapping-1=", kWrites + 1)));
  }
}

}  // namespace phimap::testing
