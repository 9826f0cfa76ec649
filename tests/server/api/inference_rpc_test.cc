// Tests the Open Inference Protocol over gRPC, from the view of a client that is written for this
// protocol.
#include "absl/strings/str_cat.h"
#include "tests/server/api/inference_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class InferenceRpcTest : public InferenceFixture {
 protected:
  InferenceRpcTest() { Start(); }

  grpc::Status Ready(const std::string& name, const std::string& version, bool* ready) {
    inference::ModelReadyRequest request;
    request.set_name(name);
    request.set_version(version);
    inference::ModelReadyResponse response;
    const grpc::Status status = inferences_->ModelReady(NewContext(), request, &response);
    *ready = response.ready();
    return status;
  }
  grpc::Status Metadata(const std::string& name, const std::string& version,
                        inference::ModelMetadataResponse* response) {
    inference::ModelMetadataRequest request;
    request.set_name(name);
    request.set_version(version);
    return inferences_->ModelMetadata(NewContext(), request, response);
  }
};

TEST_F(InferenceRpcTest, RawAndTypedContentsGiveTheBitsOfTheNativeCall) {
  for (const char* serving : {"float32", "float64"}) {
    SCOPED_TRACE(serving);
    MustBuild("letter", absl::StrCat("f2(landmarks=5, serving_type=", serving, ")"));
    const v1::Examples examples = UniformExamples(100, 3, 7);
    const std::string features = NativeFeatures(examples);
    ASSERT_FALSE(features.empty());
    EXPECT_EQ(MustInfer(RawRequest(examples)), features);
    EXPECT_EQ(MustInfer(TypedRequest(examples, "FP32")), features);
    EXPECT_EQ(MustInfer(TypedRequest(examples, "FP64")), features);
    inference::ModelInferRequest wide = RawRequest(examples);
    const std::vector<float> floats = FloatsOf(examples);
    const std::vector<double> doubles(floats.begin(), floats.end());
    wide.mutable_inputs(0)->set_datatype("FP64");
    wide.set_raw_input_contents(
        0, std::string(reinterpret_cast<const char*>(doubles.data()), 8 * doubles.size()));
    EXPECT_EQ(MustInfer(wide), features);
  }
}

TEST_F(InferenceRpcTest, TheAnswerNamesModelVersionDigestAndShapeAndEchoesTheId) {
  MustBuild();
  const v1::Version second = MustBuild("letter", "f1(landmarks=6, serving_type=float64)");
  inference::ModelInferRequest request = RawRequest(UniformExamples(4, 3));
  request.set_id(std::string(512, 'i'));
  request.add_outputs()->set_name("features");
  inference::ModelInferResponse response;
  ASSERT_THAT(Infer(request, &response), IsOk());
  EXPECT_EQ(response.id(), request.id());
  EXPECT_EQ(response.model_name(), "letter");
  EXPECT_EQ(response.model_version(), "2");
  EXPECT_EQ(response.parameters().at("digest").string_param(), second.ref().digest());
  ASSERT_EQ(response.outputs_size(), 1);
  EXPECT_EQ(response.outputs(0).name(), "features");
  EXPECT_EQ(response.outputs(0).datatype(), "FP64");
  EXPECT_THAT(response.outputs(0).shape(), ElementsAre(4, 6));
  EXPECT_FALSE(response.outputs(0).has_contents());
  ASSERT_EQ(response.raw_output_contents_size(), 1);
  EXPECT_EQ(response.raw_output_contents(0).size(), 4 * 6 * 8);
}

TEST_F(InferenceRpcTest, TheResidualIsAnOutputThatComesWhenAndWhereItIsAskedFor) {
  MustBuild("letter", "f2(landmarks=5)");
  const v1::Examples examples = UniformExamples(12, 3, 7);
  v1::TransformRequest native = TransformOf("letter", examples);
  native.set_residual(true);
  v1::TransformResponse expected = Mapped(native);
  const std::string residuals(reinterpret_cast<const char*>(expected.residuals().data()), 12 * 8);
  for (const std::vector<const char*>& names : std::vector<std::vector<const char*>>{
           {"residual"}, {"features", "residual"}, {"residual", "features"}}) {
    inference::ModelInferRequest request = RawRequest(examples);
    for (const char* name : names) request.add_outputs()->set_name(name);
    inference::ModelInferResponse response;
    ASSERT_THAT(Infer(request, &response), IsOk());
    ASSERT_EQ(response.outputs_size(), names.size());
    ASSERT_EQ(response.raw_output_contents_size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      const auto& output = response.outputs(static_cast<int>(i));
      const std::string& bytes = response.raw_output_contents(static_cast<int>(i));
      EXPECT_EQ(output.name(), names[i]);
      if (output.name() == "residual") {
        EXPECT_EQ(output.datatype(), "FP64");
        EXPECT_THAT(output.shape(), ElementsAre(12, 1));
        EXPECT_EQ(bytes, residuals);
      } else {
        EXPECT_EQ(bytes, expected.features().float32_le());
      }
    }
  }
}

TEST_F(InferenceRpcTest, AVersionIsANumberAndEmptyMeansTheNewest) {
  MustBuild("letter", "f2(landmarks=5)");
  MustBuild("letter", "f1(landmarks=6)");
  const v1::Examples examples = UniformExamples(3, 3);
  inference::ModelInferRequest request = RawRequest(examples);
  EXPECT_EQ(MustInfer(request), NativeFeatures(examples, "letter@2"));
  request.set_model_version("1");
  EXPECT_EQ(MustInfer(request), NativeFeatures(examples, "letter@1"));
}

TEST_F(InferenceRpcTest, AnAliasIsAVersionInEveryCallAndFollowsItsMove) {
  const v1::Version versions[] = {MustBuild("letter", "f2(landmarks=5)"),
                                  MustBuild("letter", "f1(landmarks=6)")};
  const v1::Examples examples = UniformExamples(3, 3);
  inference::ModelInferRequest request = RawRequest(examples);
  request.set_model_version("prod");
  for (const v1::Version& version : versions) {
    SCOPED_TRACE(version.ref().number());
    ASSERT_THAT(SetAlias(absl::StrCat("letter@", version.ref().number())), IsOk());
    inference::ModelInferResponse response;
    ASSERT_TRUE(Infer(request, &response).ok());
    EXPECT_EQ(response.model_version(), absl::StrCat(version.ref().number()));
    EXPECT_EQ(response.raw_output_contents(0),
              NativeFeatures(examples, absl::StrCat("letter@", version.ref().number())));
    inference::ModelMetadataResponse metadata;
    ASSERT_TRUE(Metadata("letter", "prod", &metadata).ok());
    EXPECT_THAT(metadata.outputs(0).shape(), ElementsAre(-1, version.output_columns()));
    bool ready = false;
    ASSERT_TRUE(Ready("letter", "prod", &ready).ok());
    EXPECT_TRUE(ready);
  }
}

TEST_F(InferenceRpcTest, EmptyContentsBesideRawOnesAreNoContents) {
  MustBuild();
  inference::ModelInferRequest request = RawRequest(UniformExamples(1, 3));
  request.mutable_inputs(0)->mutable_contents();
  EXPECT_EQ(MustInfer(request), NativeFeatures(UniformExamples(1, 3)));
}

TEST_F(InferenceRpcTest, ModelMetadataHasTheTrueShapesOfEachVersion) {
  const v1::Version first = MustBuild("letter", "f2(landmarks=5)");
  MustBuild("letter", "f1(landmarks=6, serving_type=float64)");
  inference::ModelMetadataResponse newest;
  ASSERT_TRUE(Metadata("letter", "", &newest).ok());
  EXPECT_EQ(newest.name(), "letter");
  EXPECT_EQ(newest.platform(), "phimap_plan");
  EXPECT_THAT(newest.versions(), ElementsAre("1", "2"));
  ASSERT_EQ(newest.inputs_size(), 1);
  EXPECT_EQ(newest.inputs(0).name(), "x");
  EXPECT_EQ(newest.inputs(0).datatype(), "FP32");
  EXPECT_THAT(newest.inputs(0).shape(), ElementsAre(-1, 3));
  ASSERT_EQ(newest.outputs_size(), 1);
  EXPECT_EQ(newest.outputs(0).name(), "features");
  EXPECT_EQ(newest.outputs(0).datatype(), "FP64");
  EXPECT_THAT(newest.outputs(0).shape(), ElementsAre(-1, 6));
  inference::ModelMetadataResponse old;
  ASSERT_TRUE(Metadata("letter", "1", &old).ok());
  EXPECT_THAT(old.versions(), ElementsAre("1", "2"));
  ASSERT_EQ(old.outputs_size(), 2);  // version 1 has the mapping f2
  EXPECT_EQ(old.outputs(1).name(), "residual");
  EXPECT_EQ(old.outputs(1).datatype(), "FP64");
  EXPECT_THAT(old.outputs(1).shape(), ElementsAre(-1, 1));
  EXPECT_EQ(old.outputs(0).datatype(), "FP32");
  EXPECT_THAT(old.outputs(0).shape(), ElementsAre(-1, first.output_columns()));
}

TEST_F(InferenceRpcTest, AModelIsReadyOnceItHasAVersionThatCanBeServed) {
  bool ready = true;
  ASSERT_TRUE(Ready("letter", "", &ready).ok());
  EXPECT_FALSE(ready);
  MustBuild();
  for (const char* version : {"", "1"}) {
    EXPECT_TRUE(Ready("letter", version, &ready).ok());
    EXPECT_TRUE(ready);
  }
  for (const char* version : {"2", "prod"}) {
    ready = true;
    EXPECT_TRUE(Ready("letter", version, &ready).ok());
    EXPECT_FALSE(ready);
  }
}

TEST_F(InferenceRpcTest, ADamagedVersionIsNotReadyAndItsNeighbourIs) {
  const v1::Version first = MustBuild("letter", "f2(landmarks=5)");
  MustBuild("letter", "f1(landmarks=6)");
  Stop();
  folder_.DamageBlob(first.ref().digest());
  Start();
  bool ready = true;
  ASSERT_TRUE(Ready("letter", "1", &ready).ok());
  EXPECT_FALSE(ready);
  ASSERT_TRUE(Ready("letter", "2", &ready).ok());
  EXPECT_TRUE(ready);
}

TEST_F(InferenceRpcTest, TheServerIsLiveReadyAndSaysWhoItIs) {
  inference::ServerLiveResponse live;
  ASSERT_TRUE(inferences_->ServerLive(NewContext(), {}, &live).ok());
  EXPECT_TRUE(live.live());
  inference::ServerReadyResponse ready;
  ASSERT_TRUE(inferences_->ServerReady(NewContext(), {}, &ready).ok());
  EXPECT_TRUE(ready.ready());
  inference::ServerMetadataResponse metadata;
  ASSERT_TRUE(inferences_->ServerMetadata(NewContext(), {}, &metadata).ok());
  EXPECT_EQ(metadata.name(), "phimap");
  EXPECT_THAT(metadata.version(), MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(metadata.extensions(), ElementsAre("model_configuration", "statistics"));
}

class InferenceLimitsTest : public InferenceFixture {};

TEST_F(InferenceLimitsTest, FeaturesThatDoNotFitIntoAMessageAreRefusedWithTheRowsThatWould) {
  options_.max_message_bytes = 64 << 10;
  Start();
  MustBuild("letter", "f1(landmarks=30)");
  // A row takes 12 bytes in the request and 120 in the answer. Of the message limit, 1,024 bytes
  // are kept free, so (65,536 − 1,024) / 120 = 537 rows fit.
  inference::ModelInferResponse response;
  const grpc::Status status = Infer(RawRequest(UniformExamples(538, 3)), &response);
  EXPECT_THAT(status, IsError(Code::RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE", "inputs[x].rows"));
  EXPECT_EQ(FactsOf(status).metadata.at("limit"), "537");
  // Even the longest id fits into an answer with 537 rows.
  inference::ModelInferRequest fits = RawRequest(UniformExamples(537, 3));
  fits.set_id(std::string(512, 'i'));
  EXPECT_EQ(MustInfer(fits).size(), 537 * 120);
}

class InferenceMetricsTest : public InferenceFixture {};

TEST_F(InferenceMetricsTest, CallsAreCountedUnderTheProtocolsNames) {
  options_.http = "127.0.0.1:0";
  Start();
  MustBuild();
  MustInfer(RawRequest(UniformExamples(5, 3)));
  inference::ModelInferResponse response;
  inference::ModelInferRequest bad = RawRequest(UniformExamples(5, 3));
  bad.set_model_name("digit");
  EXPECT_FALSE(Infer(bad, &response).ok());
  const std::string text = Scrape();
  const std::string infer =
      "grpc_method=\"ModelInfer\",grpc_service=\"inference.GRPCInferenceService\","
      "grpc_type=\"unary\"} ";
  EXPECT_THAT(text, HasSubstr("grpc_server_started_total{" + infer + "2"));
  EXPECT_THAT(text, HasSubstr("{grpc_code=\"OK\"," + infer + "1"));
  EXPECT_THAT(text, HasSubstr("{grpc_code=\"NotFound\"," + infer + "1"));
  EXPECT_THAT(text, HasSubstr("phimap_transform_rows_total 5"));
  for (const char* method :
       {"ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata"}) {
    EXPECT_THAT(text,
                HasSubstr(absl::StrCat("{grpc_code=\"OK\",grpc_method=\"", method,
                                       "\",grpc_service=\"inference.GRPCInferenceService\"")));
  }
}

}  // namespace
}  // namespace phimap::testing
