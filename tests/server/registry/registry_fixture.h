// A registry on a store in memory.
#ifndef PHIMAP_TESTS_SERVER_REGISTRY_REGISTRY_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_REGISTRY_REGISTRY_FIXTURE_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/plan/artifact.h"
#include "gtest/gtest.h"
#include "server/registry/version_registry.h"
#include "tests/server/registry/memory_store.h"
#include "tests/support/plans.h"

namespace phimap::testing {

inline std::string SmallArtifact() {
  Artifact artifact;
  artifact.plan = MakePlan({});
  return *EncodeArtifact(artifact);
}

// Returns the largest limit of memory under which `versions` small versions fit, and one more does
// not. While a version is loaded, its file counts, which is larger than the version in memory or
// smaller, as the machine's vectors are short or long.
inline int64_t LimitOf(int versions, const VersionHandle& one) {
  return versions * one.memory_bytes() + static_cast<int64_t>(SmallArtifact().size()) - 1;
}

// Receives the answer to an Acquire, and lets a test wait for it.
class Answer {
 public:
  VersionRegistry::Callback Callback() {
    return [this](absl::StatusOr<VersionHandle> version) {
      MutexLock lock(&mutex_);
      answer_ = std::move(version);
      came_.NotifyAll();
    };
  }
  bool here() {
    MutexLock lock(&mutex_);
    return answer_.has_value();
  }
  absl::StatusOr<VersionHandle> Await() {
    MutexLock lock(&mutex_);
    while (!answer_.has_value()) came_.Wait(&mutex_);
    return *answer_;
  }

 private:
  Mutex mutex_;
  CondVar came_;
  std::optional<absl::StatusOr<VersionHandle>> answer_ ABSL_GUARDED_BY(mutex_);
};

class RegistryFixture : public ::testing::Test {
 protected:
  void Start(VersionRegistry::Options options = {}) {
    registry_ = std::make_unique<VersionRegistry>(options, store_, metrics_.registry(), logger_);
    CatchUp();
  }
  void CatchUp() {
    const absl::Status caught_up = registry_->CatchUp();
    ASSERT_TRUE(caught_up.ok()) << caught_up;
  }

  // Acquires a version, and waits for the answer.
  absl::StatusOr<VersionHandle> Acquire(const std::string& reference) {
    Answer answer;
    registry_->Acquire(reference, answer.Callback());
    return answer.Await();
  }
  // The number of the version that `reference` names; 0 if there is none.
  int64_t NumberOf(const std::string& reference) { return NumberIn(Acquire(reference)); }
  static int64_t NumberIn(const absl::StatusOr<VersionHandle>& version) {
    if (version.ok()) return version->record().number;
    EXPECT_TRUE(absl::IsNotFound(version.status())) << version.status();
    return 0;
  }

  MemoryStore store_;
  Metrics metrics_;
  Logger logger_{LogLevel::kOff};
  std::unique_ptr<VersionRegistry> registry_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_REGISTRY_REGISTRY_FIXTURE_H_
