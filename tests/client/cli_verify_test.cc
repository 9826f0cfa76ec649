#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/commands/commands.h"
#include "gtest/gtest.h"
#include "tests/client/scripted_server.h"
#include "tests/support/matchers.h"

namespace phimap::cli {
namespace {

using client::RowBlock;

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

// A server with one version. Transform returns the result of `answer_`.
class VerifyTest : public ::testing::Test {
 protected:
  VerifyTest() {
    server_.get_version = [this](const v1::GetVersionRequest&, v1::Version& version) {
      version = version_;
      return grpc::Status::OK;
    };
    server_.transform = [this](const v1::TransformRequest& request,
                               v1::TransformResponse& response) {
      EXPECT_EQ(request.reference(), "letters@3");
      ++transforms_;
      const v1::DenseRows& dense = request.examples().dense();
      const bool is_double = dense.values_case() == v1::DenseRows::kFloat64Le;
      RowBlock features =
          answer_({.type = is_double ? client::FloatType::kFloat64 : client::FloatType::kFloat32,
                   .rows = dense.rows(),
                   .columns = dense.columns(),
                   .values_le = is_double ? dense.float64_le() : dense.float32_le()});
      v1::DenseRows& out = *response.mutable_features();
      out.set_rows(features.rows);
      out.set_columns(features.columns);
      (features.type == client::FloatType::kFloat64 ? out.mutable_float64_le()
                                                    : out.mutable_float32_le())
          ->swap(features.values_le);
      return grpc::Status::OK;
    };
    const std::vector<float> values = {1, 2, 3, 5};
    const RowBlock rows = client::MakeRowBlock(absl::MakeConstSpan(values), 2);
    v1::SelfCheck* check = version_.mutable_certificate()->mutable_self_check();
    check->mutable_rows()->set_rows(2);
    check->mutable_rows()->set_columns(2);
    check->mutable_rows()->set_float32_le(rows.values_le);
    check->mutable_features()->set_rows(2);
    check->mutable_features()->set_columns(3);
    check->mutable_features()->set_float32_le(Features(rows).values_le);
    version_.mutable_ref()->set_name("letters");
    version_.mutable_ref()->set_number(3);
    answer_ = Features;
  }
  absl::Status Verify() {
    CommandContext context{{*client_, out_, Console{}, cancel_}, *client_};
    return RunVerify({.reference = "letters"}, context);
  }

  v1::Version version_;
  std::function<RowBlock(const RowBlock&)> answer_;
  int transforms_ = 0;
  client::ScriptedServer server_;
  const client::StopAtEnd stop_{server_};
  const std::unique_ptr<client::Client> client_ = *client::Client::Connect(server_.target(), {});
  std::ostringstream out_;
  client::CancelToken cancel_;
};

TEST_F(VerifyTest, EqualBitsPassAloneAndTogetherInBothTypes) {
  const absl::Status status = Verify();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(transforms_, 8);
  EXPECT_THAT(out_.str(), HasSubstr("letters@3"));
  EXPECT_THAT(out_.str(), HasSubstr("in a batch of 71"));
}

TEST_F(VerifyTest, OneBitInOneRowAloneIsNamed) {
  answer_ = [](const RowBlock& rows) {
    RowBlock features = Features(rows);
    if (rows.rows == 1 && rows.At(0, 0) == 3) features.values_le[4] ^= 1;  // feature 1
    return features;
  };
  EXPECT_THAT(Verify(), testing::IsError(StatusCode::kDataLoss, _, _,
                                         HasSubstr("reference vector 1, feature 1")));
  EXPECT_EQ(out_.str(), "");
}

// 71 rows are one whole tile and a rest. The rest takes two to four blocks of rows, depending on
// the machine's vector unit.
TEST_F(VerifyTest, OneBitOfTheLastRowOfALargeBatchIsNamed) {
  answer_ = [](const RowBlock& rows) {
    RowBlock features = Features(rows);
    if (rows.rows == 71) features.values_le.back() ^= 1;  // in the last row, reference vector 0
    return features;
  };
  EXPECT_THAT(Verify(),
              testing::IsError(StatusCode::kDataLoss, _, _,
                               HasSubstr("reference vector 0, feature 2, in a batch of 71")));
}

TEST_F(VerifyTest, FeaturesThatAreAllZeroShowNothingAndAreRefused) {
  std::string& features = *version_.mutable_certificate()
                               ->mutable_self_check()
                               ->mutable_features()
                               ->mutable_float32_le();
  features.assign(features.size(), '\0');
  answer_ = [](const RowBlock& rows) {
    return client::MakeRowBlock(absl::MakeConstSpan(std::vector<float>(rows.rows * 3)), 3);
  };
  EXPECT_THAT(Verify(), testing::IsError(StatusCode::kFailedPrecondition, _, _,
                                         HasSubstr("reference vectors are 0")));
  EXPECT_EQ(transforms_, 0);
}

TEST_F(VerifyTest, OtherShapesAreNamed) {
  answer_ = [](const RowBlock& rows) {
    return client::MakeRowBlock(absl::MakeConstSpan(std::vector<float>(rows.rows * 2)), 2);
  };
  EXPECT_THAT(Verify().message(), HasSubstr("expected 2 × 3 float32 features, got 2 × 2 float32"));
}

TEST_F(VerifyTest, AnotherTypeIsNamed) {
  answer_ = [](const RowBlock& rows) {
    return client::MakeRowBlock(absl::MakeConstSpan(std::vector<double>(rows.rows * 3)), 3);
  };
  EXPECT_THAT(Verify().message(), HasSubstr("expected 2 × 3 float32 features, got 2 × 3 float64"));
}

TEST_F(VerifyTest, AVersionWithoutReferenceVectorsIsAFailedPrecondition) {
  version_.mutable_certificate()->clear_self_check();
  EXPECT_EQ(Verify().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace phimap::cli
