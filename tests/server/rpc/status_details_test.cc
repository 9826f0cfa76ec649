#include <gtest/gtest.h>

#include "core/status/error.h"
#include "phimap/rpc/error_details.pb.h"
#include "proto/error/request_errors.h"
#include "server/rpc/status_trailers.h"

namespace phimap::testing {
namespace {

using Code = absl::StatusCode;

rpc::Status Parsed(const StatusDetails& shown) {
  rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(shown.details));
  return details;
}

// The detail of type google.rpc.`name`. An empty message if there is no such detail.
template <typename Detail>
Detail Find(const rpc::Status& status, const std::string& name) {
  Detail detail;
  for (const auto& any : status.details()) {
    if (any.type_url() != "type.googleapis.com/google.rpc." + name) continue;
    EXPECT_TRUE(detail.ParseFromString(any.value()));
  }
  return detail;
}

TEST(StatusDetailsTest, OkHasNone) {
  EXPECT_EQ(DetailsForClient(absl::OkStatus()).message, "");
  EXPECT_EQ(DetailsForClient(absl::OkStatus()).details, "");
}

TEST(StatusDetailsTest, ErrorWithoutFactsHasItsMessageOnly) {
  const StatusDetails shown = DetailsForClient(absl::NotFoundError("no such thing"));
  EXPECT_EQ(shown.message, "no such thing");
  EXPECT_EQ(shown.details, "");
}

TEST(StatusDetailsTest, FileOfTheServerIsNamedNowhere) {
  const absl::Status error =
      MakeError(Code::kDataLoss, "ARTIFACT_DAMAGED", "blob", "/data/blobs/12 is cut",
                {{"digest", "12ab"}, {"path", "/data/blobs/12"}});
  const StatusDetails shown = DetailsForClient(error);
  EXPECT_EQ(shown.message, "blob: a file of the store is cut");
  EXPECT_EQ(MessageForClient(error), shown.message);
  EXPECT_EQ(shown.details.find("/data"), std::string::npos);
  EXPECT_EQ(Find<rpc::ErrorInfo>(Parsed(shown), "ErrorInfo").metadata().at("digest"), "12ab");
}

TEST(StatusDetailsTest, TheDatabaseIsNamedNowhere) {
  const absl::Status error = MakeError(
      Code::kUnavailable, "DATABASE_UNAVAILABLE", "",
      "database \"d\" on h:1 (user \"u\"): refused; look whether the server runs",
      {{"host", "h"}, {"database", "d"}, {"at", "database \"d\" on h:1 (user \"u\"): refused"}});
  const StatusDetails shown = DetailsForClient(error);
  EXPECT_EQ(shown.message, "the store's database failed; look whether the server runs");
  const auto info = Find<rpc::ErrorInfo>(Parsed(shown), "ErrorInfo");
  EXPECT_EQ(info.reason(), "DATABASE_UNAVAILABLE");
  EXPECT_TRUE(info.metadata().empty());
}

TEST(StatusDetailsTest, FactsThatFitAreWhole) {
  const std::string text(900, 't');
  const StatusDetails shown =
      DetailsForClient(MakeError(Code::kInvalidArgument, "R", "rows", text, {{"expected", text}}));
  EXPECT_EQ(shown.message, "rows: " + text);
  const rpc::Status details = Parsed(shown);
  EXPECT_EQ(details.message(), shown.message);
  EXPECT_EQ(Find<rpc::BadRequest>(details, "BadRequest").field_violations(0).description(), text);
  EXPECT_EQ(Find<rpc::ErrorInfo>(details, "ErrorInfo").metadata().at("expected"), text);
}

TEST(StatusDetailsTest, LongTextsAreCutAndReasonAndDelayStay) {
  const std::string text(100'000, 't');
  for (int facts : {0, 1, 5, 40, 1000}) {
    SCOPED_TRACE(facts);
    std::map<std::string, std::string> metadata;
    for (int i = 0; i < facts; ++i) metadata[std::to_string(i)] = text;
    const StatusDetails shown =
        DetailsForClient(MakeError(Code::kUnavailable, "BUSY", text, text, metadata, 2'250));
    EXPECT_LE(shown.message.size(), 2048 + 3);
    EXPECT_LE(shown.details.size(), 3072);
    const rpc::Status details = Parsed(shown);
    EXPECT_EQ(details.code(), 14);
    EXPECT_EQ(Find<rpc::ErrorInfo>(details, "ErrorInfo").reason(), "BUSY");
    const rpc::RetryInfo retry = Find<rpc::RetryInfo>(details, "RetryInfo");
    EXPECT_EQ(retry.retry_delay().seconds(), 2);
    EXPECT_EQ(retry.retry_delay().nanos(), 250'000'000);
  }
}

TEST(StatusDetailsTest, TextsAreCutBetweenCharacters) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("abcd", 3), "abc…");
  EXPECT_EQ(Shortened("aäb", 2), "a…");
  EXPECT_EQ(Shortened("aäb", 3), "aä…");
  EXPECT_EQ(Shortened("😈😈", 7), "😈…");
  EXPECT_EQ(Shortened("x", 0), "…");
}

}  // namespace
}  // namespace phimap::testing
