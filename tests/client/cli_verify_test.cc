#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/commands/commands.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace phimap::cli {
namespace {

using client::RowBlock;
using ::testing::HasSubstr;

absl::Status NotCalled() { return absl::InternalError("not expected by this test"); }

// Stands for a server with one version. Transform returns the result of `answer`. Every call except
// Transform and GetVersion fails.
class VersionDouble : public client::Client {
 public:
  v1::Version version;
  std::function<RowBlock(const RowBlock&)> answer;
  int transforms = 0;

  absl::StatusOr<v1::Version> GetVersion(absl::string_view) override { return version; }
  absl::StatusOr<v1::Version> GetVersionNow(absl::string_view) override { return version; }
  absl::StatusOr<client::TransformResult> Transform(absl::string_view reference,
                                                    client::ExampleBlock rows,
                                                    const client::TransformOptions&) override {
    EXPECT_EQ(reference, "letters@3");
    ++transforms;
    return client::TransformResult{.version = version.ref(), .features = answer(*rows.dense())};
  }
  absl::StatusOr<v1::Version> Build(const client::BuildOptions&, client::RowSource&,
                                    const client::BuildObserver&, client::CancelToken*) override {
    return NotCalled();
  }
  absl::StatusOr<client::TransformStreamResult> TransformStream(
      absl::string_view, client::RowSource&, const client::FeatureSink&,
      const client::TransformStreamOptions&, client::CancelToken*) override {
    return NotCalled();
  }
  absl::StatusOr<v1::Evaluation> Evaluate(const client::EvaluateOptions&, client::LabeledRowSource&,
                                          const client::EvaluateObserver&,
                                          client::CancelToken*) override {
    return NotCalled();
  }
  absl::StatusOr<std::vector<v1::Mapping>> ListMappings() override { return NotCalled(); }
  absl::StatusOr<v1::Mapping> GetMapping(absl::string_view) override { return NotCalled(); }
  absl::StatusOr<std::vector<v1::Version>> ListVersions(absl::string_view) override {
    return NotCalled();
  }
  absl::StatusOr<v1::BuildJob> GetBuild(absl::string_view, absl::string_view) override {
    return NotCalled();
  }
  absl::StatusOr<v1::Alias> SetAlias(absl::string_view, absl::string_view, int64_t,
                                     absl::string_view) override {
    return NotCalled();
  }
  absl::StatusOr<v1::Alias> SetAliasToDigest(absl::string_view, absl::string_view,
                                             absl::string_view, absl::string_view) override {
    return NotCalled();
  }
  absl::StatusOr<v1::Version> KeepVersion(absl::string_view, absl::Duration) override {
    return NotCalled();
  }
  absl::StatusOr<v1::Alias> RollBackAlias(absl::string_view, absl::string_view) override {
    return NotCalled();
  }
  absl::Status DeleteAlias(absl::string_view, absl::string_view, absl::string_view) override {
    return NotCalled();
  }
  absl::Status DeleteVersion(absl::string_view, int64_t, bool) override { return NotCalled(); }
  absl::Status DeleteMapping(absl::string_view, bool) override { return NotCalled(); }
  absl::StatusOr<client::ExportResult> Export(absl::string_view, const client::ArtifactSink&,
                                              client::CancelToken*) override {
    return NotCalled();
  }
  absl::StatusOr<v1::Version> Import(absl::string_view, const client::ArtifactSource&,
                                     client::CancelToken*) override {
    return NotCalled();
  }
  absl::StatusOr<v1::BuildJob> CancelBuild(absl::string_view, absl::string_view) override {
    return NotCalled();
  }
  absl::StatusOr<v1::ListCapabilitiesResponse> ListCapabilities() override { return NotCalled(); }
  absl::StatusOr<v1::GetDriftResponse> GetDrift(absl::string_view) override { return NotCalled(); }
  absl::StatusOr<v1::AdviseResponse> Advise(const v1::AdviseRequest&) override {
    return NotCalled();
  }
  absl::StatusOr<v1::EstimateBuildResponse> EstimateBuild(const client::BuildOptions&, int64_t,
                                                          int32_t) override {
    return NotCalled();
  }
  absl::StatusOr<bool> CheckHealth(absl::string_view, absl::Duration) override {
    return NotCalled();
  }
};

// The features of a row (a, b) are (a + b, a − b, 1).
RowBlock Features(const RowBlock& rows) {
  std::vector<float> out;
  for (int32_t i = 0; i < rows.rows; ++i) {
    const float a = static_cast<float>(rows.At(i, 0));
    const float b = static_cast<float>(rows.At(i, 1));
    out.insert(out.end(), {a + b, a - b, 1});
  }
  return client::MakeRowBlock(absl::MakeConstSpan(out), 3);
}

class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() {
    const std::vector<float> values = {1, 2, 3, 5};
    const RowBlock rows = client::MakeRowBlock(absl::MakeConstSpan(values), 2);
    v1::SelfCheck* check = server_.version.mutable_certificate()->mutable_self_check();
    check->mutable_rows()->set_rows(2);
    check->mutable_rows()->set_columns(2);
    check->mutable_rows()->set_float32_le(rows.values_le);
    check->mutable_features()->set_rows(2);
    check->mutable_features()->set_columns(3);
    check->mutable_features()->set_float32_le(Features(rows).values_le);
    server_.version.mutable_ref()->set_mapping("letters");
    server_.version.mutable_ref()->set_number(3);
    server_.answer = Features;
  }
  absl::Status Verify() {
    CommandContext context{server_, out_, Console{}, cancel_};
    return RunVerify({.reference = "letters"}, context);
  }

  VersionDouble server_;
  std::ostringstream out_;
  client::CancelToken cancel_;
};

TEST_F(VerifyTest, EqualBitsPassAloneAndTogetherInBothTypes) {
  const absl::Status status = Verify();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(server_.transforms, 8);
  EXPECT_THAT(out_.str(), HasSubstr("letters@3"));
  EXPECT_THAT(out_.str(), HasSubstr("in a batch of 71"));
}

TEST_F(VerifyTest, OneBitInOneRowAloneIsNamed) {
  server_.answer = [](const RowBlock& rows) {
    RowBlock features = Features(rows);
    if (rows.rows == 1 && rows.At(0, 0) == 3) features.values_le[4] ^= 1;  // feature 1
    return features;
  };
  const absl::Status status = Verify();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("reference vector 1, feature 1"));
  EXPECT_EQ(out_.str(), "");
}

// 71 rows are one whole tile and a rest. The rest takes two to four blocks of rows, depending on
// the machine's vector unit.
TEST_F(VerifyTest, OneBitOfTheLastRowOfALargeBatchIsNamed) {
  server_.answer = [](const RowBlock& rows) {
    RowBlock features = Features(rows);
    if (rows.rows == 71) features.values_le.back() ^= 1;  // in the last row, reference vector 0
    return features;
  };
  const absl::Status status = Verify();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("reference vector 0, feature 2, in a batch of 71"));
}

TEST_F(VerifyTest, FeaturesThatAreAllZeroShowNothingAndAreRefused) {
  std::string& features = *server_.version.mutable_certificate()
                               ->mutable_self_check()
                               ->mutable_features()
                               ->mutable_float32_le();
  features.assign(features.size(), '\0');
  server_.answer = [](const RowBlock& rows) {
    return client::MakeRowBlock(absl::MakeConstSpan(std::vector<float>(rows.rows * 3)), 3);
  };
  const absl::Status status = Verify();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("reference vectors are 0"));
  EXPECT_EQ(server_.transforms, 0);
}

TEST_F(VerifyTest, OtherShapesAreNamed) {
  server_.answer = [](const RowBlock&) { return RowBlock{}; };
  EXPECT_THAT(Verify().message(), HasSubstr("expected 2 × 3 float32 features, got 0 × 0 float32"));
}

TEST_F(VerifyTest, AnotherTypeIsNamed) {
  server_.answer = [](const RowBlock& rows) {
    return client::MakeRowBlock(absl::MakeConstSpan(std::vector<double>(rows.rows * 3)), 3);
  };
  EXPECT_THAT(Verify().message(), HasSubstr("expected 2 × 3 float32 features, got 2 × 3 float64"));
}

TEST_F(VerifyTest, AVersionWithoutReferenceVectorsIsAFailedPrecondition) {
  server_.version.mutable_certificate()->clear_self_check();
  EXPECT_EQ(Verify().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace phimap::cli
