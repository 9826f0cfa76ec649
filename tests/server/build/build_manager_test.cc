#include "server/build/build_manager.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/mapping/build/build_cost.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/server/build/build_manager_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

class BuildManagerTest : public BuildManagerFixture {};

TEST_F(BuildManagerTest, BuildsAndPublishesAVersion) {
  const std::shared_ptr<BuildJob> job = Begin()->job;
  ASSERT_TRUE(Add(job).ok());
  ASSERT_TRUE(Add(job).ok());
  ASSERT_TRUE(builds_->Finish(job, 80).ok());
  const BuildSnapshot done = AwaitState(job, BuildState::kDone);
  ASSERT_EQ(done.state, BuildState::kDone) << done.error;
  EXPECT_EQ(done.version->record.number, 1);
  EXPECT_EQ(done.version->certificate.stream_rows, 80);
  EXPECT_TRUE(store_->ReadArtifact(done.version->record.digest).ok());
  EXPECT_EQ(metrics_.build().memory_bytes->Value(), 0);
}

TEST_F(BuildManagerTest, ARepeatedBuildAttachesWhereverTheFirstStands) {
  const std::shared_ptr<BuildJob> job = BeginComputing();
  const auto while_computing = Begin().value();
  EXPECT_TRUE(while_computing.attached);
  EXPECT_EQ(while_computing.job, job);
  gate_.Open();
  const BuildSnapshot done = AwaitState(job, BuildState::kDone);
  EXPECT_TRUE(Begin()->attached);
  Reopen();  // after this, only the store knows the build
  const auto after_restart = Begin().value();
  EXPECT_TRUE(after_restart.attached);
  const BuildSnapshot stored = after_restart.job->Snapshot();
  ASSERT_EQ(stored.state, BuildState::kDone);
  EXPECT_EQ(stored.version->record.digest, done.version->record.digest);
  EXPECT_EQ(stored.version->certificate.landmarks, 5);
  EXPECT_EQ(Begin(Spec(6)).status().code(), Code::kAlreadyExists);
}

TEST_F(BuildManagerTest, AnotherSpecIsRefusedAndAnOpenStreamIsAborted) {
  const std::shared_ptr<BuildJob> job = Begin()->job;
  EXPECT_EQ(Begin(Spec(6)).status().code(), Code::kAlreadyExists);
  EXPECT_EQ(Begin(Spec()).status().code(), Code::kAborted);
  EXPECT_TRUE(Begin(Spec(6), "00000000-0000-4000-8000-000000000002").ok());
}

TEST_F(BuildManagerTest, ABrokenStreamFreesItsIdAndLeavesNoTrace) {
  const std::shared_ptr<BuildJob> job = Begin()->job;
  ASSERT_TRUE(Add(job).ok());
  EXPECT_GT(metrics_.build().memory_bytes->Value(), 0);
  builds_->Abandon(job, absl::CancelledError("gone"));
  EXPECT_EQ(metrics_.build().memory_bytes->Value(), 0);
  EXPECT_EQ(builds_->Get({"letter", kUuid}).status().code(), Code::kNotFound);
  EXPECT_TRUE(builds_->List("").empty());
  EXPECT_TRUE(NothingStored());
  EXPECT_FALSE(Begin(Spec(6))->attached);
}

TEST_F(BuildManagerTest, ARowCountThatDiffersIsDataLossWithBothNumbers) {
  const std::shared_ptr<BuildJob> job = Begin()->job;
  ASSERT_TRUE(Add(job).ok());
  EXPECT_THAT(builds_->Finish(job, 41),
              IsError(Code::kDataLoss, _, _, HasSubstr("41 rows, but the server received 40")));
  EXPECT_TRUE(NothingStored());
  EXPECT_FALSE(Begin()->attached);
}

TEST_F(BuildManagerTest, AnEmptyStreamFailsAndIsRecorded) {
  const std::shared_ptr<BuildJob> job = Begin()->job;
  ASSERT_TRUE(builds_->Finish(job, 0).ok());
  const BuildSnapshot failed = AwaitState(job, BuildState::kDone);
  EXPECT_EQ(failed.state, BuildState::kFailed);
  EXPECT_THAT(failed.error, IsError(Code::kFailedPrecondition, "STREAM_EMPTY"));
  EXPECT_TRUE(NothingStored());
}

TEST_F(BuildManagerTest, CancelWhileReceivingEndsTheStreamAndIsIdempotent) {
  const std::shared_ptr<BuildJob> job = Begin()->job;
  EXPECT_EQ(builds_->Cancel({"letter", kUuid})->state, BuildState::kCancelled);
  EXPECT_EQ(Add(job).code(), Code::kCancelled);
  EXPECT_EQ(builds_->Cancel({"letter", kUuid})->state, BuildState::kCancelled);
  EXPECT_TRUE(Begin()->attached);
  Reopen();
  EXPECT_EQ(builds_->Get({"letter", kUuid})->state, BuildState::kCancelled);
}

TEST_F(BuildManagerTest, CancelWhileQueuedAndWhileComputingPublishesNothing) {
  const std::shared_ptr<BuildJob> computing = BeginComputing();
  const std::string other = "00000000-0000-4000-8000-000000000002";
  const std::shared_ptr<BuildJob> queued = Begin(Spec(), other)->job;
  std::thread add([&] { EXPECT_TRUE(Add(queued).ok()); });
  // While the gate is closed, the second build cannot take its block. Therefore the first build is
  // cancelled before the gate opens.
  EXPECT_EQ(builds_->Cancel({"letter", kUuid})->state, BuildState::kCancelled);
  gate_.Open();
  add.join();
  EXPECT_TRUE(builds_->Cancel({"letter", other}).ok());
  EXPECT_EQ(queued->Snapshot().state, BuildState::kCancelled);
  EXPECT_FALSE(builds_->Finish(queued, 40).ok());
  Close(absl::Seconds(30));
  Open();
  EXPECT_TRUE(NothingStored());
}

TEST_F(BuildManagerTest, CancelOfADoneOrUnknownBuildChangesNothing) {
  const std::shared_ptr<BuildJob> job = Begin()->job;
  ASSERT_TRUE(Add(job).ok());
  ASSERT_TRUE(builds_->Finish(job, 40).ok());
  AwaitState(job, BuildState::kDone);
  EXPECT_EQ(builds_->Cancel({"letter", kUuid})->state, BuildState::kDone);
  EXPECT_EQ(builds_->Cancel({"other", kUuid}).status().code(), Code::kNotFound);
}

TEST_F(BuildManagerTest, BlocksAndTilesOfLittleWorkDoNotYield) {
  Close();
  options_.quantum = std::chrono::hours(1);
  Open();
  gate_.Close();  // a build that yielded would wait at the gate
  const std::shared_ptr<BuildJob> job = Begin()->job;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Add(job).ok());
  ASSERT_TRUE(builds_->Finish(job, 400).ok());
  EXPECT_EQ(AwaitState(job, BuildState::kDone).state, BuildState::kDone);
}

TEST_F(BuildManagerTest, ASilentClientLosesItsIdAfterTheIdleTimeout) {
  const std::shared_ptr<BuildJob> job = Begin()->job;
  now_ = now_.load() + std::chrono::minutes(4);
  builds_->EndIdleBuilds();
  ASSERT_TRUE(Add(job).ok());  // each block restarts the idle time
  now_ = now_.load() + std::chrono::minutes(4);
  builds_->EndIdleBuilds();
  EXPECT_EQ(job->Snapshot().state, BuildState::kReceiving);
  now_ = now_.load() + std::chrono::minutes(1);
  builds_->EndIdleBuilds();
  EXPECT_EQ(job->Snapshot().error.code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(Begin()->attached);
}

TEST_F(BuildManagerTest, BuildsAreBoundedInNumberAndMemory) {
  Close();
  options_.max_builds = 1;
  // The memory suffices for a build with one column, but not with three.
  options_.memory_bytes = ReservedBytes(Spec(), 1, options_.compute_threads);
  ASSERT_LT(options_.memory_bytes, ReservedBytes(Spec(), 3, options_.compute_threads));
  Open();
  const std::shared_ptr<BuildJob> job = Begin()->job;
  EXPECT_THAT(Begin(Spec(), "00000000-0000-4000-8000-000000000002").status(),
              IsError(Code::kResourceExhausted, "BUILD_LIMIT_REACHED"));
  EXPECT_THAT(Add(job), IsError(Code::kResourceExhausted, "BUILD_MEMORY_FULL"));
  EXPECT_FALSE(Begin()->attached);  // the failed build no longer counts
}

TEST_F(BuildManagerTest, ABuildThatCanNeverFitIsRefusedBeforeItsRowsAreSent) {
  Close();
  // A Gram matrix of 1,000 landmarks alone takes 8 MB.
  options_.memory_bytes = 8'000'000;
  Open();
  const absl::Status never = Begin(Spec(1000)).status();
  EXPECT_THAT(never, IsError(Code::kResourceExhausted, "BUILD_MEMORY_FULL"));
  EXPECT_EQ(DetailOf(never)->retry_delay_ms, 0);
  EXPECT_THAT(std::string(never.message()), HasSubstr("--build_memory_bytes=8000000"));
  EXPECT_TRUE(builds_->List("").empty());
  EXPECT_FALSE(Begin(Spec(5))->attached);
}

TEST_F(BuildManagerTest, DrainWaitsForWhatCanFinish) {
  const std::shared_ptr<BuildJob> job = BeginComputing();
  std::thread opener([&] { gate_.Open(); });
  builds_->Drain(BuildManager::Clock::now() + std::chrono::seconds(30));
  opener.join();
  EXPECT_EQ(job->Snapshot().state, BuildState::kDone);
  EXPECT_EQ(Begin(Spec(), "00000000-0000-4000-8000-000000000002").status().code(),
            Code::kUnavailable);
}

TEST_F(BuildManagerTest, DrainCancelsTheRestAndTheSameIdMayBeStreamedAgain) {
  const std::shared_ptr<BuildJob> job = BeginComputing();
  const auto client = std::make_shared<StateWatch>(job);
  job->Subscribe(client);
  Reopen();  // drains with no time left
  EXPECT_EQ(job->Snapshot().state, BuildState::kCancelled);
  EXPECT_EQ(job->Snapshot().error.code(), Code::kUnavailable);
  EXPECT_TRUE(NothingStored());
  EXPECT_FALSE(Begin()->attached);
}

TEST_F(BuildManagerTest, DrainRecordsTheEndOfWhatNobodyFollows) {
  BeginComputing();
  Reopen();  // drains with no time left
  const BuildSnapshot found = builds_->Get({"letter", kUuid}).value();
  EXPECT_THAT(found.error, IsError(Code::kAborted, "BUILD_INTERRUPTED"));
}

TEST_F(BuildManagerTest, ListIsNewestFirstAndByMapping) {
  const std::string other = "00000000-0000-4000-8000-000000000002";
  ASSERT_TRUE(Begin().ok());
  ASSERT_TRUE(Begin(Spec(), other).ok());
  const std::vector<BuildSnapshot> all = builds_->List("");
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].id.build_id, other);
  EXPECT_EQ(builds_->List("letter").size(), 2);
  EXPECT_TRUE(builds_->List("nothing").empty());
}

}  // namespace
}  // namespace phimap::testing
