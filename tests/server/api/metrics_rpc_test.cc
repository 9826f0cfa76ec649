// Tests that a scrape of the metrics shows calls and builds, and that no client can make it grow.
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "inference/inference_service.grpc.pb.h"
#include "server/observe/version_series.h"
#include "tests/server/api/raw_call.h"
#include "tests/server/api/server_fixture.h"

namespace phimap::testing {
namespace {

class MetricsRpcTest : public ServerFixture {
 protected:
  MetricsRpcTest() {
    options_.http = "127.0.0.1:0";
    Start();
  }

  static v1::TransformRequest Request(const std::string& reference, int rows = 1) {
    return TransformOf(reference, UniformExamples(rows, 3));
  }

  // The labels of an alias of "letter" that points to `version`.
  static std::string At(const std::string& alias, int64_t version, const std::string& stat = "") {
    return absl::StrCat("{alias=\"", alias, "\",mapping=\"letter\",",
                        stat.empty() ? "" : absl::StrCat("stat=\"", stat, "\","), "version=\"",
                        version, "\"}");
  }

  // All series in a scrape, sorted.
  std::set<std::string> Series() {
    std::set<std::string> series;
    for (const absl::string_view line : absl::StrSplit(Scrape(), '\n')) {
      if (line.find(' ') != line.npos && line[0] != '#') {
        series.emplace(line.substr(0, line.rfind(' ')));
      }
    }
    return series;
  }

  // The value of a series; -1 if there is no such series.
  double Value(const std::string& series) {
    for (absl::string_view line : absl::StrSplit(Scrape(), '\n')) {
      double value = 0;
      if (absl::ConsumePrefix(&line, series + " ") && absl::SimpleAtod(line, &value)) return value;
    }
    return -1;
  }

  // Waits until a series has the value `value`. Waiting is necessary because some events are
  // counted only after the client has its answer.
  void AwaitValue(const std::string& series, double value) {
    double seen = Value(series);
    while (seen >= 0 && seen < value) seen = Value(series);
    EXPECT_EQ(seen, value) << series;
  }
};

TEST_F(MetricsRpcTest, ARequestIsSeenInEachOfItsPhases) {
  MustBuild("letter");
  ASSERT_TRUE(Transform(Request("letter", 10)).ok());
  for (const char* phase : {"parse", "queue", "compute", "answer"}) {
    AwaitValue(absl::StrCat("phimap_transform_", phase, "_seconds_count"), 1);
  }
  while (Value("phimap_request_memory_bytes") > 0) {
  }
  EXPECT_EQ(Value("phimap_request_memory_bytes"), 0);
  EXPECT_EQ(Value("phimap_version_rows_total{mapping=\"letter\",version=\"1\"}"), 10);
  EXPECT_EQ(Value("phimap_version_load_seconds_count"), 1);
}

TEST_F(MetricsRpcTest, RequestsOfAStreamAreSeenInEachOfTheirPhases) {
  MustBuild("letter");
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  for (int i = 0; i < 3; ++i) {
    v1::TransformRequest request;
    if (i == 0) request.set_reference("letter");
    *request.mutable_examples() = UniformExamples(2, 3);
    ASSERT_TRUE(stream->Write(request));
    v1::TransformResponse response;
    ASSERT_TRUE(stream->Read(&response));
  }
  stream->WritesDone();
  ASSERT_TRUE(stream->Finish().ok());
  for (const char* phase : {"parse", "queue", "compute", "answer"}) {
    AwaitValue(absl::StrCat("phimap_transform_", phase, "_seconds_count"), 3);
  }
  EXPECT_EQ(Value("phimap_version_rows_total{mapping=\"letter\",version=\"1\"}"), 6);
}

TEST_F(MetricsRpcTest, ABuildIsSeenInEachOfItsPhases) {
  // There are enough landmarks for several tiles, because a phase without a checkpoint is not
  // recorded.
  ASSERT_TRUE(Build(Spec("letter", "f2(landmarks=600, serving_type=float64)"), 1200).ok());
  for (const char* phase :
       {"receive", "queue", "sample", "gram", "factor", "certificate", "encode", "publish"}) {
    AwaitValue(absl::StrCat("phimap_build_phase_seconds_count{phase=\"", phase, "\"}"), 1);
  }
}

TEST_F(MetricsRpcTest, ABrokenBuildCountsOnlyThePhasesItEnded) {
  BuildStream stream(*mappings_);
  stream.Send(Spec());
  ASSERT_TRUE(stream.AwaitAccepted().has_value());
  stream.Send(UniformExamples(4, 3));  // fewer rows than landmarks
  stream.SendFinish(4);
  EXPECT_FALSE(stream.Finish().ok());
  AwaitValue("phimap_build_phase_seconds_count{phase=\"queue\"}", 1);
  EXPECT_EQ(Value("phimap_build_phase_seconds_count{phase=\"publish\"}"), 0);
  EXPECT_EQ(Value("phimap_builds_ended_total{code=\"FailedPrecondition\"}") +
                Value("phimap_builds_ended_total{code=\"InvalidArgument\"}"),
            1);
}

TEST_F(MetricsRpcTest, NamesThatClientsMakeUpAddNoSeries) {
  MustBuild("letter");
  v1::TransformResponse response = Mapped(Request("letter"));
  const std::set<std::string> before = Series();
  for (int i = 0; i < 200; ++i) {
    const std::string name = absl::StrCat("hostile-", i);
    EXPECT_FALSE(Transform(Request(name), &response).ok());
    EXPECT_FALSE(Transform(Request(absl::StrCat("letter@", i + 2)), &response).ok());
    EXPECT_FALSE(Transform(Request(absl::StrCat("letter@prod", i)), &response).ok());
    v1::GetMappingRequest get;
    get.set_name(absl::StrCat(name, "\"} 1\n"));
    v1::Mapping mapping;
    EXPECT_FALSE(mappings_->GetMapping(NewContext(), get, &mapping).ok());
    EXPECT_FALSE(Build(Spec(name, "f2(landmarks=5)"), 2).ok());
  }
  EXPECT_EQ(Series(), before);
}

TEST_F(MetricsRpcTest, ModelsMethodsAndTokensThatClientsMakeUpAddNoSeries) {
  MustBuild("letter");
  ASSERT_TRUE(Transform(Request("letter")).ok());
  const auto inferences = inference::GRPCInferenceService::NewStub(channel_);
  const std::set<std::string> before = Series();
  for (int i = 0; i < 100; ++i) {
    const std::string hostile = absl::StrCat("hostile-", i);
    inference::ModelInferRequest infer;
    infer.set_id(hostile);
    infer.set_model_name("letter");
    infer.set_model_version(hostile);
    grpc::ClientContext version_context;
    inference::ModelInferResponse inferred;
    EXPECT_FALSE(inferences->ModelInfer(&version_context, infer, &inferred).ok());
    infer.set_model_name(hostile);
    grpc::ClientContext model_context;
    EXPECT_FALSE(inferences->ModelInfer(&model_context, infer, &inferred).ok());
    for (const char* method : {"/phimap.v1.TransformService/Hostile", "/hostile.Service/Transform",
                               "/phimap.v1.MappingService/ListMappings\"}"}) {
      const grpc::Status status = CallRaw(channel_, absl::StrCat(method, i), {""}).status;
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
    }
    // The path is not valid in HTTP/2, so the stream is reset.
    EXPECT_FALSE(
        CallRaw(channel_, absl::StrCat("/phimap.v1.MappingService/ListMappings\"} 1\n", i), {""})
            .status.ok());
    EXPECT_TRUE(CallRaw(channel_, "/phimap.v1.MappingService/ListMappings", {""},
                        {{"authorization", "Bearer " + hostile}, {hostile, "hostile"}})
                    .status.ok());
  }
  EXPECT_EQ(Series(), before);
}

TEST_F(MetricsRpcTest, ServedVersionsAddABoundedNumberOfSeries) {
  const size_t before = Series().size();
  const int versions = VersionSeries::kMaxNamed + 5;
  for (int i = 0; i < versions; ++i) {
    const std::string name = absl::StrCat("m", i);
    MustBuild(name, "f1(landmarks=1)");
    ASSERT_TRUE(Transform(Request(name)).ok());
  }
  EXPECT_EQ(Series().size(), before + 5 * VersionSeries::kMaxNamed);
  EXPECT_EQ(Value("phimap_live_versions"), versions);
  EXPECT_EQ(Value("phimap_version_rows_total{mapping=\"m0\",version=\"1\"}"), 1);
  EXPECT_EQ(Value("phimap_version_rows_total{mapping=\"_other\",version=\"_other\"}"), 5);
}

TEST_F(MetricsRpcTest, AnAliasShowsTheCertificateOfItsVersionAndFollowsMovesAndDeletion) {
  MustBuild("letter", "f2(landmarks=5)");
  // With this many rows, some are held out to measure the errors.
  std::optional<v1::Version> second;
  ASSERT_TRUE(Build(Spec("letter", "f2(landmarks=7)"), /*rows=*/400, &second).ok());
  ASSERT_TRUE(SetAlias("letter@1").ok());
  EXPECT_EQ(Value("phimap_certificate_landmarks" + At("prod", 1)), 5);
  ASSERT_TRUE(SetAlias("letter@2").ok());
  EXPECT_EQ(Value("phimap_certificate_landmarks" + At("prod", 1)), -1);
  EXPECT_EQ(Value("phimap_certificate_landmarks" + At("prod", 2)), 7);
  const v1::Certificate& certificate = second->certificate();
  EXPECT_EQ(Value("phimap_certificate_rank" + At("prod", 2)), certificate.rank());
  // Values in a scrape have at least six significant digits.
  const auto& kernel = certificate.kernel_error();
  const auto& serving = certificate.serving_error();
  ASSERT_GT(kernel.scale(), 0);
  ASSERT_GT(serving.scale(), 0);
  for (const auto& [series, value] :
       {std::pair<std::string, double>{"kernel_error_ratio" + At("prod", 2, "mean"),
                                       kernel.mean() / kernel.scale()},
        {"kernel_error_ratio" + At("prod", 2, "max"), kernel.max() / kernel.scale()},
        {"serving_error_ratio" + At("prod", 2, "mean"), serving.mean() / serving.scale()},
        {"serving_error_ratio" + At("prod", 2, "max"), serving.max() / serving.scale()},
        {"trace_residual_ratio" + At("prod", 2), certificate.trace_residual()},
        {"mean_squared_norm" + At("prod", 2), certificate.mean_squared_norm()},
        {"held_out_trace_residual_ratio" + At("prod", 2), certificate.held_out_trace_residual()}}) {
    EXPECT_NEAR(Value("phimap_certificate_" + series), value, 1e-5 * std::abs(value)) << series;
  }
  Answer(&MappingStub::DeleteAlias, "name: 'letter' alias: 'prod'");
  EXPECT_EQ(Value("phimap_certificate_landmarks" + At("prod", 2)), -1);
}

TEST_F(MetricsRpcTest, AfterARestartAnAliasIsShownWithoutBeingAskedFor) {
  MustBuild("letter");
  ASSERT_TRUE(SetAlias("letter@1").ok());
  Restart();
  // The version of the alias is loaded in the background.
  double landmarks = -1;
  while (landmarks < 0) landmarks = Value("phimap_certificate_landmarks" + At("prod", 1));
  EXPECT_EQ(landmarks, 5);
}

TEST_F(MetricsRpcTest, AliasesAddABoundedNumberOfSeries) {
  MustBuild("letter");
  ASSERT_TRUE(SetAlias("letter@1", "first").ok());
  const size_t one = Series().size();
  // One mapping gets the maximum number of aliases, and a second mapping gets one.
  for (int i = 1; i < 100; ++i) ASSERT_TRUE(SetAlias("letter@1", absl::StrCat("a", i)).ok());
  const size_t full = Series().size();
  EXPECT_GT(full, one);
  MustBuild("digit");
  ASSERT_TRUE(SetAlias("digit@1", "first").ok());
  // The version of "digit" adds its five series. Its alias adds none.
  EXPECT_EQ(Series().size(), full + 5);
  // Once because it was set, and once more if its version is loaded only then.
  EXPECT_GE(Value("phimap_certificates_not_shown_total"), 1);
  EXPECT_LE(Value("phimap_certificates_not_shown_total"), 2);
}

TEST_F(MetricsRpcTest, CallsOfTheStoreAreCountedAndAWrongNameIsNoFault) {
  MustBuild("letter");
  EXPECT_EQ(Value("phimap_store_call_seconds_count{operation=\"publish\"}"), 1);
  EXPECT_FALSE(Transform(Request("nothing")).ok());
  EXPECT_GE(Value("phimap_store_call_seconds_count{operation=\"get_version\"}"), 1);
  for (const char* code : {"Unknown", "ResourceExhausted", "Internal", "FailedPrecondition",
                           "Unavailable", "DataLoss"}) {
    EXPECT_EQ(Value(absl::StrCat("phimap_store_faults_total{code=\"", code, "\"}")), 0) << code;
  }
  EXPECT_EQ(Value("phimap_store_calls_waiting"), 0);
  EXPECT_EQ(Value("phimap_version_loads_waiting"), 0);
}

}  // namespace
}  // namespace phimap::testing
