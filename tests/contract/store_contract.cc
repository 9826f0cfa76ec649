#include "tests/contract/store_contract.h"

#include <gmock/gmock.h>

#include <atomic>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "tests/contract/publish_request.h"
#include "tests/support/matchers.h"
#include "tests/support/threads.h"

namespace phimap::testing {
namespace {

std::vector<int64_t> Numbers(const absl::StatusOr<std::vector<VersionRecord>>& versions) {
  EXPECT_TRUE(versions.ok()) << versions.status();
  std::vector<int64_t> numbers;
  if (!versions.ok()) return numbers;
  for (const VersionRecord& version : *versions) numbers.push_back(version.number);
  return numbers;
}

std::vector<std::string> Names(const absl::StatusOr<std::vector<MappingRecord>>& mappings) {
  EXPECT_TRUE(mappings.ok()) << mappings.status();
  std::vector<std::string> names;
  if (!mappings.ok()) return names;
  for (const MappingRecord& mapping : *mappings) names.push_back(mapping.name);
  return names;
}

BuildRecord FailedBuild(const std::string& mapping, const std::string& build_id, absl::Time end) {
  return {
      .mapping = mapping,
      .build_id = build_id,
      .spec_digest = "spec-of-failure",
      .rows_received = 5,
      .end_time = end,
      .version = 0,
      .error = MakeError(StatusCode::kInvalidArgument, "NOT_PSD", "spec.kernel",
                         "is not positive\nsemidefinite", {{"row", "3"}, {"text", "a\tö\n"}}, 250)};
}

}  // namespace

VersionRecord StoreContractTest::MustPublish(const std::string& mapping,
                                             const std::string& build_id,
                                             const std::string& artifact) {
  absl::StatusOr<VersionRecord> version =
      store().Publish(PublishRequestFor(mapping, build_id), artifact);
  EXPECT_TRUE(version.ok()) << version.status();
  return version.value_or(VersionRecord{});
}

void StoreContractTest::PublishLetters(int count) {
  for (int i = 1; i <= count; ++i) {
    MustPublish("letters", absl::StrCat("b", i), absl::StrCat("a", i));
  }
}

TEST_P(StoreContractTest, AnEmptyStoreHasNothing) {
  EXPECT_THAT(Names(store().ListMappings("", 10)), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(store().GetMapping("letters").status()));
  EXPECT_TRUE(absl::IsNotFound(store().GetVersion("letters", std::nullopt).status()));
  EXPECT_TRUE(absl::IsNotFound(store().GetVersion("letters", 1).status()));
  EXPECT_TRUE(absl::IsNotFound(store().ListVersions("letters", std::nullopt, 10).status()));
  EXPECT_TRUE(absl::IsNotFound(store().GetBuild("letters", "build-1").status()));
  EXPECT_TRUE(absl::IsNotFound(store().ReadArtifact(std::string(64, 'a')).status()));
}

TEST_P(StoreContractTest, APublishedVersionIsReadBackExactlyAlsoAfterARestart) {
  const VersionRecord published = MustPublish("letters", "build-1", "abc");
  EXPECT_EQ(published.number, 1);
  // The SHA-256 of "abc", from FIPS 180-2.
  EXPECT_EQ(published.digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  for (const bool restarted : {false, true}) {
    SCOPED_TRACE(restarted);
    if (restarted) harness_->Restart();
    const VersionRecord read = store().GetVersion("letters", 1).value();
    EXPECT_EQ(read.mapping, "letters");
    EXPECT_EQ(read.number, 1);
    EXPECT_EQ(read.digest, published.digest);
    EXPECT_EQ(read.artifact_size_bytes, 3);
    EXPECT_EQ(read.create_time, published.create_time);
    EXPECT_EQ(read.create_time, harness_->Now());
    EXPECT_EQ(read.input_columns, 16);
    EXPECT_EQ(read.output_columns, 256);
    EXPECT_EQ(read.serving_type, "float32");
    EXPECT_EQ(read.spec_text, "f2(landmarks=256)");
    EXPECT_EQ(read.kernel_text, "rbf(gamma=0.5)");
    const std::string artifact = store().ReadArtifact(read.digest).value();
    EXPECT_EQ(artifact, "abc");
  }
}

TEST_P(StoreContractTest, ArtifactsOfAnyBytesAndSizesSurvive) {
  const std::vector<std::string> artifacts = {"", std::string(1, '\0'), "line\r\n\0x",
                                              std::string(3 << 20, '\xff')};
  for (size_t i = 0; i < artifacts.size(); ++i) {
    SCOPED_TRACE(i);
    const VersionRecord version = MustPublish("letters", absl::StrCat("build-", i), artifacts[i]);
    const std::string read = store().ReadArtifact(version.digest).value();
    EXPECT_EQ(read, artifacts[i]);
  }
}

TEST_P(StoreContractTest, NumbersCountPerNameAndTheNewestIsTheDefault) {
  MustPublish("letters", "build-1", "one");
  MustPublish("spam", "build-1", "other");
  const VersionRecord second = MustPublish("letters", "build-2", "two");
  EXPECT_EQ(second.number, 2);
  EXPECT_EQ(store().GetVersion("letters", std::nullopt)->digest, second.digest);
  EXPECT_EQ(store().GetVersion("spam", std::nullopt)->number, 1);
  EXPECT_TRUE(absl::IsNotFound(store().GetVersion("letters", 3).status()));
  EXPECT_TRUE(absl::IsNotFound(store().GetVersion("letters", 0).status()));
}

TEST_P(StoreContractTest, AMappingCountsItsVersionsAndKeepsItsFirstTime) {
  const absl::Time created = harness_->Now();
  MustPublish("letters", "build-1");
  harness_->AdvanceClock(absl::Hours(1));
  MustPublish("letters", "build-2");
  const MappingRecord mapping = store().GetMapping("letters").value();
  EXPECT_EQ(mapping.name, "letters");
  EXPECT_EQ(mapping.newest_version, 2);
  EXPECT_EQ(mapping.version_count, 2);
  EXPECT_EQ(mapping.create_time, created);
}

TEST_P(StoreContractTest, MappingsPageByName) {
  for (const char* name : {"delta", "alpha", "charlie", "bravo", "b"}) MustPublish(name, "build");
  EXPECT_THAT(Names(store().ListMappings("", 2)), ElementsAre("alpha", "b"));
  EXPECT_THAT(Names(store().ListMappings("b", 2)), ElementsAre("bravo", "charlie"));
  EXPECT_THAT(Names(store().ListMappings("charlie", 2)), ElementsAre("delta"));
  EXPECT_THAT(Names(store().ListMappings("delta", 2)), IsEmpty());
  EXPECT_THAT(Names(store().ListMappings("bb", 1)), ElementsAre("bravo"));
  EXPECT_THAT(Names(store().ListMappings("", 0)), IsEmpty());
}

TEST_P(StoreContractTest, VersionsPageNewestFirst) {
  for (int i = 1; i <= 5; ++i) MustPublish("letters", absl::StrCat("build-", i));
  MustPublish("spam", "build-1");
  EXPECT_THAT(Numbers(store().ListVersions("letters", std::nullopt, 2)), ElementsAre(5, 4));
  EXPECT_THAT(Numbers(store().ListVersions("letters", 4, 2)), ElementsAre(3, 2));
  EXPECT_THAT(Numbers(store().ListVersions("letters", 2, 2)), ElementsAre(1));
  EXPECT_THAT(Numbers(store().ListVersions("letters", 1, 2)), IsEmpty());
  EXPECT_THAT(Numbers(store().ListVersions("letters", std::nullopt, 0)), IsEmpty());
}

TEST_P(StoreContractTest, AStaleExpectationIsAbortedAndStoresNothing) {
  PublishRequest request = PublishRequestFor("letters", "build-1");
  request.expected_newest = 1;
  EXPECT_TRUE(absl::IsAborted(store().Publish(request, "first").status()));
  EXPECT_TRUE(absl::IsNotFound(store().GetMapping("letters").status()));
  EXPECT_TRUE(absl::IsNotFound(store().GetBuild("letters", "build-1").status()));

  request.expected_newest = 0;
  EXPECT_EQ(store().Publish(request, "first")->number, 1);
  request.build_id = "build-2";
  const absl::Status stale = store().Publish(request, "second").status();
  EXPECT_TRUE(absl::IsAborted(stale)) << stale;
  EXPECT_EQ(DetailOf(stale)->metadata.at("expected"), "0");
  EXPECT_EQ(DetailOf(stale)->metadata.at("actual"), "1");
  EXPECT_THAT(Numbers(store().ListVersions("letters", std::nullopt, 9)), ElementsAre(1));

  // The refused publish must not use up the version number.
  request.expected_newest = 1;
  EXPECT_EQ(store().Publish(request, "second")->number, 2);
}

TEST_P(StoreContractTest, ABuildIdPublishesOncePerMapping) {
  const VersionRecord version = MustPublish("letters", "build-1", "one");
  for (const char* artifact : {"one", "two"}) {
    const absl::Status again =
        store().Publish(PublishRequestFor("letters", "build-1"), artifact).status();
    EXPECT_TRUE(absl::IsAlreadyExists(again)) << again;
    EXPECT_THAT(again.message(), HasSubstr("build-1"));
  }
  EXPECT_EQ(store().GetMapping("letters")->version_count, 1);
  // The refused publish had the same artifact as the version, so the artifact must still be there.
  EXPECT_EQ(*store().ReadArtifact(version.digest), "one");
  EXPECT_EQ(MustPublish("spam", "build-1").number, 1);
}

TEST_P(StoreContractTest, TheBuildOfAVersionIsRecordedWithIt) {
  MustPublish("letters", "build-0");
  MustPublish("letters", "build-1");
  const BuildRecord build = store().GetBuild("letters", "build-1").value();
  EXPECT_EQ(build.mapping, "letters");
  EXPECT_EQ(build.build_id, "build-1");
  EXPECT_EQ(build.version, 2);
  EXPECT_EQ(build.spec_digest, "spec-digest");
  EXPECT_EQ(build.rows_received, 1000);
  EXPECT_EQ(build.end_time, harness_->Now());
  EXPECT_TRUE(build.error.ok());
  EXPECT_TRUE(absl::IsNotFound(store().GetBuild("spam", "build-1").status()));
}

TEST_P(StoreContractTest, AFailedBuildKeepsItsErrorWithDetailsAndMakesNoMapping) {
  const BuildRecord failed = FailedBuild("letters", "build-1", harness_->Now());
  ASSERT_TRUE(store().RecordFailedBuild(failed).ok());
  harness_->Restart();
  const BuildRecord read = store().GetBuild("letters", "build-1").value();
  EXPECT_EQ(read.version, 0);
  EXPECT_EQ(read.rows_received, 5);
  EXPECT_EQ(read.spec_digest, "spec-of-failure");
  // The errors are equal, including their payload: reason, field, metadata and retry delay.
  EXPECT_EQ(read.error, failed.error);
  EXPECT_TRUE(absl::IsNotFound(store().GetMapping("letters").status()));
  EXPECT_TRUE(absl::IsAlreadyExists(store().RecordFailedBuild(failed)));
  EXPECT_TRUE(absl::IsAlreadyExists(
      store().Publish(PublishRequestFor("letters", "build-1"), "artifact").status()));
}

TEST_P(StoreContractTest, AnErrorWithoutDetailsKeepsCodeAndMessage) {
  BuildRecord failed = FailedBuild("letters", "build-1", harness_->Now());
  failed.error = absl::CancelledError("by the client");
  ASSERT_TRUE(store().RecordFailedBuild(failed).ok());
  EXPECT_EQ(store().GetBuild("letters", "build-1")->error, failed.error);
}

TEST_P(StoreContractTest, AFailureCannotReplaceAPublishedBuild) {
  MustPublish("letters", "build-1");
  EXPECT_TRUE(absl::IsAlreadyExists(
      store().RecordFailedBuild(FailedBuild("letters", "build-1", harness_->Now()))));
  EXPECT_EQ(store().GetBuild("letters", "build-1")->version, 1);
}

TEST_P(StoreContractTest, BuildsAreKeptForTheRetentionAndNotLonger) {
  MustPublish("letters", "done");
  ASSERT_TRUE(store().RecordFailedBuild(FailedBuild("letters", "failed", harness_->Now())).ok());
  harness_->AdvanceClock(kBuildRetention);
  EXPECT_TRUE(store().GetBuild("letters", "done").ok());
  EXPECT_TRUE(store().GetBuild("letters", "failed").ok());
  harness_->AdvanceClock(absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsNotFound(store().GetBuild("letters", "done").status()));
  EXPECT_TRUE(absl::IsNotFound(store().GetBuild("letters", "failed").status()));
  // The version remains, and the build id can be used again.
  EXPECT_TRUE(store().GetVersion("letters", 1).ok());
  EXPECT_EQ(MustPublish("letters", "failed").number, 2);
  EXPECT_TRUE(store().RecordFailedBuild(FailedBuild("letters", "done", harness_->Now())).ok());
  harness_->Restart();
  EXPECT_EQ(store().GetBuild("letters", "failed")->version, 2);
}

TEST_P(StoreContractTest, ConcurrentPublishersGetEveryNumberOnce) {
  constexpr int kThreads = 8;
  constexpr int kEach = 4;
  std::vector<std::vector<int64_t>> numbers(kThreads);
  RunTogether(kThreads, [&](int t) {
    for (int i = 0; i < kEach; ++i) {
      // Half of the threads write the same artifact at the same time.
      const std::string artifact = t % 2 == 0 ? "shared" : absl::StrCat("own-", t, "-", i);
      const absl::StatusOr<VersionRecord> version = store().Publish(
          PublishRequestFor("letters", absl::StrCat("build-", t, "-", i)), artifact);
      EXPECT_TRUE(version.ok()) << version.status();
      if (!version.ok()) return;
      numbers[t].push_back(version->number);
      EXPECT_EQ(store().ReadArtifact(version->digest).value_or(""), artifact);
    }
  });
  std::set<int64_t> all;
  for (const auto& some : numbers) all.insert(some.begin(), some.end());
  ASSERT_EQ(all.size(), kThreads * kEach);
  EXPECT_EQ(*all.begin(), 1);
  EXPECT_EQ(*all.rbegin(), kThreads * kEach);
}

TEST_P(StoreContractTest, OfRacingPublishersWithTheSameExpectationOneWinsAndKeepsItsArtifact) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> won{0};
    RunTogether(kThreads, [&](int t) {
      PublishRequest request = PublishRequestFor("letters", absl::StrCat("build-", round, "-", t));
      request.expected_newest = round;
      const absl::Status status =
          store().Publish(request, absl::StrCat("artifact-", round)).status();
      EXPECT_TRUE(status.ok() || absl::IsAborted(status)) << status;
      won += status.ok();
    });
    EXPECT_EQ(won, 1);
    const VersionRecord version = store().GetVersion("letters", std::nullopt).value();
    EXPECT_EQ(version.number, round + 1);
    // The publishes that lost had also written this blob, and then gave it up.
    EXPECT_EQ(store().ReadArtifact(version.digest).value_or("?"), absl::StrCat("artifact-", round));
  }
}

}  // namespace phimap::testing
