// The part of the store's contract about finding versions by their digest, and about how long
// versions live.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/store/sha256.h"
#include "tests/contract/store_contract.h"
#include "tests/support/matchers.h"
#include "tests/support/threads.h"

namespace phimap::testing {
namespace {

constexpr absl::Duration kTtl = absl::Hours(10);

PublishRequest ExpiringRequest(const std::string& mapping, const std::string& build_id,
                               absl::Duration ttl = kTtl) {
  PublishRequest request;
  request.version.mapping = mapping;
  request.version.serving_type = "float32";
  request.version.spec_text = "f2(landmarks=256)";
  request.version.kernel_text = "rbf(gamma=0.5)";
  request.version.ttl = ttl;
  request.build_id = build_id;
  request.spec_digest = "spec-digest";
  return request;
}

std::string ReasonIn(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  return detail.has_value() ? detail->reason : "";
}

std::vector<std::string> TextsOf(const absl::StatusOr<std::vector<VersionName>>& names) {
  EXPECT_TRUE(names.ok()) << names.status();
  std::vector<std::string> texts;
  if (!names.ok()) return texts;
  for (const VersionName& name : *names) {
    texts.push_back(absl::StrCat(name.mapping, "@", name.number));
  }
  return texts;
}

}  // namespace

TEST_P(StoreContractTest, AVersionIsFoundByItsDigestAndByTheBeginningOfIt) {
  MustPublish("letters", "b1", "one");
  MustPublish("letters", "b2", "two");
  MustPublish("spam", "b3", "one");
  const std::string digest = Sha256Hex("one");
  for (const size_t digits : {size_t{64}, size_t{63}, size_t{12}, size_t{7}}) {
    const VersionRecord found =
        store().GetVersionByDigest("letters", digest.substr(0, digits)).value();
    EXPECT_EQ(found.mapping, "letters");
    EXPECT_EQ(found.number, 1);
    EXPECT_EQ(found.digest, digest);
  }
  const absl::Status unknown = store().GetVersionByDigest("letters", std::string(64, '0')).status();
  EXPECT_TRUE(absl::IsNotFound(unknown));
  EXPECT_EQ(ReasonIn(unknown), "VERSION_NOT_FOUND");
  EXPECT_EQ(FieldOf(unknown), "reference");
  EXPECT_EQ(ReasonIn(store().GetVersionByDigest("digits", digest).status()), "MAPPING_NOT_FOUND");
}

TEST_P(StoreContractTest, TheBeginningOfSeveralDigestsIsAnErrorThatListsThem) {
  // Among 17 digests, at least two have the same first hexadecimal digit.
  std::map<char, std::vector<std::string>> by_first_digit;
  char shared = 0;
  for (int i = 0; shared == 0; ++i) {
    const std::string digest =
        MustPublish("letters", absl::StrCat("b", i), absl::StrCat("a", i)).digest;
    std::vector<std::string>& digests = by_first_digit[digest[0]];
    digests.push_back(digest);
    if (digests.size() == 2) shared = digest[0];
  }
  const absl::Status ambiguous =
      store().GetVersionByDigest("letters", std::string(1, shared)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(ambiguous)) << ambiguous;
  EXPECT_EQ(ReasonIn(ambiguous), "DIGEST_AMBIGUOUS");
  for (const std::string& digest : by_first_digit[shared]) {
    EXPECT_THAT(std::string(ambiguous.message()), HasSubstr(digest));
  }
}

TEST_P(StoreContractTest, EachBuildOfTheSameArtifactHasItsNumberAndTheBlobStaysForTheLast) {
  EXPECT_EQ(MustPublish("letters", "b1", "same").number, 1);
  EXPECT_EQ(MustPublish("letters", "b2", "same").number, 2);
  EXPECT_EQ(MustPublish("spam", "b1", "same").number, 1);
  const std::string digest = Sha256Hex("same");
  EXPECT_EQ(store().GetVersionByDigest("letters", digest)->number, 2);
  ASSERT_TRUE(store().DeleteVersion("letters", 2).ok());
  EXPECT_EQ(store().GetVersionByDigest("letters", digest)->number, 1);
  ASSERT_TRUE(store().DeleteMapping("letters").ok());
  EXPECT_EQ(store().ReadArtifact(digest).value_or(""), "same");
  ASSERT_TRUE(store().DeleteMapping("spam").ok());
  EXPECT_TRUE(absl::IsNotFound(store().ReadArtifact(digest).status()));
}

TEST_P(StoreContractTest, ChangesTellTheDigestsOfVersions) {
  MustPublish("letters", "b1", "one");
  const NameChanges all = store().ChangesSince(Revision()).value();
  EXPECT_THAT(all.mappings[0].digests, ElementsAre(Sha256Hex("one")));
  MustPublish("letters", "b2", "two");
  const NameChanges news = store().ChangesSince(all.revision).value();
  EXPECT_THAT(news.mappings[0].digests, ElementsAre(Sha256Hex("one"), Sha256Hex("two")));
}

TEST_P(StoreContractTest, AVersionWithoutATtlLivesForEver) {
  const VersionRecord version = MustPublish("letters", "b1");
  EXPECT_EQ(version.ttl, absl::InfiniteDuration());
  EXPECT_EQ(version.expire_time, absl::InfiniteFuture());
  harness_->AdvanceClock(absl::Hours(24 * 3650));
  EXPECT_THAT(TextsOf(store().DeleteExpired()), IsEmpty());
  EXPECT_TRUE(store().GetVersion("letters", 1).ok());
}

TEST_P(StoreContractTest, AVersionWithATtlIsDeletedWhenItsTimeIsOverWithItsBuildAndArtifact) {
  const VersionRecord version = store().Publish(ExpiringRequest("trial", "b1"), "artifact").value();
  MustPublish("letters", "b1", "other");
  EXPECT_EQ(version.ttl, kTtl);
  EXPECT_EQ(version.expire_time, harness_->Now() + kTtl);
  harness_->Restart();
  EXPECT_EQ(store().GetVersion("trial", 1)->ttl, kTtl);
  EXPECT_EQ(store().GetVersion("trial", 1)->expire_time, version.expire_time);
  harness_->AdvanceClock(kTtl - absl::Seconds(1));
  EXPECT_THAT(TextsOf(store().DeleteExpired()), IsEmpty());
  const Revision before = store().ChangesSince(Revision())->revision;
  harness_->AdvanceClock(absl::Seconds(1));
  EXPECT_THAT(TextsOf(store().DeleteExpired()), ElementsAre("trial@1"));
  EXPECT_THAT(TextsOf(store().DeleteExpired()), IsEmpty());
  // The mapping is no longer visible, and the change is reported to servers.
  EXPECT_TRUE(absl::IsNotFound(store().GetMapping("trial").status()));
  EXPECT_TRUE(absl::IsNotFound(store().GetBuild("trial", "b1").status()));
  EXPECT_TRUE(absl::IsNotFound(store().ReadArtifact(version.digest).status()));
  const absl::StatusOr<NameChanges> changes = store().ChangesSince(before);
  ASSERT_EQ(changes->mappings.size(), 1);
  EXPECT_EQ(changes->mappings[0].mapping, "trial");
  EXPECT_THAT(changes->mappings[0].versions, IsEmpty());
  EXPECT_TRUE(store().GetVersion("letters", 1).ok());
  // The number of the expired version is not used again.
  EXPECT_EQ(MustPublish("trial", "b2").number, 2);
}

TEST_P(StoreContractTest, AMappingKeepsItsVersionsThatDoNotExpire) {
  MustPublish("letters", "b1", "one");
  ASSERT_TRUE(store().Publish(ExpiringRequest("letters", "b2"), "two").ok());
  ASSERT_TRUE(store().Publish(ExpiringRequest("letters", "b3", 2 * kTtl), "three").ok());
  harness_->AdvanceClock(kTtl);
  EXPECT_THAT(TextsOf(store().DeleteExpired()), ElementsAre("letters@2"));
  EXPECT_EQ(store().GetMapping("letters")->version_count, 2);
  EXPECT_EQ(store().GetMapping("letters")->newest_version, 3);
}

TEST_P(StoreContractTest, ManyVersionsExpireAtOnce) {
  for (int i = 0; i < 130; ++i) {
    ASSERT_TRUE(
        store().Publish(ExpiringRequest("trial", absl::StrCat("b", i)), absl::StrCat(i % 3)).ok());
  }
  harness_->AdvanceClock(kTtl);
  EXPECT_EQ(TextsOf(store().DeleteExpired()).size(), 130);
  EXPECT_TRUE(absl::IsNotFound(store().GetMapping("trial").status()));
}

TEST_P(StoreContractTest, AUsePostponesTheExpiryIfThatIsByATenthOfTheTtl) {
  const absl::Time begin = harness_->Now();
  ASSERT_TRUE(store().Publish(ExpiringRequest("trial", "b1"), "artifact").ok());
  MustPublish("letters", "b1", "other");
  const std::vector<VersionName> used = {{"trial", 1}, {"letters", 1}, {"trial", 7}, {"gone", 1}};
  harness_->AdvanceClock(kTtl / 10 - absl::Seconds(1));
  ASSERT_TRUE(store().RecordUses(used).ok());
  EXPECT_EQ(store().GetVersion("trial", 1)->expire_time, begin + kTtl);
  harness_->AdvanceClock(absl::Seconds(1));
  ASSERT_TRUE(store().RecordUses({{"letters", 1}}).ok());
  EXPECT_EQ(store().GetVersion("trial", 1)->expire_time, begin + kTtl);
  ASSERT_TRUE(store().RecordUses(used).ok());
  EXPECT_EQ(store().GetVersion("trial", 1)->expire_time, begin + kTtl + kTtl / 10);
  EXPECT_EQ(store().GetVersion("letters", 1)->expire_time, absl::InfiniteFuture());
  harness_->AdvanceClock(kTtl - absl::Seconds(1));
  EXPECT_THAT(TextsOf(store().DeleteExpired()), IsEmpty());
  harness_->AdvanceClock(absl::Seconds(1));
  EXPECT_THAT(TextsOf(store().DeleteExpired()), ElementsAre("trial@1"));
}

TEST_P(StoreContractTest, AnAliasKeepsAVersionAndTheOneItWouldBeRolledBackTo) {
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(
        store().Publish(ExpiringRequest("trial", absl::StrCat("b", i)), absl::StrCat(i)).ok());
  }
  ASSERT_TRUE(store().SetAlias("trial", "prod", 1, "").ok());
  ASSERT_TRUE(store().SetAlias("trial", "prod", 2, "").ok());
  EXPECT_EQ(store().GetVersion("trial", 1)->expire_time, absl::InfiniteFuture());
  EXPECT_EQ(store().GetVersion("trial", 2)->expire_time, absl::InfiniteFuture());
  EXPECT_EQ(store().GetVersion("trial", 2)->ttl, kTtl);
  harness_->AdvanceClock(3 * kTtl);
  EXPECT_THAT(TextsOf(store().DeleteExpired()), ElementsAre("trial@3"));
  // A version lives for its ttl from the moment when no alias points to it or could be rolled back
  // to it.
  MustPublish("trial", "b4", "4");
  ASSERT_TRUE(store().SetAlias("trial", "prod", 4, "").ok());
  EXPECT_EQ(store().GetVersion("trial", 1)->expire_time, harness_->Now() + kTtl);
  harness_->AdvanceClock(kTtl / 2);
  ASSERT_TRUE(store().DeleteAlias("trial", "prod", "").ok());
  EXPECT_EQ(store().GetVersion("trial", 2)->expire_time, harness_->Now() + kTtl);
  harness_->AdvanceClock(kTtl / 2);
  EXPECT_THAT(TextsOf(store().DeleteExpired()), ElementsAre("trial@1"));
  harness_->AdvanceClock(kTtl / 2);
  EXPECT_THAT(TextsOf(store().DeleteExpired()), ElementsAre("trial@2"));
  EXPECT_EQ(store().GetMapping("trial")->newest_version, 4);
}

TEST_P(StoreContractTest, KeepingExtendsALifeAndNeverShortensIt) {
  ASSERT_TRUE(store().Publish(ExpiringRequest("trial", "b1"), "artifact").ok());
  harness_->AdvanceClock(kTtl / 2);
  const VersionRecord kept = store().KeepVersion("trial", 1, kTtl).value();
  EXPECT_EQ(kept.ttl, kTtl);
  EXPECT_EQ(kept.expire_time, harness_->Now() + kTtl);
  const absl::Status shorter = store().KeepVersion("trial", 1, kTtl / 2).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(shorter)) << shorter;
  EXPECT_EQ(ReasonIn(shorter), "TTL_TOO_SHORT");
  EXPECT_EQ(store().GetVersion("trial", 1)->expire_time, kept.expire_time);
  // A shorter ttl is accepted once it ends later than the version's life.
  harness_->AdvanceClock(kTtl / 2);
  EXPECT_EQ(store().KeepVersion("trial", 1, kTtl / 2)->ttl, kTtl / 2);
  EXPECT_EQ(store().KeepVersion("trial", 1, absl::InfiniteDuration())->expire_time,
            absl::InfiniteFuture());
  EXPECT_EQ(ReasonIn(store().KeepVersion("trial", 1, kTtl).status()), "TTL_TOO_SHORT");
  harness_->AdvanceClock(10 * kTtl);
  EXPECT_THAT(TextsOf(store().DeleteExpired()), IsEmpty());
  EXPECT_EQ(ReasonIn(store().KeepVersion("trial", 2, kTtl).status()), "VERSION_NOT_FOUND");
  EXPECT_EQ(ReasonIn(store().KeepVersion("spam", 1, kTtl).status()), "MAPPING_NOT_FOUND");
}

// Whatever the order of concurrent calls, a life that was acknowledged is not shortened by another
// call.
TEST_P(StoreContractTest, NoAcknowledgedKeepIsLost) {
  constexpr int kRounds = 20;
  constexpr int kCallers = 4;
  for (int round = 1; round <= kRounds; ++round) {
    ASSERT_TRUE(
        store()
            .Publish(ExpiringRequest("trial", absl::StrCat("b", round), absl::Hours(1)), "artifact")
            .ok());
    std::array<absl::Duration, kCallers> acknowledged;
    RunTogether(kCallers, [&](int caller) {
      const absl::StatusOr<VersionRecord> kept =
          store().KeepVersion("trial", round, absl::Hours(2 + (caller + round) % kCallers));
      acknowledged[caller] = kept.ok() ? kept->ttl : absl::ZeroDuration();
      EXPECT_TRUE(kept.ok() || ReasonIn(kept.status()) == "TTL_TOO_SHORT") << kept.status();
    });
    EXPECT_EQ(store().GetVersion("trial", round)->ttl,
              *std::max_element(acknowledged.begin(), acknowledged.end()));
  }
}

TEST_P(StoreContractTest, WhatIsImportedLivesForEver) {
  ASSERT_TRUE(store().Publish(ExpiringRequest("trial", "b1"), "artifact").ok());
  VersionRecord imported{.mapping = "trial"};
  const VersionRecord version = store().Import(imported, "artifact").value();
  EXPECT_EQ(version.number, 1);
  EXPECT_EQ(version.ttl, absl::InfiniteDuration());
  harness_->AdvanceClock(10 * kTtl);
  EXPECT_THAT(TextsOf(store().DeleteExpired()), IsEmpty());
}

TEST_P(StoreContractTest, AMappingMayBeDeletedOnlyIfItHasNoVersion) {
  MustPublish("letters", "b1");
  const absl::Status refused = store().DeleteMapping("letters", Occupied::kRefuse);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(ReasonIn(refused), "MAPPING_NOT_EMPTY");
  ASSERT_TRUE(store().DeleteVersion("letters", 1).ok());
  EXPECT_TRUE(store().DeleteMapping("letters", Occupied::kRefuse).ok());
  EXPECT_TRUE(absl::IsNotFound(store().GetMapping("letters").status()));
}

}  // namespace phimap::testing
