// Compares kernel expressions and build costs with the records of earlier releases: a kernel's
// canonical text, proven properties, compiled program, values and rounding bounds, and the
// forecasts of build costs.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/corpus/corpus_builds.h"
#include "tests/corpus/corpus_inputs.h"
#include "tests/corpus/kernel_record.h"
#include "tests/support/vector_targets.h"

namespace phimap {
namespace {

using testing::CorpusBuild;
using testing::CorpusFolders;
using testing::FieldsOf;
using testing::LinesOf;
using testing::ReadCorpusFile;

// Returns the records in `text` by their kernel.
std::map<std::string, std::string> RecordsIn(const std::string& text) {
  std::map<std::string, std::string> records;
  std::string kernel;
  for (const std::string& line : LinesOf(text)) {
    if (absl::StartsWith(line, "kernel\t")) kernel = FieldsOf(line)[1];
    absl::StrAppend(&records[kernel], line, "\n");
  }
  return records;
}

TEST(KernelCorpusTest, EveryKernelIsWhatItsReleaseKnewOfIt) {
  if (!testing::SupportedVectorTargets().front().fused) {
    GTEST_SKIP() << "no target with fused multiply-add, so all bits differ";
  }
  for (const std::string& folder : CorpusFolders()) {
    const auto records = RecordsIn(ReadCorpusFile(folder + "/kernels.txt"));
    EXPECT_GE(records.size(), 50u);
    const testing::CorpusInputs inputs = testing::ReadCorpusInputs(folder);
    for (const auto& [kernel, record] : records) {
      EXPECT_EQ(testing::KernelRecord(kernel, inputs), record) << folder;
    }
  }
}

// Since 0.2 the spectrum is measured on held-out rows. Fewer values of a remote kernel are kept for
// it, and where the pool has fewer rows than are held out, it has more rows.
bool HasAnotherSpectrum(const CorpusBuild& build) {
  return build.stream == "gram" || build.name == "-f2-pool" ||
         (absl::StartsWith(build.kernel, "service(") && absl::StartsWith(build.mapping, "f2"));
}

TEST(KernelCorpusTest, EveryBuildCostsWhatItsReleaseForecast) {
  for (const std::string& folder : CorpusFolders()) {
    const std::vector<std::string> builds = LinesOf(ReadCorpusFile(folder + "/builds.txt"));
    const std::vector<std::string> costs = LinesOf(ReadCorpusFile(folder + "/costs.txt"));
    ASSERT_EQ(builds.size(), costs.size());
    for (size_t i = 0; i < builds.size(); ++i) {
      const CorpusBuild build = CorpusBuild::FromText(builds[i]);
      const std::string cost = absl::StrCat(build.name, " ", testing::CostRecord(build.Spec()));
      if (!HasAnotherSpectrum(build)) {
        EXPECT_EQ(cost, costs[i] + "\n");
        continue;
      }
      // The size of the artifact is the seventh field.
      const std::vector<std::string> now = absl::StrSplit(cost, ' ');
      const std::vector<std::string> before = absl::StrSplit(costs[i], ' ');
      ASSERT_EQ(now.size(), before.size());
      EXPECT_EQ(now[0], before[0]);
      EXPECT_EQ(now[6], before[6]) << cost;
    }
  }
}

}  // namespace
}  // namespace phimap
