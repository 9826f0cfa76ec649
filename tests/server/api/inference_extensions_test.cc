// Tests the calls of Triton's clients other than inference, over gRPC.
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/server/api/inference_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Service = inference::GRPCInferenceService::Stub;

class InferenceExtensionsTest : public InferenceFixture {
 protected:
  InferenceExtensionsTest() { Start(); }

  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (Service::*method)(grpc::ClientContext*, const Request&,
                                                    Response*),
                    const Request& request, Response* response) {
    grpc::ClientContext context;
    return (inferences_.get()->*method)(&context, request, response);
  }
  // Statistics of a mapping, or of all mappings if `name` is empty; the call must succeed.
  std::vector<inference::ModelStatistics> Statistics(const std::string& name,
                                                     const std::string& version = "") {
    inference::ModelStatisticsRequest request;
    request.set_name(name);
    request.set_version(version);
    inference::ModelStatisticsResponse response;
    EXPECT_THAT(Call(&Service::ModelStatistics, request, &response), IsOk());
    return {response.model_stats().begin(), response.model_stats().end()};
  }
};

TEST_F(InferenceExtensionsTest, AModelIsConfiguredAsItWasBuilt) {
  const v1::Version built = MustBuild("letter", "f2(landmarks=5)");
  inference::ModelConfigRequest request;
  request.set_name("letter");
  inference::ModelConfigResponse response;
  ASSERT_THAT(Call(&Service::ModelConfig, request, &response), IsOk());
  const inference::ModelConfig& config = response.config();
  EXPECT_EQ(config.name(), "letter");
  ASSERT_EQ(config.input_size(), 1);
  EXPECT_THAT(config.input(0).dims(), ElementsAre(3));
  ASSERT_EQ(config.output_size(), 2);
  EXPECT_THAT(config.output(0).dims(), ElementsAre(5));
  EXPECT_EQ(config.parameters().at("digest").string_value(), built.ref().digest());
}

TEST_F(InferenceExtensionsTest, RequestsAreCountedByVersionWhateverProtocolTheyCameBy) {
  MustBuild("letter");
  MustBuild("letter");
  MustBuild("other");
  EXPECT_THAT(Statistics("letter"), IsEmpty());  // no version is in memory
  const auto before = absl::ToUnixMillis(absl::Now());
  MustInfer(RawRequest(UniformExamples(7, 3)));
  NativeFeatures(UniformExamples(4, 3));
  inference::ModelInferRequest bad = RawRequest(UniformExamples(1, 3));
  const float nan[] = {1, 2, std::numeric_limits<float>::quiet_NaN()};
  bad.set_raw_input_contents(0, std::string(reinterpret_cast<const char*>(nan), sizeof(nan)));
  inference::ModelInferResponse none;
  EXPECT_FALSE(Infer(bad, &none).ok());
  NativeFeatures(UniformExamples(2, 3), "letter@1");
  NativeFeatures(UniformExamples(3, 3), "other");

  const std::vector<inference::ModelStatistics> letter = Statistics("letter");
  ASSERT_EQ(letter.size(), 2u);
  EXPECT_EQ(letter[0].version(), "1");
  EXPECT_EQ(letter[0].inference_count(), 2u);
  const inference::ModelStatistics& newest = letter[1];
  EXPECT_EQ(newest.name(), "letter");
  EXPECT_EQ(newest.version(), "2");
  EXPECT_EQ(newest.inference_count(), 11u);
  EXPECT_EQ(newest.execution_count(), 2u);
  EXPECT_EQ(newest.inference_stats().success().count(), 2u);
  EXPECT_EQ(newest.inference_stats().fail().count(), 1u);
  EXPECT_EQ(newest.inference_stats().queue().count(), 2u);
  EXPECT_EQ(newest.inference_stats().compute_infer().count(), 2u);
  // The time in the queue and the computing time add up exactly to the total, in nanoseconds.
  EXPECT_GT(newest.inference_stats().compute_infer().ns(), 0u);
  EXPECT_EQ(newest.inference_stats().queue().ns() + newest.inference_stats().compute_infer().ns(),
            newest.inference_stats().success().ns());
  EXPECT_GE(static_cast<int64_t>(newest.last_inference()) + 1, before);
  EXPECT_LE(static_cast<int64_t>(newest.last_inference()), absl::ToUnixMillis(absl::Now()) + 1);
  ASSERT_EQ(newest.memory_usage_size(), 1);
  EXPECT_GT(newest.memory_usage(0).byte_size(), 0u);

  EXPECT_EQ(Statistics("").size(), 3u);
  ASSERT_EQ(Statistics("letter", "1").size(), 1u);
  EXPECT_EQ(Statistics("letter", "1")[0].version(), "1");
}

TEST_F(InferenceExtensionsTest, TheIndexHasEveryStoredVersionInOrder) {
  inference::RepositoryIndexRequest request;
  inference::RepositoryIndexResponse response;
  ASSERT_TRUE(Call(&Service::RepositoryIndex, request, &response).ok());
  EXPECT_EQ(response.models_size(), 0);
  MustBuild("other");
  MustBuild("letter");
  MustBuild("letter");
  ASSERT_TRUE(Call(&Service::RepositoryIndex, request, &response).ok());
  std::vector<std::string> models;
  for (const auto& model : response.models()) {
    models.push_back(absl::StrCat(model.name(), " ", model.version(), " ", model.state()));
  }
  EXPECT_THAT(models, ElementsAre("letter 1 READY", "letter 2 READY", "other 1 READY"));
}

}  // namespace
}  // namespace phimap::testing
