#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/inference/inference_models.h"

namespace phimap {
namespace {

using ::testing::ElementsAre;

const std::vector<IndexedVersion> kVersions = {
    {"letters", 1}, {"letters", 3, "its kernel service is not in --kernel_service"}, {"spam", 2}};

std::vector<std::string> LinesOf(const inference::RepositoryIndexResponse& response) {
  std::vector<std::string> lines;
  for (const auto& model : response.models()) {
    lines.push_back(
        absl::StrCat(model.name(), " ", model.version(), " ", model.state(), " ", model.reason()));
  }
  return lines;
}

TEST(InferenceRepositoryTest, EachVersionHasItsStateAndTheReasonForIt) {
  const auto response = RepositoryIndexOf({}, kVersions);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(LinesOf(*response),
              ElementsAre("letters 1 READY ",
                          "letters 3 UNAVAILABLE its kernel service is not in --kernel_service",
                          "spam 2 READY "));
}

TEST(InferenceRepositoryTest, OnlyWhatIsReadyIfThatIsAskedFor) {
  inference::RepositoryIndexRequest request;
  request.set_ready(true);
  const auto response = RepositoryIndexOf(request, kVersions);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(LinesOf(*response), ElementsAre("letters 1 READY ", "spam 2 READY "));
}

TEST(InferenceRepositoryTest, AnEmptyStoreIsAnEmptyIndex) {
  EXPECT_EQ(RepositoryIndexOf({}, {})->models_size(), 0);
}

TEST(InferenceRepositoryTest, ARepositoryThatIsNamedIsRefused) {
  inference::RepositoryIndexRequest request;
  request.set_repository_name("/models");
  const absl::Status status = RepositoryIndexOf(request, kVersions).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(status)->reason, "PARAMETER_NOT_SUPPORTED");
  EXPECT_EQ(DetailOf(status)->field, "repository_name");
}

}  // namespace
}  // namespace phimap
