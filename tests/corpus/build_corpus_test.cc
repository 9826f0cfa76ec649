// Tests that the specs, seeds and streams of earlier releases still build artifacts with the same
// bytes.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/digest/sha256.h"
#include "core/linalg/blas.h"
#include "tests/corpus/corpus_builds.h"
#include "tests/corpus/corpus_inputs.h"
#include "tests/support/vector_targets.h"

namespace phimap {
namespace {

using testing::CorpusBuild;
using testing::CorpusFolders;
using testing::CorpusInputs;

bool HasFusedTarget() {
  for (const testing::VectorTarget& target : testing::SupportedVectorTargets()) {
    if (target.fused) return true;
  }
  return false;
}

TEST(BuildCorpusTest, EqualSpecsSeedsAndStreamsGiveTheBytesOfTheirRelease) {
  if (!HasFusedTarget()) GTEST_SKIP() << "no target with fused multiply-add, so all bits differ";
  ASSERT_EQ(BlasCoreName(), testing::kCorpusBlasCore)
      << "OPENBLAS_CORETYPE must be " << testing::kCorpusBlasCore << ", as ctest sets it";
  UseOneBlasThread();
  int64_t builds = 0;
  for (const std::string& folder : CorpusFolders()) {
    const CorpusInputs inputs = testing::ReadCorpusInputs(folder);
    for (const std::string& line :
         testing::LinesOf(testing::ReadCorpusFile(folder + "/builds.txt"))) {
      SCOPED_TRACE(line);
      ++builds;
      const CorpusBuild build = CorpusBuild::FromText(line);
      const absl::StatusOr<BuiltVersion> built = BuildOfCorpus(build, inputs);
      ASSERT_TRUE(built.ok()) << built.status();
      Sha256 hash;
      hash.Update(built->bytes);
      EXPECT_EQ(hash.Hex(), build.digest);
      const std::string stored = folder + "/" + build.name + ".phimap";
      if (!std::filesystem::exists(stored)) continue;
      EXPECT_TRUE(testing::ReadCorpusFile(stored) == built->bytes);
    }
  }
  EXPECT_GE(builds, 60);
}

}  // namespace
}  // namespace phimap
