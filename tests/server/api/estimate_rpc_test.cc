#include <string>

#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class EstimateRpcTest : public ServerFixture {
 protected:
  EstimateRpcTest() { Start(); }

  // The estimate of a build of `rows` rows of three columns.
  v1::EstimateBuildResponse Estimate(const std::string& mapping, int64_t rows) {
    v1::EstimateBuildRequest request;
    *request.mutable_spec() = Spec("letter", mapping);
    request.set_rows(rows);
    request.set_columns(3);
    return Answer(&MappingStub::EstimateBuild, request);
  }
};

TEST_F(EstimateRpcTest, ForecastsTheArtifactOfARealBuild) {
  const v1::EstimateBuildResponse estimate = Estimate("f2(landmarks=30)", 400);
  std::optional<v1::Version> version;
  ASSERT_TRUE(Build(Spec("letter", "f2(landmarks=30)"), 400, &version).ok());
  const double bytes = static_cast<double>(version->artifact_size_bytes());
  EXPECT_NEAR(static_cast<double>(estimate.artifact_size_bytes()), bytes, bytes / 3);
  EXPECT_GT(estimate.peak_memory_bytes(), 400 * 3 * 8);
  EXPECT_GT(estimate.reserved_memory_bytes(), estimate.peak_memory_bytes());
  EXPECT_EQ(estimate.memory_limit_bytes(), options_.build_memory_bytes);
  EXPECT_GT(estimate.flops(), 30 * 30 * 30);
  EXPECT_GT(estimate.seconds(), 0);
  EXPECT_LT(estimate.seconds(), 60);
}

TEST_F(EstimateRpcTest, BuildsNothing) {
  Estimate("f2(landmarks=30)", 400);
  ExpectNothingStored();
}

// A Build reserves exactly as much memory as the estimate says, so it is refused if the limit is
// one byte lower.
TEST_F(EstimateRpcTest, TheReservationIsWhatABuildAsksFor) {
  const v1::EstimateBuildResponse estimate = Estimate("f2(landmarks=5)", 40);
  Stop();
  options_.build_memory_bytes = estimate.reserved_memory_bytes() - 1;
  Start();
  EXPECT_THAT(Build(Spec()), IsError(Code::RESOURCE_EXHAUSTED, "BUILD_MEMORY_FULL"));
  Stop();
  options_.build_memory_bytes = estimate.reserved_memory_bytes();
  Start();
  EXPECT_TRUE(Build(Spec()).ok());
}

}  // namespace
}  // namespace phimap::testing
