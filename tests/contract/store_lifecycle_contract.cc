// The part of the store's contract about versions after they were published: aliases, deletion,
// import, and reading in pieces.
#include <gmock/gmock.h>

#include <atomic>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "tests/contract/store_contract.h"
#include "tests/support/matchers.h"
#include "tests/support/threads.h"

namespace phimap::testing {
namespace {

// Writes aliases as texts such as "prod=2<1": name, version, and the version that the alias pointed
// at before.
std::vector<std::string> AliasTexts(const absl::StatusOr<MappingRecord>& mapping) {
  EXPECT_TRUE(mapping.ok()) << mapping.status();
  std::vector<std::string> texts;
  if (!mapping.ok()) return texts;
  for (const AliasRecord& alias : mapping->aliases) {
    EXPECT_EQ(alias.mapping, mapping->name);
    texts.push_back(absl::StrCat(alias.name, "=", alias.version, "<", alias.previous_version));
  }
  return texts;
}

std::string ReadInPieces(ArtifactReader& reader, int64_t limit) {
  std::string all;
  for (;;) {
    const absl::StatusOr<std::string> piece = reader.Next(limit);
    EXPECT_TRUE(piece.ok()) << piece.status();
    if (!piece.ok() || piece->empty()) return all;
    EXPECT_LE(static_cast<int64_t>(piece->size()), limit);
    all += *piece;
  }
}

VersionRecord ImportOf(const std::string& mapping) {
  VersionRecord version{.mapping = mapping,
                        .input_columns = 16,
                        .output_columns = 256,
                        .serving_type = "float64",
                        .spec_text = "f2(landmarks=256)",
                        .kernel_text = "rbf(gamma=0.5)"};
  return version;
}

}  // namespace

TEST_P(StoreContractTest, AnAliasPointsAtAVersionAndRemembersWhereItCameFrom) {
  PublishLetters(3);
  const AliasRecord made = store().SetAlias("letters", "prod", 1, "").value();
  EXPECT_EQ(made.mapping, "letters");
  EXPECT_EQ(made.name, "prod");
  EXPECT_EQ(made.version, 1);
  EXPECT_EQ(store().ReadArtifact(made.digest).value_or(""), "a1");
  EXPECT_EQ(made.previous_version, 0);
  EXPECT_NE(made.etag, "");
  EXPECT_EQ(made.move_time, harness_->Now());
  ASSERT_TRUE(store().SetAlias("letters", "canary", 3, "").ok());
  harness_->AdvanceClock(absl::Minutes(1));
  const absl::StatusOr<AliasRecord> moved = store().SetAlias("letters", "prod", 2, "");
  EXPECT_EQ(moved->previous_version, 1);
  EXPECT_EQ(moved->move_time, harness_->Now());
  EXPECT_EQ(store().ReadArtifact(moved->digest).value_or(""), "a2");
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    if (restarted) harness_->Restart();
    EXPECT_THAT(AliasTexts(store().GetMapping("letters")), ElementsAre("canary=3<0", "prod=2<1"));
    const VersionRecord version = store().GetAliasedVersion("letters", "prod").value();
    EXPECT_EQ(version.number, 2);
    EXPECT_EQ(store().ReadArtifact(version.digest).value_or(""), "a2");
    const AliasRecord stored = store().GetMapping("letters")->aliases[1];
    EXPECT_EQ(stored.digest, moved->digest);
    EXPECT_EQ(stored.etag, moved->etag);
    EXPECT_EQ(stored.move_time, moved->move_time);
  }
}

TEST_P(StoreContractTest, ListedMappingsCarryTheirOwnAliases) {
  for (const char* name : {"a", "b", "c", "d"}) MustPublish(name, "build");
  for (const char* name : {"a", "c"}) {
    ASSERT_TRUE(store().SetAlias(name, "prod", 1, "").ok());
    ASSERT_TRUE(store().SetAlias(name, "canary", 1, "").ok());
  }
  const std::vector<MappingRecord> all = store().ListMappings("", 10).value();
  ASSERT_EQ(all.size(), 4);
  EXPECT_THAT(AliasTexts(all[0]), ElementsAre("canary=1<0", "prod=1<0"));
  EXPECT_THAT(AliasTexts(all[1]), IsEmpty());
  EXPECT_THAT(AliasTexts(all[2]), ElementsAre("canary=1<0", "prod=1<0"));
  EXPECT_THAT(AliasTexts((*store().ListMappings("b", 1))[0]),
              ElementsAre("canary=1<0", "prod=1<0"));
}

TEST_P(StoreContractTest, AnEtagChangesWithEveryMoveAndNeverComesBack) {
  PublishLetters(2);
  std::set<std::string> seen;
  for (int i = 0; i < 20; ++i) {
    seen.insert(store().SetAlias("letters", "prod", 1 + i % 2, "")->etag);
    if (i % 5 != 4) continue;
    EXPECT_TRUE(store().DeleteAlias("letters", "prod", "").ok());
  }
  EXPECT_EQ(seen.size(), 20);
  EXPECT_EQ(seen.count(""), 0);
}

TEST_P(StoreContractTest, AnAliasThatPointsThereAlreadyIsLeftAsItIs) {
  PublishLetters(2);
  ASSERT_TRUE(store().SetAlias("letters", "prod", 1, "").ok());
  const AliasRecord moved = *store().SetAlias("letters", "prod", 2, "");
  harness_->AdvanceClock(absl::Minutes(1));
  const AliasRecord again = store().SetAlias("letters", "prod", 2, moved.etag).value();
  EXPECT_EQ(again.etag, moved.etag);
  EXPECT_EQ(again.previous_version, 1);
  EXPECT_EQ(again.move_time, moved.move_time);
}

TEST_P(StoreContractTest, EtagsFenceSetAndDelete) {
  PublishLetters(2);
  const auto expect_aborted = [&](const absl::Status& status, const std::string& current) {
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_EQ(ReasonOf(status), "ETAG_MISMATCH");
    EXPECT_EQ(DetailOf(status)->metadata.at("etag"), current);
  };
  // The alias does not exist yet.
  expect_aborted(store().SetAlias("letters", "prod", 1, kAnyEtag).status(), "none");
  expect_aborted(store().SetAlias("letters", "prod", 1, "0123456789abcdef").status(), "none");
  expect_aborted(store().DeleteAlias("letters", "prod", kAnyEtag), "none");
  EXPECT_THAT(AliasTexts(store().GetMapping("letters")), IsEmpty());
  const std::string first = store().SetAlias("letters", "prod", 1, kNoEtag)->etag;
  // The alias exists.
  expect_aborted(store().SetAlias("letters", "prod", 2, kNoEtag).status(), first);
  expect_aborted(store().SetAlias("letters", "prod", 2, "0123456789abcdef").status(), first);
  expect_aborted(store().DeleteAlias("letters", "prod", kNoEtag), first);
  expect_aborted(store().DeleteAlias("letters", "prod", "0123456789abcdef"), first);
  EXPECT_THAT(AliasTexts(store().GetMapping("letters")), ElementsAre("prod=1<0"));
  const std::string second = store().SetAlias("letters", "prod", 2, first)->etag;
  expect_aborted(store().SetAlias("letters", "prod", 1, first).status(), second);
  ASSERT_TRUE(store().SetAlias("letters", "prod", 1, kAnyEtag).ok());
  expect_aborted(store().DeleteAlias("letters", "prod", second),
                 store().GetMapping("letters")->aliases[0].etag);
  EXPECT_TRUE(store().DeleteAlias("letters", "prod", kAnyEtag).ok());
  EXPECT_THAT(AliasTexts(store().GetMapping("letters")), IsEmpty());
}

TEST_P(StoreContractTest, OfRacingMovesUnderTheSameEtagOneWins) {
  for (int i = 1; i <= 9; ++i) MustPublish("letters", absl::StrCat("b", i));
  std::string etag(kNoEtag);
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> won{0};
    RunTogether(4, [&](int t) {
      const int64_t version = 1 + (round * 4 + t) % 9;
      const absl::Status status = store().SetAlias("letters", "prod", version, etag).status();
      EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
      won += status.ok();
    });
    EXPECT_EQ(won, 1);
    etag = store().GetMapping("letters")->aliases[0].etag;
  }
}

TEST_P(StoreContractTest, AliasesOfUnknownMappingsAndVersionsAreNotFound) {
  EXPECT_TRUE(absl::IsNotFound(store().SetAlias("letters", "prod", 1, "").status()));
  EXPECT_TRUE(absl::IsNotFound(store().DeleteAlias("letters", "prod", "")));
  EXPECT_TRUE(absl::IsNotFound(store().GetAliasedVersion("letters", "prod").status()));
  MustPublish("letters", "b1");
  for (const int64_t version : {-1, 0, 2}) {
    EXPECT_TRUE(absl::IsNotFound(store().SetAlias("letters", "prod", version, "").status()));
  }
  EXPECT_EQ(ReasonOf(store().DeleteAlias("letters", "prod", "")), "ALIAS_NOT_FOUND");
  EXPECT_EQ(ReasonOf(store().GetAliasedVersion("letters", "prod").status()), "ALIAS_NOT_FOUND");
  EXPECT_THAT(AliasTexts(store().GetMapping("letters")), IsEmpty());
}

TEST_P(StoreContractTest, AMappingHasABoundedNumberOfAliases) {
  PublishLetters(2);
  for (int i = 0; i < kMaxAliases; ++i) {
    ASSERT_TRUE(store().SetAlias("letters", absl::StrCat("a", i), 1, "").ok());
  }
  const absl::Status refused = store().SetAlias("letters", "one-more", 1, "").status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(DetailOf(refused)->metadata.at("limit"), absl::StrCat(kMaxAliases));
  // Existing aliases still move.
  EXPECT_TRUE(store().SetAlias("letters", "a0", 2, "").ok());
}

TEST_P(StoreContractTest, ADeletedVersionIsGoneWithItsBuildAndItsNumberIsNotUsedAgain) {
  MustPublish("letters", "b1", "a1");
  const VersionRecord second = MustPublish("letters", "b2", "a2");
  ASSERT_TRUE(store().DeleteVersion("letters", 2).ok());
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    if (restarted) harness_->Restart();
    EXPECT_TRUE(absl::IsNotFound(store().GetVersion("letters", 2).status()));
    EXPECT_EQ(store().GetVersion("letters", std::nullopt)->number, 1);
    EXPECT_EQ(store().GetMapping("letters")->newest_version, 1);
    EXPECT_EQ(store().GetMapping("letters")->version_count, 1);
    EXPECT_TRUE(absl::IsNotFound(store().GetBuild("letters", "b2").status()));
    EXPECT_TRUE(store().GetBuild("letters", "b1").ok());
    EXPECT_TRUE(absl::IsNotFound(store().ReadArtifact(second.digest).status()));
    EXPECT_TRUE(absl::IsNotFound(store().OpenArtifact(second.digest).status()));
    EXPECT_TRUE(absl::IsNotFound(store().DeleteVersion("letters", 2)));
  }
  EXPECT_EQ(MustPublish("letters", "b2", "a2").number, 3);
}

TEST_P(StoreContractTest, DeletingEveryVersionLeavesTheMapping) {
  MustPublish("letters", "b1", "a1");
  ASSERT_TRUE(store().DeleteVersion("letters", 1).ok());
  EXPECT_EQ(store().GetMapping("letters")->newest_version, 0);
  EXPECT_TRUE(absl::IsNotFound(store().GetVersion("letters", std::nullopt).status()));
  EXPECT_EQ(MustPublish("letters", "b2", "a2").number, 2);
}

TEST_P(StoreContractTest, AnArtifactIsKeptUntilItsLastVersionIsDeleted) {
  const std::string digest = MustPublish("letters", "b1", "shared").digest;
  MustPublish("letters", "b2", "shared");
  MustPublish("spam", "b1", "shared");
  ASSERT_TRUE(store().DeleteVersion("letters", 1).ok());
  EXPECT_EQ(store().ReadArtifact(digest).value_or("?"), "shared");
  ASSERT_TRUE(store().DeleteMapping("spam").ok());
  EXPECT_EQ(store().ReadArtifact(digest).value_or("?"), "shared");
  ASSERT_TRUE(store().DeleteVersion("letters", 2).ok());
  EXPECT_TRUE(absl::IsNotFound(store().ReadArtifact(digest).status()));
  // A deleted artifact can be published again.
  MustPublish("letters", "b3", "shared");
  EXPECT_EQ(store().ReadArtifact(digest).value_or("?"), "shared");
}

TEST_P(StoreContractTest, WhatAnAliasPointsAtIsNotDeleted) {
  PublishLetters(2);
  for (const char* alias : {"prod", "canary"}) {
    ASSERT_TRUE(store().SetAlias("letters", alias, 1, "").ok());
  }
  ASSERT_TRUE(store().SetAlias("letters", "next", 2, "").ok());
  const absl::Status version = store().DeleteVersion("letters", 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(version)) << version;
  EXPECT_EQ(ReasonOf(version), "VERSION_IN_USE");
  EXPECT_EQ(DetailOf(version)->metadata.at("aliases"), "canary, prod");
  EXPECT_THAT(std::string(version.message()), HasSubstr("canary, prod"));
  const absl::Status mapping = store().DeleteMapping("letters");
  EXPECT_TRUE(absl::IsFailedPrecondition(mapping)) << mapping;
  EXPECT_EQ(ReasonOf(mapping), "MAPPING_IN_USE");
  EXPECT_EQ(store().GetMapping("letters")->version_count, 2);
  EXPECT_EQ(store().ReadArtifact(store().GetVersion("letters", 1)->digest).value_or("?"), "a1");
  // The version is not deleted, even with Rollbacks::kGiveUp.
  EXPECT_EQ(ReasonOf(store().DeleteVersion("letters", 1, Rollbacks::kGiveUp)), "VERSION_IN_USE");
}

TEST_P(StoreContractTest, WhatAnAliasWouldBeRolledBackToIsDeletedOnlyIfThatIsGivenUp) {
  PublishLetters(3);
  for (const int version : {1, 2}) {
    ASSERT_TRUE(store().SetAlias("letters", "prod", version, "").ok());
    ASSERT_TRUE(store().SetAlias("letters", "canary", version, "").ok());
  }
  ASSERT_TRUE(store().SetAlias("letters", "next", 2, "").ok());
  const absl::Status refused = store().DeleteVersion("letters", 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(ReasonOf(refused), "VERSION_ROLLBACK_TARGET");
  EXPECT_EQ(DetailOf(refused)->metadata.at("aliases"), "canary, prod");
  EXPECT_EQ(store().ReadArtifact(store().GetVersion("letters", 1)->digest).value_or("?"), "a1");
  EXPECT_TRUE(store().DeleteVersion("letters", 1, Rollbacks::kGiveUp).ok());
  EXPECT_TRUE(absl::IsNotFound(store().GetVersion("letters", 1).status()));
  EXPECT_THAT(AliasTexts(store().GetMapping("letters")),
              ElementsAre("canary=2<1", "next=2<0", "prod=2<1"));
  // An alias remembers only one earlier version, so no rollback leads to the versions before that.
  MustPublish("letters", "b4", "a4");
  for (const int version : {3, 4}) {
    ASSERT_TRUE(store().SetAlias("letters", "prod", version, "").ok());
    ASSERT_TRUE(store().SetAlias("letters", "canary", version, "").ok());
  }
  ASSERT_TRUE(store().SetAlias("letters", "next", 4, "").ok());
  // A rollback of the alias "next" would still restore version 2.
  EXPECT_EQ(ReasonOf(store().DeleteVersion("letters", 2)), "VERSION_ROLLBACK_TARGET");
  ASSERT_TRUE(store().DeleteAlias("letters", "next", "").ok());
  EXPECT_TRUE(store().DeleteVersion("letters", 2).ok());
}

TEST_P(StoreContractTest, ADeletedMappingIsGoneAndItsNameGoesOnCounting) {
  MustPublish("letters", "b1", "a1");
  const std::string digest = MustPublish("letters", "b2", "a2").digest;
  MustPublish("spam", "b1", "other");
  ASSERT_TRUE(store().DeleteMapping("letters").ok());
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    if (restarted) harness_->Restart();
    EXPECT_TRUE(absl::IsNotFound(store().GetMapping("letters").status()));
    EXPECT_TRUE(absl::IsNotFound(store().GetVersion("letters", 1).status()));
    EXPECT_TRUE(absl::IsNotFound(store().ListVersions("letters", std::nullopt, 9).status()));
    EXPECT_TRUE(absl::IsNotFound(store().SetAlias("letters", "prod", 1, "").status()));
    EXPECT_TRUE(absl::IsNotFound(store().GetBuild("letters", "b1").status()));
    EXPECT_TRUE(absl::IsNotFound(store().ReadArtifact(digest).status()));
    EXPECT_TRUE(absl::IsNotFound(store().DeleteMapping("letters")));
    EXPECT_TRUE(absl::IsNotFound(store().DeleteVersion("letters", 1)));
    EXPECT_EQ(store().ListMappings("", 9)->size(), 1);
  }
  harness_->AdvanceClock(absl::Hours(1));
  EXPECT_EQ(MustPublish("letters", "b1", "a3").number, 3);
  EXPECT_EQ(store().GetMapping("letters")->version_count, 1);
  EXPECT_EQ(store().GetMapping("letters")->create_time, harness_->Now());
  EXPECT_THAT(AliasTexts(store().GetMapping("letters")), IsEmpty());
}

TEST_P(StoreContractTest, AMappingWithoutVersionsCanBeDeleted) {
  MustPublish("letters", "b1");
  ASSERT_TRUE(store().DeleteVersion("letters", 1).ok());
  EXPECT_TRUE(store().DeleteMapping("letters").ok());
  EXPECT_TRUE(absl::IsNotFound(store().GetMapping("letters").status()));
}

TEST_P(StoreContractTest, AnImportIsTheNextVersionAndIsReadBackExactly) {
  MustPublish("letters", "b1", "a1");
  const VersionRecord imported = store().Import(ImportOf("letters"), "elsewhere").value();
  EXPECT_EQ(imported.number, 2);
  EXPECT_TRUE(imported.imported);
  harness_->Restart();
  const VersionRecord read = store().GetVersion("letters", std::nullopt).value();
  EXPECT_EQ(read.number, 2);
  EXPECT_TRUE(read.imported);
  EXPECT_EQ(read.digest, imported.digest);
  EXPECT_EQ(read.artifact_size_bytes, 9);
  EXPECT_EQ(read.serving_type, "float64");
  EXPECT_EQ(read.create_time, harness_->Now());
  EXPECT_EQ(store().ReadArtifact(read.digest).value_or("?"), "elsewhere");
  EXPECT_FALSE(store().GetVersion("letters", 1)->imported);
  // An import can also create a mapping.
  EXPECT_EQ(store().Import(ImportOf("new"), "elsewhere")->number, 1);
}

TEST_P(StoreContractTest, ImportingTwiceIsImportingOnce) {
  MustPublish("letters", "b1", "built");
  EXPECT_EQ(store().Import(ImportOf("letters"), "elsewhere")->number, 2);
  EXPECT_EQ(store().Import(ImportOf("letters"), "elsewhere")->number, 2);
  // Importing an artifact that was built here changes nothing: the version remains a built one.
  const absl::StatusOr<VersionRecord> built = store().Import(ImportOf("letters"), "built");
  EXPECT_EQ(built->number, 1);
  EXPECT_FALSE(built->imported);
  EXPECT_EQ(built->serving_type, "float32");
  EXPECT_EQ(store().GetMapping("letters")->version_count, 2);
  // If a deleted version is imported again, it gets a new number.
  ASSERT_TRUE(store().DeleteVersion("letters", 2).ok());
  EXPECT_EQ(store().Import(ImportOf("letters"), "elsewhere")->number, 3);
  std::atomic<int64_t> sum{0};
  RunTogether(4, [&](int) { sum += store().Import(ImportOf("letters"), "raced")->number; });
  EXPECT_EQ(sum, 4 * 4);
}

TEST_P(StoreContractTest, AnArtifactIsReadInPiecesOfAnySize) {
  const std::string artifact(100'003, '\x17');
  const std::string digest = MustPublish("letters", "b1", artifact).digest;
  for (const int64_t limit :
       {int64_t{1} << 20, int64_t{100'003}, int64_t{100'002}, int64_t{4096}}) {
    SCOPED_TRACE(limit);
    const std::unique_ptr<ArtifactReader> reader = store().OpenArtifact(digest).value();
    EXPECT_EQ(reader->size_bytes(), 100'003);
    EXPECT_EQ(ReadInPieces(*reader, limit), artifact);
    EXPECT_EQ(reader->Next(limit).value_or("?"), "");  // Next at the end returns "" again
  }
  EXPECT_TRUE(absl::IsNotFound(store().OpenArtifact(std::string(64, 'a')).status()));
}

TEST_P(StoreContractTest, APartOfAnArtifactIsReadWhereItStands) {
  const std::string digest = MustPublish("letters", "b1", "0123456789").digest;
  EXPECT_EQ(store().ReadArtifactRange(digest, 0, 10).value_or("?"), "0123456789");
  EXPECT_EQ(store().ReadArtifactRange(digest, 3, 4).value_or("?"), "3456");
  EXPECT_EQ(store().ReadArtifactRange(digest, 3, 0).value_or("?"), "");
  // A range that leads beyond the end of the artifact is cut there.
  EXPECT_EQ(store().ReadArtifactRange(digest, 8, 4).value_or("?"), "89");
  EXPECT_EQ(store().ReadArtifactRange(digest, 10, 1).value_or("?"), "");
  EXPECT_EQ(store().ReadArtifactRange(digest, 11, 1).value_or("?"), "");
  EXPECT_TRUE(absl::IsNotFound(store().ReadArtifactRange(std::string(64, 'a'), 0, 1).status()));
  ASSERT_TRUE(store().DeleteVersion("letters", 1).ok());
  EXPECT_TRUE(absl::IsNotFound(store().ReadArtifactRange(digest, 0, 1).status()));
}

TEST_P(StoreContractTest, AnArtifactThatIsBeingReadOutlivesItsVersion) {
  const std::string artifact(50'000, 'x');
  const std::string digest = MustPublish("letters", "b1", artifact).digest;
  const std::unique_ptr<ArtifactReader> reader = store().OpenArtifact(digest).value();
  std::string read = reader->Next(20'000).value_or("?");
  ASSERT_TRUE(store().DeleteVersion("letters", 1).ok());
  read += ReadInPieces(*reader, 20'000);
  EXPECT_EQ(read, artifact);
}

TEST_P(StoreContractTest, PublishersAndDeletersOfOneArtifactLeaveNoVersionWithoutIt) {
  constexpr int kRounds = 20;
  RunTogether(4, [&](int t) {
    const std::string mapping = absl::StrCat("m", t);
    for (int i = 1; i <= kRounds; ++i) {
      const VersionRecord version = MustPublish(mapping, absl::StrCat("b", i), "shared");
      EXPECT_EQ(store().ReadArtifact(version.digest).value_or("?"), "shared");
      EXPECT_TRUE(store().DeleteVersion(mapping, version.number).ok());
    }
  });
  const std::string digest = MustPublish("last", "b1", "shared").digest;
  EXPECT_EQ(store().ReadArtifact(digest).value_or("?"), "shared");
  ASSERT_TRUE(store().DeleteVersion("last", 1).ok());
  EXPECT_TRUE(absl::IsNotFound(store().ReadArtifact(digest).status()));
}

}  // namespace phimap::testing
