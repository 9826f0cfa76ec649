#include "proto/artifact/artifact_description.h"

#include <string>

#include "core/digest/sha256.h"
#include "core/linalg/panel_product.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/certified_artifact.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(ArtifactDescriptionTest, SaysWhatTheVersionWouldBe) {
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    const std::string artifact = CertifiedArtifact({.serving_type = type});
    bool ran = false;
    const v1::Version version = DescribeArtifact(artifact, ran).value();
    Sha256 hash;
    hash.Update(artifact);
    EXPECT_EQ(version.ref().digest(), hash.Hex());
    EXPECT_EQ(version.ref().name(), "");
    EXPECT_EQ(version.artifact_size_bytes(), artifact.size());
    EXPECT_EQ(version.input_columns(), 5);
    EXPECT_EQ(version.output_columns(), 7);
    EXPECT_EQ(version.kernel_text(), "rbf(gamma=0.5)");
    EXPECT_EQ(version.certificate().stream_rows(), 100);
    EXPECT_FALSE(version.certificate().has_rank());
    const v1::SelfCheck& check = version.certificate().self_check();
    EXPECT_EQ(check.rows().rows(), 2);
    EXPECT_EQ(check.features().columns(), 7);
    const bool wide = type == FloatType::kFloat64;
    EXPECT_EQ(check.features().has_float64_le(), wide);
    EXPECT_EQ(version.serving_type(), wide ? v1::SERVING_TYPE_FLOAT64 : v1::SERVING_TYPE_FLOAT32);
    EXPECT_EQ(ran, VectorTargetFuses());
  }
}

TEST(ArtifactDescriptionTest, SaysThatNothingRanWithoutReferenceVectors) {
  bool ran = true;
  EXPECT_TRUE(
      DescribeArtifact(
          CertifiedArtifact({}, {.certificate = [](Certificate& c) { c.self_check.reset(); }}), ran)
          .ok());
  EXPECT_FALSE(ran);
}

TEST(ArtifactDescriptionTest, DamageIsBadInputAboutTheFile) {
  bool ran = false;
  const std::string good = CertifiedArtifact();
  for (const absl::Status& status :
       {DescribeArtifact("not an artifact", ran).status(),
        DescribeArtifact(good + "x", ran).status(),
        DescribeArtifact(good.substr(0, good.size() - 1), ran).status(),
        DescribeSize(std::string(kArtifactStartBytes, '\0')).status()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(FieldOf(status), "FILE");
  }
}

TEST(ArtifactDescriptionTest, TheFirstBytesSayHowLongAnArtifactIs) {
  const std::string good = CertifiedArtifact();
  const int64_t size = DescribeSize(good.substr(0, kArtifactStartBytes)).value();
  EXPECT_EQ(size, good.size());
}

}  // namespace
}  // namespace phimap::testing
