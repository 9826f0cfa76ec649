#include "gtest/gtest.h"
#include "server/inference/inference_models.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

VersionRecord F2Version() {
  VersionRecord version{.mapping = "letters",
                        .number = 7,
                        .digest = "d1ge57",
                        .input_columns = 16,
                        .output_columns = 499,
                        .serving_type = "float32",
                        .spec_text = "f2(landmarks=500)",
                        .kernel_text = "rbf(gamma=0.1)"};
  return version;
}

TEST(InferenceConfigTest, SaysWhatAVersionIs) {
  const inference::ModelConfig config = ModelConfigOf(F2Version(), nullptr);
  EXPECT_EQ(config.name(), "letters");
  EXPECT_EQ(config.platform(), "phimap_plan");
  EXPECT_EQ(config.backend(), "phimap");
  EXPECT_TRUE(config.version_policy().has_all());
  EXPECT_EQ(config.parameters().at("digest").string_value(), "d1ge57");
  EXPECT_EQ(config.parameters().at("spec").string_value(), "f2(landmarks=500)");
  EXPECT_EQ(config.parameters().at("kernel").string_value(), "rbf(gamma=0.1)");
  EXPECT_EQ(config.parameters().at("serving_type").string_value(), "float32");
}

// If a ModelConfig has a max_batch_size, its shapes describe a single row. Clients add the number
// of rows as the first dimension.
TEST(InferenceConfigTest, ShapesAreOfOneRow) {
  const inference::ModelConfig config = ModelConfigOf(F2Version(), nullptr);
  EXPECT_EQ(config.max_batch_size(), 65536);
  ASSERT_EQ(config.input_size(), 1);
  EXPECT_EQ(config.input(0).name(), "x");
  EXPECT_EQ(config.input(0).data_type(), inference::TYPE_FP32);
  EXPECT_THAT(config.input(0).dims(), ElementsAre(16));
  ASSERT_EQ(config.output_size(), 2);
  EXPECT_EQ(config.output(0).name(), "features");
  EXPECT_EQ(config.output(0).data_type(), inference::TYPE_FP32);
  EXPECT_THAT(config.output(0).dims(), ElementsAre(499));
  EXPECT_EQ(config.output(1).name(), "residual");
  EXPECT_EQ(config.output(1).data_type(), inference::TYPE_FP64);
  EXPECT_THAT(config.output(1).dims(), ElementsAre(1));
}

TEST(InferenceConfigTest, RequestsAreBatchedWithoutDelayAndAnsweredOnceEach) {
  const inference::ModelConfig config = ModelConfigOf(F2Version(), nullptr);
  EXPECT_TRUE(config.has_dynamic_batching());
  EXPECT_EQ(config.dynamic_batching().max_queue_delay_microseconds(), 0);
  EXPECT_TRUE(config.has_model_transaction_policy());
  EXPECT_FALSE(config.model_transaction_policy().decoupled());
  ASSERT_EQ(config.instance_group_size(), 1);
  EXPECT_EQ(config.instance_group(0).kind(), inference::ModelInstanceGroup::KIND_CPU);
}

TEST(InferenceConfigTest, AnotherMappingThanF2HasNoResidual) {
  VersionRecord version = F2Version();
  version.spec_text = "f1(landmarks=500)";
  version.serving_type = "float64";
  const inference::ModelConfig config = ModelConfigOf(version, nullptr);
  ASSERT_EQ(config.output_size(), 1);
  EXPECT_EQ(config.output(0).data_type(), inference::TYPE_FP64);
}

TEST(InferenceConfigTest, AVersionOfStringsHasNoInput) {
  VersionRecord version = F2Version();
  version.input_columns = 0;
  EXPECT_EQ(ModelConfigOf(version, nullptr).input_size(), 0);
}

}  // namespace
}  // namespace phimap::testing
