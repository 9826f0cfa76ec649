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

namespace phimap::testing {
namespace {

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
  if (!SupportedVectorTargets().front().fused) {
    GTEST_SKIP() << "no target with fused multiply-add, so all bits differ";
  }
  for (const std::string& folder : CorpusFolders()) {
    const auto records = RecordsIn(ReadCorpusFile(folder + "/kernels.txt"));
    EXPECT_GE(records.size(), 50u);
    const CorpusInputs inputs = ReadCorpusInputs(folder);
    for (const auto& [kernel, record] : records) {
      EXPECT_EQ(KernelRecord(kernel, inputs), record) << folder;
    }
  }
}

// Returns the numbers of a line of costs, after its name: flops of products, flops of factors,
// elements; bytes of the sample, of the computation and of the artifact; four shares of the time;
// all bytes.
std::vector<double> NumbersOf(const std::string& line) {
  std::vector<double> numbers;
  const std::vector<std::string> fields = absl::StrSplit(line, ' ');
  for (size_t i = 1; i < fields.size(); ++i) numbers.push_back(std::stod(fields[i]));
  return numbers;
}

// Later releases measure more: after 0.1 a build compares Gram matrices, and makes a reference for
// tests of drift. So nothing costs less than its release forecast, except that a spectrum of
// held-out rows needs fewer values of a remote kernel.
TEST(KernelCorpusTest, NoBuildCostsLessThanItsReleaseForecast) {
  for (const std::string& folder : CorpusFolders()) {
    const std::vector<std::string> builds = LinesOf(ReadCorpusFile(folder + "/builds.txt"));
    const std::vector<std::string> costs = LinesOf(ReadCorpusFile(folder + "/costs.txt"));
    ASSERT_EQ(builds.size(), costs.size());
    for (size_t i = 0; i < builds.size(); ++i) {
      const CorpusBuild build = CorpusBuild::FromText(builds[i]);
      const bool is_remote = build.stream == "gram" || absl::StartsWith(build.kernel, "service(");
      const std::string cost = absl::StrCat(build.name, " ", CostRecord(build.Spec()));
      const std::vector<double> now = NumbersOf(cost), before = NumbersOf(costs[i]);
      ASSERT_EQ(now.size(), 11u) << cost;
      ASSERT_EQ(before.size(), 11u) << costs[i];
      for (size_t k = 0; k < 6; ++k) {
        if (is_remote && k != 5) continue;
        EXPECT_GE(now[k], before[k]) << k << ": " << cost << costs[i];
      }
      if (is_remote) continue;
      EXPECT_EQ(now[3], before[3]) << cost;  // the sample is the same
    }
  }
}

}  // namespace
}  // namespace phimap::testing
