// The part of the store's contract about the audit and about what callers' versions may take.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/store/audit.h"
#include "server/store/sha256.h"
#include "tests/contract/publish_request.h"
#include "tests/contract/store_contract.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

ChangeOrigin By(const std::string& principal, const std::string& method) {
  ChangeOrigin origin;
  origin.principal = principal;
  origin.method = method;
  origin.peer = "ipv4:192.0.2.7:4711";
  origin.request_id = "0123456789abcdef";
  return origin;
}

std::vector<AuditEntry> AllOf(Store& store) {
  AuditQuery query;
  query.oldest_first = true;
  return store.ListAudit(query, 1000).value();
}

// "3 team SetAlias letters@prod 1→2 OK", what a reader of the audit wants to know.
std::string TextOf(const AuditEntry& entry) {
  return absl::StrCat(entry.number, " ", entry.principal, " ", entry.method, " ", entry.mapping,
                      entry.alias.empty() ? "" : "@", entry.alias, " ", entry.previous_version, "→",
                      entry.version, " ", entry.outcome);
}

std::vector<std::string> TextsOfAudit(Store& store) {
  std::vector<std::string> texts;
  for (const AuditEntry& entry : AllOf(store)) texts.push_back(TextOf(entry));
  return texts;
}

PublishRequest RequestBy(const std::string& principal, const std::string& build_id) {
  PublishRequest request;
  request.version.mapping = "letters";
  request.version.serving_type = "float32";
  request.version.spec_text = "f2(landmarks=256)";
  request.version.kernel_text = "rbf(gamma=0.5)";
  request.build_id = build_id;
  request.spec_digest = "spec-digest";
  request.origin = By(principal, "Build");
  return request;
}

BuildRecord FailedBuild(const std::string& build_id) {
  return {.mapping = "letters",
          .build_id = build_id,
          .spec_digest = "spec-digest",
          .error = absl::CancelledError("cancelled")};
}

}  // namespace

TEST_P(StoreContractTest, EachChangeHasOneEntryThatSaysWhoMadeIt) {
  ASSERT_TRUE(store().Publish(RequestBy("ann", "b1"), "one").ok());
  ASSERT_TRUE(store().Publish(RequestBy("bob", "b2"), "two").ok());
  ASSERT_TRUE(store().SetAlias("letters", "prod", 1, "", By("ann", "SetAlias")).ok());
  ASSERT_TRUE(store().SetAlias("letters", "prod", 2, "", By("bob", "SetAlias")).ok());
  ASSERT_TRUE(store().KeepVersion("letters", 1, absl::InfiniteDuration(), By("ann", "Keep")).ok());
  ASSERT_TRUE(store().DeleteAlias("letters", "prod", "", By("bob", "DeleteAlias")).ok());
  ASSERT_TRUE(
      store().DeleteVersion("letters", 1, Rollbacks::kKeep, By("ann", "DeleteVersion")).ok());
  ASSERT_TRUE(store().RecordFailedBuild(FailedBuild("b3"), By("ann", "Build")).ok());
  ASSERT_TRUE(store().DeleteMapping("letters", Occupied::kDelete, By("bob", "DeleteMapping")).ok());
  VersionRecord imported;
  imported.mapping = "copies";
  imported.serving_type = "float32";
  ASSERT_TRUE(store().Import(imported, "three", By("ann", "Import")).ok());
  EXPECT_THAT(
      TextsOfAudit(store()),
      ElementsAre("1 ann Build letters 0→1 OK", "2 bob Build letters 0→2 OK",
                  "3 ann SetAlias letters@prod 0→1 OK", "4 bob SetAlias letters@prod 1→2 OK",
                  "5 ann Keep letters 1→1 OK", "6 bob DeleteAlias letters@prod 2→0 OK",
                  "7 ann DeleteVersion letters 1→0 OK", "8 ann Build letters 0→0 CANCELLED",
                  "9 bob DeleteMapping letters 2→0 OK", "10 ann Import copies 0→1 OK"));
  const AuditEntry moved = AllOf(store())[3];
  EXPECT_EQ(moved.previous_digest, Sha256Hex("one"));
  EXPECT_EQ(moved.digest, Sha256Hex("two"));
  EXPECT_EQ(moved.peer, "ipv4:192.0.2.7:4711");
  EXPECT_EQ(moved.request_id, "0123456789abcdef");
  EXPECT_EQ(moved.time, harness_->Now());
}

TEST_P(StoreContractTest, WhatChangesNothingHasNoEntry) {
  ASSERT_TRUE(store().Publish(RequestBy("ann", "b1"), "one").ok());
  ASSERT_TRUE(store().SetAlias("letters", "prod", 1, "", By("ann", "SetAlias")).ok());
  const std::vector<std::string> before = TextsOfAudit(store());
  // Points there already; another etag; an unknown version; a version that an alias holds; a build
  // that has ended; a name that does not exist; an operation that was made.
  EXPECT_TRUE(store().SetAlias("letters", "prod", 1, "", By("bob", "SetAlias")).ok());
  EXPECT_FALSE(store().SetAlias("letters", "prod", 1, "none", By("bob", "SetAlias")).ok());
  EXPECT_FALSE(store().SetAlias("letters", "prod", 7, "", By("bob", "SetAlias")).ok());
  EXPECT_FALSE(store().DeleteVersion("letters", 1, Rollbacks::kKeep, By("bob", "Delete")).ok());
  EXPECT_FALSE(store().Publish(RequestBy("bob", "b1"), "two").ok());
  EXPECT_FALSE(store().DeleteMapping("digits", Occupied::kDelete, By("bob", "Delete")).ok());
  EXPECT_EQ(TextsOfAudit(store()), before);
  ChangeOrigin once = By("bob", "SetAlias");
  once.operation_id = "operation-1";
  EXPECT_TRUE(store().SetAlias("letters", "next", 1, "", once).ok());
  EXPECT_TRUE(store().SetAlias("letters", "next", 1, "", once).ok());
  EXPECT_EQ(TextsOfAudit(store()).size(), before.size() + 1);
}

TEST_P(StoreContractTest, VersionsAndAliasesSayWhoMadeAndMovedThem) {
  EXPECT_EQ(store().Publish(RequestBy("ann", "b1"), "one")->made_by, "ann");
  EXPECT_EQ(store().SetAlias("letters", "prod", 1, "", By("bob", "SetAlias"))->moved_by, "bob");
  harness_->Restart();
  EXPECT_EQ(store().GetVersion("letters", 1)->made_by, "ann");
  EXPECT_EQ(store().GetMapping("letters")->aliases[0].moved_by, "bob");
  EXPECT_EQ(TextsOfAudit(store()).size(), 2u);
}

TEST_P(StoreContractTest, WhoeverCancelsABuildHasAnEntryBesideItsEnd) {
  const ChangeOrigin canceller = By("eve", "CancelBuild");
  ASSERT_TRUE(store().RecordFailedBuild(FailedBuild("b1"), By("ann", "Build"), &canceller).ok());
  EXPECT_THAT(TextsOfAudit(store()),
              ElementsAre("1 eve CancelBuild letters 0→0 OK", "2 ann Build letters 0→0 CANCELLED"));
  for (const AuditEntry& entry : AllOf(store())) EXPECT_EQ(entry.build_id, "b1");
}

TEST_P(StoreContractTest, ExpiryIsAnEntryOfNobody) {
  PublishRequest request = RequestBy("ann", "b1");
  request.version.ttl = absl::Hours(1);
  ASSERT_TRUE(store().Publish(request, "one").ok());
  harness_->AdvanceClock(absl::Hours(2));
  ASSERT_EQ(store().DeleteExpired()->size(), 1u);
  EXPECT_THAT(TextsOfAudit(store()),
              ElementsAre("1 ann Build letters 0→1 OK", "2  expiry letters 1→0 OK"));
}

TEST_P(StoreContractTest, TheAuditIsReadByTimeMappingAndCaller) {
  ASSERT_TRUE(store().Publish(RequestBy("ann", "b1"), "one").ok());
  harness_->AdvanceClock(absl::Hours(1));
  const absl::Time later = harness_->Now();
  ASSERT_TRUE(store().Publish(RequestBy("bob", "b2"), "two").ok());
  AuditEntry refused;
  refused.SetOrigin(By("ann", "DeleteMapping"));
  refused.SetOutcome(absl::PermissionDeniedError("no"));
  refused.mapping = "digits";
  ASSERT_TRUE(store().RecordRefusal(refused).ok());
  const auto numbers = [&](AuditQuery query, int limit = 100) {
    std::vector<int64_t> found;
    const std::vector<AuditEntry> entries = store().ListAudit(query, limit).value();
    for (const AuditEntry& entry : entries) found.push_back(entry.number);
    return found;
  };
  EXPECT_THAT(numbers({}), ElementsAre(3, 2, 1));
  EXPECT_THAT(numbers({}, 2), ElementsAre(3, 2));
  EXPECT_THAT(numbers({.bound = 3}), ElementsAre(2, 1));
  EXPECT_THAT(numbers({.bound = 1, .oldest_first = true}), ElementsAre(2, 3));
  EXPECT_THAT(numbers({.mapping = "digits"}), ElementsAre(3));
  EXPECT_THAT(numbers({.principal = "ann"}), ElementsAre(3, 1));
  EXPECT_THAT(numbers({.principal = ""}), IsEmpty());
  EXPECT_THAT(numbers({.from = later}), ElementsAre(3, 2));
  EXPECT_THAT(numbers({.until = later}), ElementsAre(1));
}

TEST_P(StoreContractTest, EntriesAreKeptForTheRetentionAndNoLonger) {
  ASSERT_TRUE(store().Publish(RequestBy("ann", "b1"), "one").ok());
  harness_->AdvanceClock(kAuditRetention - absl::Hours(1));
  ASSERT_TRUE(store().Prune().ok());
  EXPECT_EQ(AllOf(store()).size(), 1u);
  harness_->AdvanceClock(absl::Hours(2));
  ASSERT_TRUE(store().Prune().ok());
  EXPECT_THAT(AllOf(store()), IsEmpty());
  // Numbers go on.
  ASSERT_TRUE(store().SetAlias("letters", "prod", 1, "", By("ann", "SetAlias")).ok());
  EXPECT_EQ(AllOf(store())[0].number, 2);
}

TEST_P(StoreContractTest, AChangeIsMadeOnlyWhileTheAuditCanBeCopied) {
  absl::Status copy = absl::OkStatus();
  int copies = 0;
  store().CopyAuditBy([&] { return copy; }, [&] { ++copies; });
  ASSERT_TRUE(store().Publish(RequestBy("ann", "b1"), "one").ok());
  EXPECT_EQ(copies, 1);
  copy = absl::UnavailableError("the disk is full");
  EXPECT_EQ(store().SetAlias("letters", "prod", 1, "", By("ann", "SetAlias")).status(), copy);
  EXPECT_TRUE(store().GetMapping("letters")->aliases.empty());
  EXPECT_EQ(AllOf(store()).size(), 1u);
  copy = absl::OkStatus();
  EXPECT_TRUE(store().SetAlias("letters", "prod", 1, "", By("ann", "SetAlias")).ok());
  EXPECT_EQ(AllOf(store()).size(), 2u);
}

TEST_P(StoreContractTest, AShareOfTheStoreHoldsForEachCallerByItself) {
  const auto publish = [&](const std::string& principal, const std::string& build,
                           const std::string& artifact, StoreShare share) {
    PublishRequest request = RequestBy(principal, build);
    request.origin.stored = share;
    return store().Publish(request, artifact).status();
  };
  const StoreShare two{.versions = 2, .bytes = std::nullopt};
  EXPECT_TRUE(publish("ann", "b1", "one", two).ok());
  EXPECT_TRUE(publish("ann", "b2", "two", two).ok());
  const absl::Status third = publish("ann", "b3", "three", two);
  EXPECT_TRUE(absl::IsResourceExhausted(third)) << third;
  EXPECT_EQ(DetailOf(third)->reason, "STORE_SHARE_REACHED");
  EXPECT_THAT(std::string(third.message()), HasSubstr("versions=2"));
  EXPECT_TRUE(publish("bob", "b4", "four", two).ok());
  // What is deleted makes room, and a larger share does.
  EXPECT_TRUE(publish("ann", "b5", "five", {.versions = 3, .bytes = std::nullopt}).ok());
  ASSERT_TRUE(store().DeleteVersion("letters", 1).ok());
  ASSERT_TRUE(store().DeleteVersion("letters", 2).ok());
  EXPECT_TRUE(publish("ann", "b6", "six", two).ok());
  // "five" and "six" take 7 bytes.
  const StoreShare ten{.versions = std::nullopt, .bytes = 10};
  EXPECT_TRUE(absl::IsResourceExhausted(publish("ann", "b7", "four", ten)));
  EXPECT_TRUE(publish("ann", "b8", "abc", ten).ok());
  ChangeOrigin importer = By("ann", "Import");
  importer.stored = ten;
  VersionRecord imported;
  imported.mapping = "letters";
  imported.serving_type = "float32";
  EXPECT_TRUE(absl::IsResourceExhausted(store().Import(imported, "d", importer).status()));
}

}  // namespace phimap::testing
