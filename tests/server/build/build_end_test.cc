// Tests the end of a build: which resources are free at that moment, who still waits, what is kept,
// and what is logged.
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/server/build/build_manager_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

// The number of repetitions. Larger than the capacity of any queue.
constexpr int kMany = 200;

std::string Uuid(int i) { return absl::StrFormat("00000000-0000-4000-8000-%012d", i); }

// Calls `act` when the job ends, on the thread that ended it.
class EndWatch : public BuildObserver {
 public:
  EndWatch(std::shared_ptr<BuildJob> job, std::function<void()> act)
      : job_(std::move(job)), act_(std::move(act)) {}
  void OnBuildChanged() override {
    if (IsFinished(job_->Snapshot().state)) act_();
  }

 private:
  const std::shared_ptr<BuildJob> job_;
  const std::function<void()> act_;
};

class BuildEndTest : public BuildManagerFixture {
 protected:
  // A block of 2 × 3 numbers with `value` in row 1, column 2.
  absl::Status AddWith(const std::shared_ptr<BuildJob>& job, double value) {
    Matrix<double> block = UniformRows({.rows = 2, .cols = 3});
    block.row(1)[2] = value;
    return Await<absl::Status>(
        [&](auto done) { builds_->Add(job, {.rows = WireRows(block)}, done); });
  }
  absl::Status AddNan(const std::shared_ptr<BuildJob>& job) {
    return AddWith(job, std::numeric_limits<double>::quiet_NaN());
  }
};

TEST_F(BuildEndTest, WhoIsToldOfABrokenStreamFindsItsIdAndPlaceFree) {
  Close();
  options_.max_builds = 1;
  Open();
  std::shared_ptr<BuildJob> job = Begin(Spec(5))->job;
  for (int i = 0; i < kMany; ++i) {
    absl::StatusOr<BuildManager::Attachment> retry;
    const auto watch = std::make_shared<EndWatch>(job, [&] { retry = Begin(Spec(6 + i % 2)); });
    job->Subscribe(watch);
    EXPECT_EQ(AddNan(job).code(), Code::kInvalidArgument);
    ASSERT_TRUE(retry.ok()) << retry.status();
    ASSERT_FALSE(retry->attached);
    job = retry->job;
  }
}

// A client may see that a build has ended before any observer is notified, through an event that
// was already on its way.
TEST_F(BuildEndTest, WhoSeesABrokenStreamFindsItsIdFree) {
  for (int i = 0; i < kMany; ++i) {
    const std::shared_ptr<BuildJob> job = Begin(Spec(5))->job;
    std::thread breaks([&] { builds_->Abandon(job, absl::CancelledError("gone")); });
    while (!IsFinished(job->Snapshot().state)) std::this_thread::yield();
    const auto retry = Begin(Spec(6)).value();
    breaks.join();
    ASSERT_FALSE(retry.attached);
    builds_->Abandon(retry.job, absl::CancelledError("gone"));
  }
}

TEST_F(BuildEndTest, AStreamThatBreaksWhileItFinishesEitherEndsTheBuildOrDoesNot) {
  for (int i = 0; i < kMany; ++i) {
    const std::shared_ptr<BuildJob> job = Begin(Spec(), Uuid(i))->job;
    std::thread breaks([&] { builds_->Abandon(job, absl::CancelledError("gone")); });
    const absl::Status finished = builds_->Finish(job, 0);
    breaks.join();
    const BuildSnapshot end = AwaitState(job, BuildState::kDone);
    // If Finish was accepted, the build runs to its own end. Here that is an error, because no rows
    // were sent.
    EXPECT_EQ(end.error.code(), finished.ok() ? Code::kFailedPrecondition : Code::kCancelled);
  }
}

TEST_F(BuildEndTest, ABuildThatComputesOutlivesItsStream) {
  const std::shared_ptr<BuildJob> job = BeginComputing();
  builds_->Abandon(job, absl::CancelledError("gone"));
  gate_.Open();
  EXPECT_EQ(AwaitState(job, BuildState::kDone).state, BuildState::kDone);
}

TEST_F(BuildEndTest, CancelledBuildsLeaveNothingBehindALongOne) {
  const std::shared_ptr<BuildJob> computing = BeginComputing();
  for (int i = 0; i < kMany; ++i) {
    const std::string id = Uuid(100 + i);
    const auto queued = Begin(Spec(), id).value();
    ASSERT_TRUE(builds_->Finish(queued.job, 0).ok()) << i;
    ASSERT_EQ(builds_->Cancel({"letter", id})->state, BuildState::kCancelled) << i;
    ASSERT_EQ(queued.job.use_count(), 3);  // held here, known and remembered: not queued
  }
  gate_.Open();
  EXPECT_EQ(AwaitState(computing, BuildState::kDone).state, BuildState::kDone);
}

TEST_F(BuildEndTest, ABlockThatWaitsIsAnsweredWhenItsStreamBreaks) {
  gate_.Close();
  const std::shared_ptr<BuildJob> holding = Begin()->job;
  std::thread holds([&] { EXPECT_TRUE(Add(holding).ok()); });
  gate_.AwaitWaiting();  // holds the only ingest thread
  const Matrix<float> block = UniformFloatRows({.rows = 2, .cols = 3});
  for (int i = 0; i < kMany; ++i) {
    const std::shared_ptr<BuildJob> job = Begin(Spec(), Uuid(100 + i))->job;
    absl::Status taken;
    builds_->Add(job, {.rows = WireRows(block)},
                 [&](const absl::Status& status) { taken = status; });
    builds_->Abandon(job, absl::CancelledError("gone"));
    ASSERT_EQ(taken.code(), Code::kCancelled) << i;
  }
  gate_.Open();
  holds.join();
}

TEST_F(BuildEndTest, ABadRowIsNumberedInItsBlockAndInTheStream) {
  const std::shared_ptr<BuildJob> job = Begin()->job;
  ASSERT_TRUE(Add(job, 30).ok());
  const absl::Status bad = AddNan(job);
  const ErrorDetail detail = *DetailOf(bad);
  EXPECT_EQ(detail.field, "examples.dense.rows[1].columns[2]");
  EXPECT_EQ(detail.reason, "VALUE_NOT_FINITE");
  EXPECT_EQ(detail.metadata.at("row"), "1");
  EXPECT_EQ(detail.metadata.at("column"), "2");
  EXPECT_EQ(detail.metadata.at("stream_row"), "31");
  EXPECT_EQ(bad.message(),
            "examples.dense.rows[1].columns[2]: row 31 of the stream: expected a finite number, "
            "got nan");
}

TEST_F(BuildEndTest, TheLogSaysWhereTheInputIsWrongAndNeverWhatItHolds) {
  const std::shared_ptr<BuildJob> infinite = Begin()->job;
  EXPECT_FALSE(AddWith(infinite, std::numeric_limits<double>::infinity()).ok());
  EXPECT_THAT(log_.text(), HasSubstr("code=INVALID_ARGUMENT reason=VALUE_NOT_FINITE "
                                     "field=\"examples.dense.rows[1].columns[2]\"\n"));
  // The values are finite and too wide in range for the arithmetic of a build; the core's message
  // quotes the extreme values.
  const std::shared_ptr<BuildJob> wide = Begin(Spec(2))->job;
  ASSERT_TRUE(Add(wide, 10).ok());
  ASSERT_TRUE(AddWith(wide, 1.25e308).ok());
  ASSERT_TRUE(builds_->Finish(wide, 12).ok());
  AwaitState(wide, BuildState::kDone);
  const std::shared_ptr<BuildJob> lost = Begin(Spec(), Uuid(2))->job;
  EXPECT_EQ(builds_->Finish(lost, 987654).code(), Code::kDataLoss);
  Close();
  const std::string log = log_.text();
  EXPECT_THAT(log, HasSubstr("code=DATA_LOSS reason=ROW_COUNT_MISMATCH field=finish.row_count"));
  for (const char* secret : {"inf", "finite number", "e+30", "phimap/error-detail"}) {
    EXPECT_THAT(log, Not(HasSubstr(secret)));
  }
}

TEST_F(BuildEndTest, TheLogKeepsWhatTheServerSaysOfItself) {
  const std::shared_ptr<BuildJob> job = Begin()->job;
  builds_->Abandon(job, absl::InternalError("disk on fire"));
  EXPECT_THAT(log_.text(), HasSubstr("code=INTERNAL error=\"disk on fire\"\n"));
}

TEST_F(BuildEndTest, AttachingToAStoredBuildIsNoBuildAndTakesNoPlace) {
  const std::shared_ptr<BuildJob> job = Begin()->job;
  ASSERT_TRUE(Add(job).ok());
  ASSERT_TRUE(builds_->Finish(job, 40).ok());
  AwaitState(job, BuildState::kDone);
  Close(absl::Seconds(30));
  options_.max_builds = 1;
  Open();
  const auto open = Begin(Spec(), Uuid(2)).value();
  const auto stored = Begin().value();
  EXPECT_TRUE(stored.attached);
  EXPECT_EQ(stored.job->Snapshot().state, BuildState::kDone);
  EXPECT_EQ(Begin(Spec(6)).status().code(), Code::kAlreadyExists);
  EXPECT_EQ(builds_->List("").size(), 1);
  EXPECT_THAT(log_.text(), Not(HasSubstr("build_ended")));
  EXPECT_EQ(metrics_.build().Ended(absl::CancelledError()).Value(), 0);
}

TEST_F(BuildEndTest, ABuildWhoseVersionIsGoneIsForgotten) {
  for (int i = 1; i <= 3; ++i) {
    const std::shared_ptr<BuildJob> job = Begin(Spec(4 + i), Uuid(i))->job;
    ASSERT_TRUE(Add(job).ok());
    ASSERT_TRUE(builds_->Finish(job, 40).ok());
    EXPECT_EQ(AwaitState(job, BuildState::kDone).version->record.number, i);
  }
  const auto gone = [&](int i) {
    return absl::IsNotFound(builds_->Get({"letter", Uuid(i)}).status());
  };
  ASSERT_TRUE(store_->DeleteVersion("letter", 2).ok());
  builds_->VersionsGone("letter", 2);
  builds_->VersionsGone("digit", std::nullopt);
  EXPECT_FALSE(gone(1));
  EXPECT_TRUE(gone(2));
  EXPECT_FALSE(gone(3));
  EXPECT_FALSE(Begin(Spec(9), Uuid(2))->attached);  // id 2 is free
  ASSERT_TRUE(store_->DeleteMapping("letter").ok());
  builds_->VersionsGone("letter", std::nullopt);
  EXPECT_TRUE(gone(1));
  EXPECT_TRUE(gone(3));
}

// The version is deleted between its commit and the end of its build.
TEST_F(BuildEndTest, ABuildWhoseVersionIsGoneBeforeItsEndIsNotRemembered) {
  const std::shared_ptr<BuildJob> job = BeginComputing();
  // The deletion is announced while the build is publishing, before the build ends.
  std::atomic<bool> deleted{false};
  class PublishingWatch : public BuildObserver {
   public:
    PublishingWatch(std::shared_ptr<BuildJob> job, std::function<void()> act)
        : job_(std::move(job)), act_(std::move(act)) {}
    void OnBuildChanged() override {
      if (job_->Snapshot().state == BuildState::kPublishing) act_();
    }

   private:
    const std::shared_ptr<BuildJob> job_;
    const std::function<void()> act_;
  };
  const auto watch = std::make_shared<PublishingWatch>(job, [&] {
    builds_->VersionsGone("letter", 1);
    deleted = true;
  });
  job->Subscribe(watch);
  gate_.Open();
  AwaitState(job, BuildState::kDone);
  EXPECT_TRUE(deleted);
  // The store still has the record, so Get finds the build there; memory does not have it any more.
  EXPECT_EQ(builds_->Get({"letter", kUuid})->state, BuildState::kDone);
  EXPECT_TRUE(builds_->List("").empty());
}

}  // namespace
}  // namespace phimap::testing
