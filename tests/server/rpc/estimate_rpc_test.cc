#include <string>

#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {
namespace {

using ::testing::HasSubstr;
using Code = grpc::StatusCode;

class EstimateRpcTest : public ServerFixture {
 protected:
  EstimateRpcTest() { Start(); }

  static v1::EstimateBuildRequest Question(const std::string& mapping, int64_t rows,
                                           int32_t columns) {
    v1::EstimateBuildRequest request;
    *request.mutable_spec() = Spec("letter", mapping);
    request.set_rows(rows);
    request.set_columns(columns);
    return request;
  }
  grpc::Status Estimate(const v1::EstimateBuildRequest& request,
                        v1::EstimateBuildResponse* response) {
    grpc::ClientContext context;
    return mappings_->EstimateBuild(&context, request, response);
  }
};

TEST_F(EstimateRpcTest, ForecastsTheArtifactOfARealBuild) {
  v1::EstimateBuildResponse estimate;
  ASSERT_TRUE(Estimate(Question("f2(landmarks=30)", 400, 3), &estimate).ok());
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
  v1::EstimateBuildResponse estimate;
  ASSERT_TRUE(Estimate(Question("f2(landmarks=30)", 400, 3), &estimate).ok());
  ExpectNothingStored();
}

// A Build reserves exactly as much memory as the estimate says, so it is refused if the limit is
// one byte lower.
TEST_F(EstimateRpcTest, TheReservationIsWhatABuildAsksFor) {
  v1::EstimateBuildResponse estimate;
  ASSERT_TRUE(Estimate(Question("f2(landmarks=5)", 40, 3), &estimate).ok());
  Stop();
  options_.build_memory_bytes = estimate.reserved_memory_bytes() - 1;
  Start();
  const grpc::Status refused = Build(Spec());
  EXPECT_EQ(refused.error_code(), Code::RESOURCE_EXHAUSTED);
  EXPECT_EQ(FactsOf(refused).reason, "BUILD_MEMORY_FULL");
  Stop();
  options_.build_memory_bytes = estimate.reserved_memory_bytes();
  Start();
  EXPECT_TRUE(Build(Spec()).ok());
}

TEST_F(EstimateRpcTest, RefusesWhatABuildWouldRefuse) {
  v1::EstimateBuildRequest bad_kernel = Question("f2(landmarks=5)", 40, 3);
  bad_kernel.mutable_spec()->set_kernel("rbf(gama=1)");
  v1::EstimateBuildRequest bad_name = Question("f2(landmarks=5)", 40, 3);
  bad_name.mutable_spec()->set_mapping("Letter");
  v1::EstimateBuildRequest too_wide =
      Question("random_projection(dimensions=4, projection=orthonormal)", 40, 3);
  too_wide.mutable_spec()->clear_kernel();
  struct {
    v1::EstimateBuildRequest request;
    Code code;
    const char* field;
  } const cases[] = {
      {bad_kernel, Code::INVALID_ARGUMENT, "spec.kernel"},
      {bad_name, Code::INVALID_ARGUMENT, "spec.mapping"},
      {Question("f2(landmarks=0)", 40, 3), Code::INVALID_ARGUMENT, "spec.spec.text"},
      {Question("f2(landmarks=5)", 0, 3), Code::INVALID_ARGUMENT, "rows"},
      {Question("f2(landmarks=5)", 40, 0), Code::INVALID_ARGUMENT, "columns"},
      {Question("f2(landmarks=5)", 40, 65537), Code::INVALID_ARGUMENT, "columns"},
      {Question("f2(landmarks=5)", 4, 3), Code::FAILED_PRECONDITION, "spec.spec.landmarks"},
      {too_wide, Code::FAILED_PRECONDITION, "spec.spec.dimensions"}};
  for (const auto& c : cases) {
    v1::EstimateBuildResponse estimate;
    const grpc::Status status = Estimate(c.request, &estimate);
    EXPECT_EQ(status.error_code(), c.code) << c.field;
    EXPECT_EQ(FactsOf(status).field, c.field) << status.error_message();
  }
}

}  // namespace
}  // namespace phimap::testing
