// When an allocation of 1 MiB or more fails, the work that needs it is refused, and the process
// keeps running.
//
// This program's operator new makes one large allocation fail. The work is repeated, with the first
// large allocation failing, then the second, and so on, until it completes without a failure.
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/plan/artifact.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "server/build/build_error.h"
#include "server/build/stored_build.h"
#include "server/build/version_reader.h"
#include "server/learning/evaluation_job.h"
#include "server/mapping/artifact_import.h"
#include "server/store/sha256.h"
#include "tests/server/build/build_manager_fixture.h"
#include "tests/support/matchers.h"

namespace {

constexpr size_t kLargeBytes = size_t{1} << 20;

// Allocations of at least this size count as large.
std::atomic<size_t> large_bytes{kLargeBytes};
// A countdown: the large allocation that brings it from 1 to 0 fails. Below 1, none fails.
std::atomic<int> until_failure{0};
std::atomic<bool> failed{false};

void* Checked(size_t size, void* (*allocate)(size_t size, size_t alignment), size_t alignment) {
  if (size >= large_bytes && until_failure.load() > 0 && until_failure.fetch_sub(1) == 1) {
    failed = true;
    throw std::bad_alloc();
  }
  void* const memory = allocate(size > 0 ? size : 1, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* Plain(size_t size, size_t) { return std::malloc(size); }
void* Aligned(size_t size, size_t alignment) {
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

}  // namespace

void* operator new(size_t size) { return Checked(size, Plain, 1); }
void* operator new[](size_t size) { return Checked(size, Plain, 1); }
void* operator new(size_t size, std::align_val_t alignment) {
  return Checked(size, Aligned, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return Checked(size, Aligned, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return std::malloc(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return std::malloc(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace phimap::testing {
namespace {

constexpr int64_t kColumns = 64;
constexpr int64_t kRows = 4096;

class AllocationFailureTest : public BuildManagerFixture {
 protected:
  AllocationFailureTest() {
    Close();
    options_.compute_threads = 2;
    Open();
  }
  ~AllocationFailureTest() override {
    until_failure = 0;
    large_bytes = kLargeBytes;
  }

  // Repeats `work`, failing its first large allocation, then its second, and so on.
  void FailEach(const std::function<absl::Status()>& work) {
    int failures = 0;
    while (true) {
      SCOPED_TRACE(failures + 1);
      failed = false;
      until_failure = failures + 1;
      const absl::Status status = work();
      until_failure = 0;
      EXPECT_EQ(metrics_.build().memory_bytes->Value(), 0);
      if (!failed) {
        EXPECT_TRUE(status.ok()) << status;
        break;
      }
      ++failures;
      EXPECT_THAT(status, IsError(StatusCode::kResourceExhausted, "MACHINE_MEMORY_FULL"));
    }
    std::cout << failures << " allocations failed\n";
    EXPECT_GT(failures, 0);
  }

  static BuildSpec SpecOf(const std::string& mapping, const std::string& kernel) {
    BuildSpec spec{.mapping = *MappingSpec::Parse(mapping),
                   .kernel = *KernelExpression::Parse(kernel)};
    return spec;
  }
  // A spec whose artifact takes over 2 MiB, and whose certificate takes over 64 KiB.
  static BuildSpec LargeArtifact() {
    return SpecOf("random_projection(dimensions=8192)", "linear()");
  }

  absl::Status BuildOnce(const BuildSpec& spec, const std::string& id) {
    absl::StatusOr<BuildManager::Attachment> begun = Begin(spec, id);
    if (!begun.ok()) return begun.status();
    if (begun->attached) return AwaitState(begun->job, BuildState::kDone).error;
    const absl::Status added = Await<absl::Status>(
        [&](auto done) { builds_->Add(begun->job, {.rows = WireRows(rows_)}, done); });
    if (!added.ok()) return added;
    const absl::Status finished = builds_->Finish(begun->job, kRows);
    if (!finished.ok()) return finished;
    return AwaitState(begun->job, BuildState::kDone).error;
  }
  void MustBuild(const BuildSpec& spec) {
    const absl::Status built = BuildOnce(spec, kUuid);
    ASSERT_TRUE(built.ok()) << built;
  }

  const Matrix<float> rows_ = UniformFloatRows({.rows = kRows, .cols = kColumns});
};

struct Mapping {
  const char* mapping;
  const char* kernel;
};

class BuildFailureTest : public AllocationFailureTest,
                         public ::testing::WithParamInterface<Mapping> {};

TEST_P(BuildFailureTest, ABuildIsRefused) {
  const BuildSpec spec = SpecOf(GetParam().mapping, GetParam().kernel);
  FailEach([&] { return BuildOnce(spec, kUuid); });
}

INSTANTIATE_TEST_SUITE_P(
    Mappings, BuildFailureTest,
    ::testing::Values(Mapping{"f1(landmarks=600)", "rbf(gamma=scale)"},
                      Mapping{"f2(landmarks=400)", "rbf(gamma=median)"},
                      Mapping{"f2(landmarks=400, policy=rpcholesky)", "laplacian(gamma=0.01)"},
                      Mapping{"f3(landmarks=400, dimensions=400)", "rbf(gamma=0.01)"},
                      Mapping{"kpca(landmarks=400, dimensions=20)", "rbf(gamma=0.01)"},
                      Mapping{"fourier(dimensions=4096)", "rbf(gamma=0.01)"},
                      Mapping{"random_projection(dimensions=8192)", "linear()"}));

// Reading a stored build allocates much less than the work of the other tests, so 64 KiB already
// counts as large here.
TEST_F(AllocationFailureTest, AStoredBuildThatIsRepeatedIsRefused) {
  MustBuild(LargeArtifact());
  large_bytes = size_t{64} << 10;
  FailEach([&] {
    Reopen();
    return Begin(LargeArtifact()).status();
  });
}

TEST_F(AllocationFailureTest, AStoredBuildThatIsLookedUpIsRefused) {
  MustBuild(LargeArtifact());
  large_bytes = size_t{64} << 10;
  FailEach([&] {
    Reopen();
    return builds_->Get({"letter", kUuid}).status();
  });
}

TEST_F(AllocationFailureTest, AVersionThatIsLoadedIsRefused) {
  MustBuild(LargeArtifact());
  FailEach([&] {
    return Await<absl::StatusOr<VersionHandle>>(
               [&](auto done) { registry_->Acquire("letter@1", done); })
        .status();
  });
}

TEST_F(AllocationFailureTest, AnImportIsRefused) {
  MustBuild(LargeArtifact());
  const std::string artifact = *store_->ReadArtifact(store_->GetVersion("letter", 1)->digest);
  FailEach([&]() -> absl::Status {
    // Handles bad_alloc the way the Import call does on its import thread.
    try {
      ArtifactImport import("copy", builds_->memory());
      for (size_t at = 0; at < artifact.size(); at += 65536) {
        const absl::Status taken = import.Append(artifact.substr(at, 65536));
        if (!taken.ok()) return taken;
      }
      return import.Finish(Sha256Hex(artifact), *store_, *registry_, ChangeOrigin()).status();
    } catch (const std::bad_alloc&) {
      return OutOfMemory();
    }
  });
}

class EvaluationFailureTest : public AllocationFailureTest,
                              public ::testing::WithParamInterface<const char*> {};

TEST_P(EvaluationFailureTest, AnEvaluationIsRefused) {
  MustBuild(SpecOf("f2(landmarks=400)", "rbf(gamma=0.01)"));
  const absl::StatusOr<VersionHandle> version = Await<absl::StatusOr<VersionHandle>>(
      [&](auto done) { registry_->Acquire("letter@1", done); });
  ASSERT_TRUE(version.ok());
  EvaluationSpec spec{.learner = *LearnerSpec::Parse(GetParam())};
  FailEach([&] {
    EvaluationJob job(*version, spec, builds_->memory());
    absl::Status status = job.Add(
        WireRows(rows_), [](int64_t i) { return i % 2 == 0 ? "even" : "odd"; },
        [] { return absl::OkStatus(); });
    if (status.ok()) {
      status = job.Run(*store_, [](int, double) { return absl::OkStatus(); }).status();
    }
    // The evaluation's memory must be released before the job is destroyed, because the job lives
    // as long as a client keeps its stream open.
    EXPECT_EQ(metrics_.build().memory_bytes->Value(), 0);
    return status;
  });
}

INSTANTIATE_TEST_SUITE_P(Learners, EvaluationFailureTest,
                         ::testing::Values("perceptron()", "linear_svm()",
                                           "kernel_sgd(strategy=stored_features)",
                                           "kernel_sgd(strategy=gram)", "kernel_svm()"));

}  // namespace
}  // namespace phimap::testing
