// Tests GetDrift and the metrics of drift: what a client sees of the rows that it has had served.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/random/stream_ids.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class DriftRpcTest : public ServerFixture {
 protected:
  DriftRpcTest() {
    options_.http = "127.0.0.1:0";
    // Each request gives a row, and none is dropped.
    DriftWatcher::Limits limits;
    limits.interval = absl::ZeroDuration();
    limits.interval_of_all = absl::ZeroDuration();
    limits.waiting_rows = 1'000'000;
    limits.waiting_bytes = int64_t{1} << 30;
    hooks_.drift = limits;
    Start();
  }

  grpc::Status GetDrift(const std::string& mapping, v1::GetDriftResponse* response) {
    return Ask(&MappingStub::GetDrift, "name: '" + mapping + "'", response);
  }
  // Returns the drift of the only alias of "letter", when `rows` rows have been tested.
  v1::AliasDrift Await(int64_t rows) {
    v1::GetDriftResponse response;
    do {
      response.Clear();
      EXPECT_TRUE(GetDrift("letter", &response).ok());
    } while (response.aliases(0).rows() + response.aliases(0).rows_not_finite() < rows);
    return response.aliases(0);
  }

  // Has rows of the stream's distribution served, one a request; `shift` is added to column 1.
  void Serve(const std::string& reference, int rows, float shift) {
    for (int i = 0; i < rows; ++i) {
      float numbers[3];
      for (float& number : numbers) number = static_cast<float>(2 * random_.UniformOpen01() - 1);
      numbers[1] += shift;
      v1::TransformRequest request;
      request.set_reference(reference);
      v1::DenseRows& dense = *request.mutable_examples()->mutable_dense();
      dense.set_rows(1);
      dense.set_columns(3);
      dense.set_float32_le(reinterpret_cast<const char*>(numbers), sizeof(numbers));
      ASSERT_TRUE(Transform(request).ok());
    }
  }

  void MustBuildLarge(const std::string& expression = "f2(landmarks=20)") {
    v1::BuildSpec spec =
        Spec("letter", expression, absl::StrCat("00000000-0000-4000-8000-000000000", ++next_id_));
    for (const char* name : {"left", "middle", "right"}) spec.add_column_names(name);
    ASSERT_TRUE(Build(spec, /*rows=*/4000).ok());
  }

  // The value of a series of the alias; -1 if there is none.
  double Value(const std::string& name, const std::string& alias, int version) {
    const std::string series =
        absl::StrCat(name, "{alias=\"", alias, "\",mapping=\"letter\",version=\"", version, "\"} ");
    for (absl::string_view line : absl::StrSplit(Scrape(), '\n')) {
      double value = 0;
      if (absl::ConsumePrefix(&line, series) && absl::SimpleAtod(line, &value)) return value;
    }
    return -1;
  }

  RandomCursor random_{RandomStream(11, StreamId::kLabRows)};
};

TEST_F(DriftRpcTest, DriftIsFoundWithTheColumnThatMoved) {
  MustBuildLarge();
  ASSERT_TRUE(SetAlias("letter@1").ok());
  Serve("letter@prod", 1000, 0);
  const v1::AliasDrift before = Await(1000);
  EXPECT_EQ(before.alias(), "prod");
  EXPECT_EQ(before.version(), 1);
  EXPECT_EQ(before.not_tested(), "");
  EXPECT_LT(before.evidence(), 1);
  EXPECT_FALSE(before.has_crossed_time());
  EXPECT_EQ(before.false_alarms(), 0.05);
  EXPECT_EQ(before.promised_rows(), 30 * 86400 * 10);
  EXPECT_TRUE(before.has_shift());
  EXPECT_LT(before.shift(), 0.1 * before.shift_scale());
  // 4,000 rows of the stream: a new row is beyond the range of a column with at most 2/4,001.
  EXPECT_NEAR(before.beyond_range_expected(), 2.0 / 4001, 1e-9);
  EXPECT_LT(before.beyond_range_share(), 0.01);
  EXPECT_LT(Value("phimap_drift_evidence_ratio", "prod", 1), 1);
  EXPECT_EQ(Value("phimap_drift_tested_rows", "prod", 1), 1000);
  EXPECT_EQ(Value("phimap_drift_crossed_timestamp_seconds", "prod", 1), -1);

  // Any reference to the version counts. The shift is .35 deviations of a uniform column.
  Serve("letter@1", 1500, 0.2f);
  const v1::AliasDrift after = Await(2500);
  EXPECT_GE(after.evidence(), 1);
  EXPECT_TRUE(after.has_crossed_time());
  EXPECT_GT(after.shift(), before.shift());
  ASSERT_GT(after.scores_size(), 0);
  EXPECT_EQ(after.scores(0).kind(), v1::AliasDrift::Score::KIND_COLUMN);
  EXPECT_EQ(after.scores(0).name(), "middle");
  // A tenth of the numbers of column 1 are over 1.
  ASSERT_GT(after.columns_beyond_range_size(), 0);
  EXPECT_EQ(after.columns_beyond_range(0).index(), 1);
  EXPECT_EQ(after.columns_beyond_range(0).name(), "middle");
  EXPECT_NEAR(after.columns_beyond_range(0).share(), 0.1 * 1500 / 2500, 0.02);
  EXPECT_GE(Value("phimap_drift_evidence_ratio", "prod", 1), 1);
  EXPECT_GT(Value("phimap_drift_crossed_timestamp_seconds", "prod", 1), 1.7e9);
  EXPECT_GT(Value("phimap_drift_beyond_range_ratio", "prod", 1), 0.01);
}

// The issue that made the old share useless: Fourier features have a constant norm.
TEST_F(DriftRpcTest, DriftOfFourierFeaturesIsFound) {
  MustBuildLarge("fourier(dimensions=40)");
  ASSERT_TRUE(SetAlias("letter@1").ok());
  Serve("letter", 500, 0);
  EXPECT_LT(Await(500).evidence(), 1);
  Serve("letter", 1500, 0.3f);
  EXPECT_GE(Await(2000).evidence(), 1);
}

TEST_F(DriftRpcTest, AnAliasThatMovesStartsAnewAndOneThatIsDeletedHasNoSeries) {
  MustBuildLarge();
  MustBuildLarge();
  ASSERT_TRUE(SetAlias("letter@1").ok());
  Serve("letter@prod", 1500, 0.3f);
  EXPECT_GE(Await(1500).evidence(), 1);
  ASSERT_TRUE(SetAlias("letter@2").ok());
  const v1::AliasDrift moved = Await(0);
  EXPECT_EQ(moved.version(), 2);
  EXPECT_EQ(moved.rows(), 0);
  EXPECT_EQ(moved.evidence(), 0);
  EXPECT_EQ(Value("phimap_drift_evidence_ratio", "prod", 1), -1);
  EXPECT_EQ(Value("phimap_drift_evidence_ratio", "prod", 2), 0);
  // Rows of a version that no alias names any more are not tested.
  Serve("letter@1", 10, 0);
  Serve("letter@prod", 10, 0);
  EXPECT_EQ(Await(10).rows(), 10);
  // Setting an alias to the version that it has keeps the test.
  ASSERT_TRUE(SetAlias("letter@2").ok());
  EXPECT_EQ(Await(10).rows(), 10);

  Answer(&MappingStub::DeleteAlias, "name: 'letter' alias: 'prod'");
  EXPECT_THAT(Scrape(), Not(HasSubstr("phimap_drift_evidence_ratio{")));
  v1::GetDriftResponse response;
  ASSERT_TRUE(GetDrift("letter", &response).ok());
  EXPECT_EQ(response.aliases_size(), 0);
}

TEST_F(DriftRpcTest, EveryAliasOfAVersionHasItsOwnTest) {
  MustBuildLarge();
  ASSERT_TRUE(SetAlias("letter@1", "old").ok());
  Serve("letter", 30, 0);
  EXPECT_EQ(Await(30).rows(), 30);
  ASSERT_TRUE(SetAlias("letter@1").ok());
  Serve("letter", 5, 0);
  v1::GetDriftResponse response;
  do {
    ASSERT_TRUE(GetDrift("letter", &response).ok());
  } while (response.aliases(1).rows() < 5);
  EXPECT_EQ(response.aliases(0).alias(), "old");
  EXPECT_EQ(response.aliases(0).rows(), 35);
  EXPECT_EQ(response.aliases(1).alias(), "prod");
  EXPECT_EQ(response.aliases(1).rows(), 5);
}

TEST_F(DriftRpcTest, AVersionWithoutReferenceSaysThatItIsNotTested) {
  MustBuild("letter");  // 40 rows
  ASSERT_TRUE(SetAlias("letter@1").ok());
  Serve("letter@prod", 5, 0);
  v1::GetDriftResponse response;
  ASSERT_TRUE(GetDrift("letter", &response).ok());
  ASSERT_EQ(response.aliases_size(), 1);
  EXPECT_THAT(response.aliases(0).not_tested(), HasSubstr("fewer than 100 held-out rows"));
  EXPECT_THAT(Scrape(), Not(HasSubstr("phimap_drift_evidence_ratio{")));
}

TEST_F(DriftRpcTest, NamesAreChecked) {
  v1::GetDriftResponse response;
  EXPECT_EQ(GetDrift("no such", &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(GetDrift("unknown", &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

// K(x, x) comes with the row, and one that is negative makes ρ infinite. Such a row is counted, and
// the test goes on.
TEST_F(DriftRpcTest, ARowWithAnInfiniteResidualPoisonsNothing) {
  // A tenth of the rows is held out, and a quarter of these chooses the scores.
  const int examples = 1400;
  v1::BuildSpec spec = Spec("letter", "f2(landmarks=2)");
  spec.set_kernel("precomputed()");
  std::vector<double> gram(static_cast<size_t>(examples) * examples);
  std::vector<double> x(examples);
  for (double& value : x) value = 2 * random_.UniformOpen01() - 1;
  for (int i = 0; i < examples; ++i) {
    for (int j = 0; j < examples; ++j) gram[i * examples + j] = 1 + x[i] * x[j];
  }
  BuildStream stream(*mappings_);
  ASSERT_TRUE(stream.Send(spec));
  for (int begin = 0; begin < examples; begin += 100) {
    v1::Examples rows;
    v1::DenseRows& dense = *rows.mutable_dense();
    dense.set_rows(100);
    dense.set_columns(examples);
    dense.set_float64_le(reinterpret_cast<const char*>(&gram[begin * examples]),
                         100 * examples * sizeof(double));
    ASSERT_TRUE(stream.Send(rows));
  }
  ASSERT_TRUE(stream.SendFinish(examples));
  stream.HalfClose();
  ASSERT_TRUE(stream.Finish().ok());
  ASSERT_TRUE(SetAlias("letter@1").ok());
  const int64_t landmarks = 2;
  for (const double self : {2.0, -1.0, 2.0}) {
    const std::vector<double> row = {1.0, 1.0, self};
    v1::TransformRequest request;
    request.set_reference("letter@prod");
    v1::DenseRows& one = *request.mutable_examples()->mutable_dense();
    one.set_rows(1);
    one.set_columns(landmarks + 1);
    one.set_float64_le(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(double));
    ASSERT_THAT(Transform(request), IsOk());
  }
  const v1::AliasDrift drift = Await(3);
  EXPECT_EQ(drift.rows(), 2);
  EXPECT_EQ(drift.rows_not_finite(), 1);
  EXPECT_EQ(Value("phimap_drift_rows_not_finite", "prod", 1), 1);
}

}  // namespace
}  // namespace phimap::testing
