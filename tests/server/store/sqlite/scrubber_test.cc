#include <gtest/gtest.h>

#include <filesystem>

#include "absl/synchronization/notification.h"
#include "server/store/files/file_blobs.h"
#include "server/store/store_upkeep.h"
#include "tests/server/store/sqlite/store_fixture.h"

namespace phimap::testing {
namespace {

class ScrubberTest : public ::testing::Test {
 protected:
  std::string PathOf(const std::string& digest) {
    return FileBlobs(directory_.path(), PosixFileSystem()).BlobPath(digest);
  }
  // Makes a complete pass over the store, and returns how many artifacts it read.
  int Pass(Scrubber& scrubber) {
    for (int artifacts = 0;; ++artifacts) {
      const auto finding = scrubber.Step([](int64_t) { return true; });
      EXPECT_TRUE(finding.ok()) << finding.status();
      if (!finding.ok() || finding->digest.empty()) return artifacts;
    }
  }

  TemporaryDirectory directory_;
  ManualClock clock_;
  std::unique_ptr<SqliteStore> store_ = MustOpen(directory_.path(), &clock_);
};

TEST_F(ScrubberTest, FindsWhatIsDamagedOrMissingUntilItIsHealed) {
  const std::string one = store_->Publish(RequestFor("build-1"), "one")->digest;
  const std::string two = store_->Publish(RequestFor("build-2"), "two")->digest;
  ASSERT_TRUE(store_->Publish(RequestFor("build-3"), "three").ok());
  ASSERT_TRUE(store_->Publish(RequestFor("build-4"), "three").ok());
  Scrubber scrubber(store_->database(), store_->blobs());
  EXPECT_EQ(Pass(scrubber), 3);
  EXPECT_EQ(scrubber.bytes(), 3 + 3 + 5);
  EXPECT_EQ(scrubber.damaged(), 0);
  WriteWhole(PathOf(one), "ono");
  std::filesystem::remove(PathOf(two));
  EXPECT_EQ(Pass(scrubber), 3);
  EXPECT_EQ(scrubber.damaged(), 2);
  EXPECT_EQ(Pass(scrubber), 3);
  EXPECT_EQ(scrubber.damaged(), 2);
  EXPECT_TRUE(store_->Import(RequestFor("").version, "one").ok());
  EXPECT_TRUE(store_->Import(RequestFor("").version, "two").ok());
  EXPECT_EQ(Pass(scrubber), 3);
  EXPECT_EQ(scrubber.damaged(), 0);
}

TEST_F(ScrubberTest, WhatIsDeletedWhileItIsReadIsNotDamaged) {
  const std::string digest = store_->Publish(RequestFor("build-1"), "one")->digest;
  Scrubber scrubber(store_->database(), store_->blobs());
  const auto finding = scrubber.Step([&](int64_t) {
    WriteWhole(PathOf(digest), "");  // truncates the file that is being read
    return store_->DeleteVersion("letters", 1).ok();
  });
  ASSERT_TRUE(finding.ok());
  EXPECT_TRUE(finding->status.ok()) << finding->status;
  EXPECT_EQ(scrubber.damaged(), 0);
}

TEST_F(ScrubberTest, AStepThatIsStoppedReadsTheArtifactAgain) {
  const std::string digest = store_->Publish(RequestFor("build-1"), "one")->digest;
  Scrubber scrubber(store_->database(), store_->blobs());
  EXPECT_TRUE(scrubber.Step([](int64_t) { return false; })->stopped);
  EXPECT_EQ(scrubber.bytes(), 0);
  EXPECT_EQ(scrubber.Step([](int64_t) { return true; })->digest, digest);
}

// At one byte per second, reading the artifact would take eleven days. The test ends only if the
// destructor interrupts the pause between two reads.
TEST_F(ScrubberTest, UpkeepEndsPromptlyInTheMidstOfAnArtifact) {
  ASSERT_TRUE(store_->Publish(RequestFor("build-1"), std::string(1'000'000, 'x')).ok());
  const Logger logger(LogLevel::kError, LogFormat::kText);
  UpkeepOptions options{.scrub_bytes_per_second = 1, .first_after = absl::ZeroDuration()};
  absl::Notification begun;
  options.prepare = [&begun] { begun.Notify(); };
  StoreUpkeep upkeep(store_->database(), store_->blobs(), "the test", store_->clock(), options,
                     logger);
  begun.WaitForNotification();
}

}  // namespace
}  // namespace phimap::testing
