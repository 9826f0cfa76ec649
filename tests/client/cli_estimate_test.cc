#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/views/views.h"
#include "tests/support/matchers.h"
#include "tests/support/text_proto.h"

namespace phimap::cli {
namespace {

v1::EstimateBuildResponse Estimate() {
  return testing::Parsed<v1::EstimateBuildResponse>(
      "peak_memory_bytes: 52428800 reserved_memory_bytes: 62914560 memory_limit_bytes: 4294967296 "
      "artifact_size_bytes: 2097152 flops: 1.234e10 seconds: 0.31");
}

TEST(EstimateViewTest, DrawsEachNumberWithWhatItMeans) {
  EXPECT_EQ(
      RenderEstimate(20'000, 16, Estimate(), 80),
      "a build of 20,000 rows of 16 columns would take\n"
      "  memory    50.0 MiB      at its peak; reserves 60.0 MiB of the 4.0 GiB for all builds\n"
      "  artifact  2.0 MiB       stored\n"
      "  flops     1.23e+10      additions and multiplications of matrices\n"
      "  time      0.31 s        of an idle core of the server, within a factor of 3\n");
}

TEST(EstimateViewTest, WarnsOfABuildThatWouldBeRefused) {
  v1::EstimateBuildResponse estimate = Estimate();
  estimate.set_memory_limit_bytes(59 << 20);
  EXPECT_THAT(RenderEstimate(20'000, 16, estimate, 80),
              HasSubstr("  WARNING: the server would refuse it"));
}

}  // namespace
}  // namespace phimap::cli
