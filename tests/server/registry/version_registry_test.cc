#include "server/registry/version_registry.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/support/gate.h"
#include "tests/support/plans.h"

namespace phimap {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

// A store that holds versions in memory and counts reads.
class MemoryStore : public Store {
 public:
  void Put(const std::string& mapping, int64_t number, const std::string& artifact) {
    MutexLock lock(&mutex_);
    VersionRecord& record = versions_[mapping][number];
    record.mapping = mapping;
    record.number = number;
    record.digest = absl::StrCat(mapping, number);
    record.artifact_size_bytes = static_cast<int64_t>(artifact.size());
    artifacts_[record.digest] = artifact;
  }
  int reads() const {
    MutexLock lock(&mutex_);
    return reads_;
  }

  absl::StatusOr<VersionRecord> GetVersion(absl::string_view mapping,
                                           std::optional<int64_t> number) override {
    gate.Wait();
    MutexLock lock(&mutex_);
    const auto versions = versions_.find(std::string(mapping));
    if (versions == versions_.end()) return absl::NotFoundError("no such mapping");
    if (!number.has_value()) return versions->second.rbegin()->second;
    const auto version = versions->second.find(*number);
    if (version == versions->second.end()) return absl::NotFoundError("no such version");
    return version->second;
  }
  absl::StatusOr<std::string> ReadArtifact(absl::string_view digest) override {
    MutexLock lock(&mutex_);
    ++reads_;
    return artifacts_[std::string(digest)];
  }

  absl::StatusOr<VersionRecord> Publish(const PublishRequest&, absl::string_view) override {
    return absl::UnimplementedError("");
  }
  absl::Status RecordFailedBuild(const BuildRecord&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<BuildRecord> GetBuild(absl::string_view, absl::string_view) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<MappingRecord> GetMapping(absl::string_view) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::vector<MappingRecord>> ListMappings(absl::string_view, int) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::vector<VersionRecord>> ListVersions(absl::string_view, std::optional<int64_t>,
                                                          int) override {
    return absl::UnimplementedError("");
  }

  testing::Gate gate{/*open=*/true};

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::map<int64_t, VersionRecord>> versions_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> artifacts_ ABSL_GUARDED_BY(mutex_);
  int reads_ ABSL_GUARDED_BY(mutex_) = 0;
};

std::string SmallArtifact() {
  Artifact artifact;
  artifact.plan = testing::MakePlan({});
  return *EncodeArtifact(artifact);
}

class VersionRegistryTest : public ::testing::Test {
 protected:
  void Start(VersionRegistry::Options options = {}) {
    registry_ = std::make_unique<VersionRegistry>(options, store_, metrics_.registry(), logger_);
  }

  // Asks and waits for the answer.
  absl::StatusOr<VersionHandle> Acquire(const std::string& reference) {
    Mutex mutex;
    CondVar came;
    std::optional<absl::StatusOr<VersionHandle>> answer;
    registry_->Acquire(reference, [&](absl::StatusOr<VersionHandle> version) {
      MutexLock lock(&mutex);
      answer = std::move(version);
      came.NotifyAll();
    });
    MutexLock lock(&mutex);
    while (!answer.has_value()) came.Wait(&mutex);
    return *std::move(answer);
  }

  MemoryStore store_;
  Metrics metrics_;
  Logger logger_{LogLevel::kOff};
  std::unique_ptr<VersionRegistry> registry_;
};

TEST_F(VersionRegistryTest, LoadsOnceAndThenAnswersOnTheCallingThread) {
  store_.Put("a", 1, SmallArtifact());
  Start();
  ASSERT_TRUE(Acquire("a").ok());
  store_.gate.Close();  // from here on the store would block
  const absl::StatusOr<VersionHandle> again = Acquire("a");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->record().number, 1);
  EXPECT_TRUE(Acquire("a@1").ok());
  EXPECT_EQ(store_.reads(), 1);
  store_.gate.Open();
}

TEST_F(VersionRegistryTest, RequestsThatComeMeanwhileShareOneLoad) {
  store_.Put("a", 1, SmallArtifact());
  store_.gate.Close();
  Start();
  std::atomic<int> served{0};
  for (int i = 0; i < 20; ++i) {
    registry_->Acquire("a@1", [&](absl::StatusOr<VersionHandle> v) { served += v.ok() ? 1 : 0; });
  }
  store_.gate.Open();
  registry_.reset();  // runs what was asked for
  EXPECT_EQ(served, 20);
  EXPECT_EQ(store_.reads(), 1);
}

TEST_F(VersionRegistryTest, PublishingMovesTheBareNameAndNotThoseThatHoldAVersion) {
  store_.Put("a", 1, SmallArtifact());
  Start();
  const absl::StatusOr<VersionHandle> first = Acquire("a");
  store_.Put("a", 2, SmallArtifact());
  EXPECT_EQ(Acquire("a")->record().number, 1);  // not announced yet
  VersionRecord published;
  published.mapping = std::string("a");  // gcc 12 warns about assigning a literal here
  published.number = 2;
  registry_->Published(published);
  EXPECT_EQ(Acquire("a")->record().number, 2);
  EXPECT_EQ(first->record().number, 1);
  published.number = 1;  // late news change nothing
  registry_->Published(published);
  EXPECT_EQ(Acquire("a")->record().number, 2);
}

TEST_F(VersionRegistryTest, ADamagedVersionIsDataLossAndOthersServeOn) {
  store_.Put("good", 1, SmallArtifact());
  std::string damaged = SmallArtifact();
  damaged[damaged.size() / 2] ^= 1;
  store_.Put("bad", 1, damaged);
  store_.Put("short", 1, SmallArtifact().substr(0, 100));
  Start();
  ASSERT_TRUE(Acquire("good").ok());
  EXPECT_EQ(Acquire("bad").status().code(), Code::kDataLoss);
  EXPECT_EQ(Acquire("short").status().code(), Code::kDataLoss);
  EXPECT_TRUE(Acquire("good").ok());
  EXPECT_EQ(metrics_.registry().load_errors->Value(), 2);
}

TEST_F(VersionRegistryTest, UnknownNamesNumbersAndAliasesAreNotFound) {
  store_.Put("a", 1, SmallArtifact());
  Start();
  EXPECT_EQ(Acquire("b").status().code(), Code::kNotFound);
  EXPECT_EQ(Acquire("a@2").status().code(), Code::kNotFound);
  const absl::Status alias = Acquire("a@prod").status();
  EXPECT_EQ(alias.code(), Code::kNotFound);
  EXPECT_THAT(std::string(alias.message()), HasSubstr("no alias \"prod\""));
  EXPECT_EQ(Acquire("A").status().code(), Code::kInvalidArgument);
}

TEST_F(VersionRegistryTest, MemoryStaysUnderTheLimit) {
  const std::string artifact = SmallArtifact();
  for (int i = 1; i <= 5; ++i) store_.Put("a", i, artifact);
  Start();
  const int64_t one = (*Acquire("a@1")).engine().memory_bytes();
  VersionRegistry::Options options;
  options.max_live_bytes = std::max<int64_t>(2 * one, artifact.size()) + one / 2;
  Start(options);
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(Acquire(absl::StrCat("a@", i)).ok());
    EXPECT_LE(metrics_.registry().live_bytes->Value(), options.max_live_bytes);
  }
  EXPECT_GE(metrics_.registry().evictions->Value(), 1);
}

TEST_F(VersionRegistryTest, AVersionThatDoesNotFitIsRefusedWithTheLimit) {
  store_.Put("a", 1, SmallArtifact());
  Start({.max_live_bytes = 10});
  const absl::Status refused = Acquire("a").status();
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("limit of 10"));
  EXPECT_EQ(DetailOf(refused)->retry_delay_ms, 0);
}

TEST_F(VersionRegistryTest, WaitersAndLoadsAreBounded) {
  store_.Put("a", 1, SmallArtifact());
  store_.gate.Close();
  Start({.max_queued_loads = 1, .max_waiters = 2});
  std::vector<Code> codes;
  const auto ask = [&](const char* reference) {
    registry_->Acquire(reference, [&codes](absl::StatusOr<VersionHandle> version) {
      codes.push_back(version.status().code());
    });
  };
  ask("a@1");
  store_.gate.AwaitWaiting();  // the loader is busy
  ask("a@1");
  ask("a@1");  // the third waiter
  ask("a@2");
  ask("a@3");  // the second queued load
  EXPECT_THAT(codes, ::testing::ElementsAre(Code::kResourceExhausted, Code::kResourceExhausted));
  store_.gate.Open();
  registry_.reset();
}

}  // namespace
}  // namespace phimap
