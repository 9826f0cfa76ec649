#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/views/views.h"

namespace phimap::cli {
namespace {

using ::testing::HasSubstr;

v1::EstimateBuildResponse Estimate() {
  v1::EstimateBuildResponse estimate;
  estimate.set_peak_memory_bytes(50 << 20);
  estimate.set_reserved_memory_bytes(60 << 20);
  estimate.set_memory_limit_bytes(int64_t{4} << 30);
  estimate.set_artifact_size_bytes(2 << 20);
  estimate.set_flops(1.234e10);
  estimate.set_seconds(0.31);
  return estimate;
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
