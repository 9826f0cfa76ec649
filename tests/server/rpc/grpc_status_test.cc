#include "server/rpc/grpc_status.h"

#include <string>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "phimap/rpc/error_details.pb.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

TEST(GrpcStatusTest, FactsBecomeTheCanonicalDetails) {
  const absl::Status error =
      MakeError(Code::kInvalidArgument, "WRONG_COLUMNS", "examples.dense.columns",
                "expected 16 columns, got 15", {{"expected", "16"}, {"actual", "15"}}, 1500);
  const grpc::Status status = ToGrpcStatus(error);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "examples.dense.columns: expected 16 columns, got 15");
  rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(details.message(), status.error_message());
  ASSERT_EQ(details.details_size(), 3);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.BadRequest");
  rpc::BadRequest bad;
  ASSERT_TRUE(bad.ParseFromString(details.details(0).value()));
  EXPECT_EQ(bad.field_violations(0).field(), "examples.dense.columns");
  EXPECT_EQ(bad.field_violations(0).description(), "expected 16 columns, got 15");
  EXPECT_EQ(details.details(1).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  rpc::ErrorInfo info;
  ASSERT_TRUE(info.ParseFromString(details.details(1).value()));
  EXPECT_EQ(info.reason(), "WRONG_COLUMNS");
  EXPECT_EQ(info.domain(), "phimap");
  EXPECT_EQ(info.metadata().at("actual"), "15");
  EXPECT_EQ(details.details(2).type_url(), "type.googleapis.com/google.rpc.RetryInfo");
  rpc::RetryInfo retry;
  ASSERT_TRUE(retry.ParseFromString(details.details(2).value()));
  EXPECT_EQ(retry.retry_delay().seconds(), 1);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);
}

TEST(GrpcStatusTest, AFileOfTheServerIsNotNamed) {
  const absl::Status error =
      MakeError(Code::kDataLoss, "ARTIFACT_DAMAGED", "", "artifact 12ab: /data/blobs/12 is cut",
                {{"digest", "12ab"}, {"path", "/data/blobs/12"}});
  const grpc::Status status = ToGrpcStatus(error);
  EXPECT_EQ(status.error_message(), "artifact 12ab: a file of the store is cut");
  EXPECT_EQ(status.error_details().find("/data"), std::string::npos);
  EXPECT_NE(status.error_details().find("12ab"), std::string::npos);
  EXPECT_EQ(MessageForClient(error), status.error_message());
}

TEST(GrpcStatusTest, EveryCanonicalCodeKeepsItsNumber) {
  for (int code = 1; code <= 16; ++code) {
    const grpc::Status status = ToGrpcStatus(absl::Status(static_cast<Code>(code), "m"));
    EXPECT_EQ(static_cast<int>(status.error_code()), code);
    EXPECT_EQ(status.error_details(), "");
  }
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
}

TEST(GrpcStatusTest, ALongMessageIsCutBetweenCharactersSoThatTrailersFit) {
  std::string message;
  while (message.size() < 10'000) message += "ä";
  const grpc::Status status = ToGrpcStatus(MakeError(Code::kInternal, "R", "", message));
  EXPECT_LE(status.error_message().size(), 2048 + 3);
  EXPECT_LT(status.error_details().size(), 4096);
  EXPECT_EQ(status.error_message().substr(2046, 2), "ä");
}

}  // namespace
}  // namespace phimap
