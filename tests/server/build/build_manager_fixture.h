// A build manager on a real store in a temporary folder, with the test's own clock, gate and log.
#ifndef PHIMAP_TESTS_SERVER_BUILD_BUILD_MANAGER_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_BUILD_BUILD_MANAGER_FIXTURE_H_

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/build/build_manager.h"
#include "server/store/sqlite/sqlite_store.h"
#include "tests/server/support/gate.h"
#include "tests/server/support/temporary_folder.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {

inline constexpr char kUuid[] = "00000000-0000-4000-8000-000000000001";

// Lets a test wait until a build is in a state.
class StateWatch : public BuildObserver {
 public:
  explicit StateWatch(std::shared_ptr<BuildJob> job) : job_(std::move(job)) {}
  void OnBuildChanged() override {
    MutexLock lock(&mutex_);
    changed_.NotifyAll();
  }
  BuildSnapshot Await(BuildState state) {
    MutexLock lock(&mutex_);
    while (job_->Snapshot().state < state) changed_.Wait(&mutex_);
    return job_->Snapshot();
  }

 private:
  const std::shared_ptr<BuildJob> job_;
  Mutex mutex_;
  CondVar changed_;
};

// Collects the lines that were logged.
class LogLines {
 public:
  void Write(absl::string_view line) {
    MutexLock lock(&mutex_);
    absl::StrAppend(&text_, line);
  }
  std::string text() const {
    MutexLock lock(&mutex_);
    return text_;
  }

 private:
  mutable Mutex mutex_;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

class BuildManagerFixture : public ::testing::Test {
 protected:
  BuildManagerFixture() {
    options_.quantum = WorkQuantum::Clock::duration::zero();
    Open();
  }
  ~BuildManagerFixture() override { Close(); }

  void Open() {
    store_ = *SqliteStore::Open({.data_dir = folder_.path()}, PosixFileSystem());
    registry_ = std::make_unique<VersionRegistry>(VersionRegistry::Options(), *store_,
                                                  metrics_.registry(), logger_);
    store_pool_ = std::make_unique<TaskPool>("store calls", 1, 64);
    options_.now = [this] { return now_.load(); };
    options_.yield = [this] { gate_.Wait(); };
    builds_ = std::make_unique<BuildManager>(options_, *store_, *registry_, *store_pool_,
                                             metrics_.build(), logger_);
  }

  // Drains and destroys the manager, then closes the store. With a drain time of 0, unfinished
  // builds are cancelled.
  void Close(absl::Duration drain = absl::ZeroDuration()) {
    if (builds_ == nullptr) return;
    if (drain == absl::ZeroDuration()) {
      builds_->Drain(BuildManager::Clock::now());
      gate_.Open();
    } else {
      builds_->Drain(BuildManager::Clock::now() + absl::ToChronoNanoseconds(drain));
    }
    store_pool_.reset();
    builds_.reset();
    registry_.reset();
    store_.reset();
  }

  void Reopen() {
    Close();
    Open();
  }

  static BuildSpec Spec(int64_t landmarks = 5) {
    BuildSpec spec{.mapping = *MappingSpec::Parse(absl::StrCat("f2(landmarks=", landmarks, ")")),
                   .kernel = *KernelExpression::Parse("rbf(gamma=0.5)")};
    return spec;
  }

  absl::StatusOr<BuildManager::Attachment> Begin(const BuildSpec& spec = Spec(),
                                                 const std::string& id = kUuid) {
    return Await<absl::StatusOr<BuildManager::Attachment>>([&](auto done) {
      builds_->Begin({"letter", id}, spec, done);
    });
  }

  absl::Status Add(const std::shared_ptr<BuildJob>& job, int64_t rows = 40) {
    const Matrix<float> block = UniformFloatRows({.rows = rows, .cols = 3});
    return Await<absl::Status>(
        [&](auto done) { builds_->Add(job, {.rows = WireRows(block)}, done); });
  }

  // Begins a build that the gate stops in the middle of its computation.
  std::shared_ptr<BuildJob> BeginComputing() {
    std::shared_ptr<BuildJob> job = Begin()->job;
    EXPECT_TRUE(Add(job).ok());
    gate_.Close();
    EXPECT_TRUE(builds_->Finish(job, 40).ok());
    gate_.AwaitWaiting();
    EXPECT_EQ(job->Snapshot().state, BuildState::kComputing);
    return job;
  }

  BuildSnapshot AwaitState(const std::shared_ptr<BuildJob>& job, BuildState state) {
    const auto watch = std::make_shared<StateWatch>(job);
    job->Subscribe(watch);
    return watch->Await(state);
  }

  // Calls `start` with a callback, and returns the result that the callback receives.
  template <typename Result, typename Start>
  static Result Await(const Start& start) {
    Mutex mutex;
    CondVar came;
    std::optional<Result> result;
    start([&](Result r) {
      MutexLock lock(&mutex);
      result = std::move(r);
      came.NotifyAll();
    });
    MutexLock lock(&mutex);
    while (!result.has_value()) came.Wait(&mutex);
    return *std::move(result);
  }

  bool NothingStored() {
    return store_->ListMappings("", 10)->empty() && folder_.CountBlobs() == 0;
  }

  TemporaryFolder folder_;
  Gate gate_{/*open=*/true};
  std::atomic<BuildManager::Clock::time_point> now_{BuildManager::Clock::time_point()};
  Metrics metrics_;
  LogLines log_;
  Logger logger_{LogLevel::kInfo, [this](absl::string_view line) { log_.Write(line); }};
  BuildManager::Options options_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<VersionRegistry> registry_;
  std::unique_ptr<TaskPool> store_pool_;
  std::unique_ptr<BuildManager> builds_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_BUILD_BUILD_MANAGER_FIXTURE_H_
