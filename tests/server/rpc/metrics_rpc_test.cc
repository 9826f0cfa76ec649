// What a scrape shows of calls and builds, and that no client makes it grow.
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/observe/version_series.h"
#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {
namespace {

class MetricsRpcTest : public ServerFixture {
 protected:
  MetricsRpcTest() {
    options_.http = "127.0.0.1:0";
    Start();
  }

  static v1::TransformRequest Request(const std::string& reference, int rows = 1) {
    v1::TransformRequest request;
    request.set_reference(reference);
    *request.mutable_examples() = UniformExamples(rows, 3);
    return request;
  }

  // The series that a scrape has, sorted.
  std::set<std::string> Series() {
    std::set<std::string> series;
    for (const absl::string_view line : absl::StrSplit(Scrape(), '\n')) {
      if (line.find(' ') != line.npos && line[0] != '#') {
        series.emplace(line.substr(0, line.rfind(' ')));
      }
    }
    return series;
  }

  // The value of a series, -1 when there is no such series.
  double Value(const std::string& series) {
    for (absl::string_view line : absl::StrSplit(Scrape(), '\n')) {
      double value = 0;
      if (absl::ConsumePrefix(&line, series + " ") && absl::SimpleAtod(line, &value)) return value;
    }
    return -1;
  }

  // Some things are counted after the client has its answer.
  void AwaitValue(const std::string& series, double value) {
    double seen = Value(series);
    while (seen >= 0 && seen < value) seen = Value(series);
    EXPECT_EQ(seen, value) << series;
  }
};

TEST_F(MetricsRpcTest, ARequestIsSeenInEachOfItsPhases) {
  MustBuild("letter");
  v1::TransformResponse response;
  ASSERT_TRUE(Transform(Request("letter", 10), &response).ok());
  for (const char* phase : {"parse", "queue", "compute", "answer"}) {
    AwaitValue(absl::StrCat("phimap_transform_", phase, "_seconds_count"), 1);
  }
  AwaitValue("phimap_transform_answer_bytes", 0);
  EXPECT_EQ(Value("phimap_version_rows_total{mapping=\"letter\",version=\"1\"}"), 10);
  EXPECT_EQ(Value("phimap_version_load_seconds_count"), 1);
}

TEST_F(MetricsRpcTest, RequestsOfAStreamAreSeenInEachOfTheirPhases) {
  MustBuild("letter");
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  for (int i = 0; i < 3; ++i) {
    v1::TransformStreamRequest request;
    if (i == 0) request.set_reference("letter");
    *request.mutable_examples() = UniformExamples(2, 3);
    ASSERT_TRUE(stream->Write(request));
    v1::TransformStreamResponse response;
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
  // Enough landmarks for several tiles: a phase without a checkpoint is not seen.
  ASSERT_TRUE(Build(Spec("letter", "f2(landmarks=600)"), 1200).ok());
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
  v1::TransformResponse response;
  ASSERT_TRUE(Transform(Request("letter"), &response).ok());
  const std::set<std::string> before = Series();
  for (int i = 0; i < 200; ++i) {
    const std::string name = absl::StrCat("hostile-", i);
    EXPECT_FALSE(Transform(Request(name), &response).ok());
    EXPECT_FALSE(Transform(Request(absl::StrCat("letter@", i + 2)), &response).ok());
    EXPECT_FALSE(Transform(Request(absl::StrCat("letter@prod", i)), &response).ok());
    grpc::ClientContext context;
    v1::GetMappingRequest get;
    get.set_mapping(absl::StrCat(name, "\"} 1\n"));
    v1::Mapping mapping;
    EXPECT_FALSE(mappings_->GetMapping(&context, get, &mapping).ok());
    EXPECT_FALSE(Build(Spec(name, "f2(landmarks=5)"), 2).ok());
  }
  EXPECT_EQ(Series(), before);
}

TEST_F(MetricsRpcTest, ServedVersionsAddABoundedNumberOfSeries) {
  const size_t before = Series().size();
  v1::TransformResponse response;
  const int versions = VersionSeries::kMaxNamed + 5;
  for (int i = 0; i < versions; ++i) {
    const std::string name = absl::StrCat("m", i);
    MustBuild(name, "f1(landmarks=1)");
    ASSERT_TRUE(Transform(Request(name), &response).ok());
  }
  EXPECT_EQ(Series().size(), before + VersionSeries::kMaxNamed);
  EXPECT_EQ(Value("phimap_live_versions"), versions);
  EXPECT_EQ(Value("phimap_version_rows_total{mapping=\"m0\",version=\"1\"}"), 1);
  EXPECT_EQ(Value("phimap_version_rows_total{mapping=\"_other\",version=\"_other\"}"), 5);
}

}  // namespace
}  // namespace phimap::testing
