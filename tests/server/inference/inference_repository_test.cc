#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "server/inference/inference_models.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

const std::vector<IndexedVersion> kVersions = {{"letters", 1}, {"letters", 3}, {"spam", 2}};

std::vector<std::string> LinesOf(const inference::RepositoryIndexResponse& response) {
  std::vector<std::string> lines;
  for (const auto& model : response.models()) {
    lines.push_back(
        absl::StrCat(model.name(), " ", model.version(), " ", model.state(), " ", model.reason()));
  }
  return lines;
}

TEST(InferenceRepositoryTest, EachVersionIsReadyWhicheverAreAskedFor) {
  inference::RepositoryIndexRequest request;
  for (const bool ready : {false, true}) {
    request.set_ready(ready);
    EXPECT_THAT(LinesOf(RepositoryIndexOf(request, kVersions).value()),
                ElementsAre("letters 1 READY ", "letters 3 READY ", "spam 2 READY "));
  }
}

TEST(InferenceRepositoryTest, AnEmptyStoreIsAnEmptyIndex) {
  EXPECT_EQ(RepositoryIndexOf({}, {})->models_size(), 0);
}

TEST(InferenceRepositoryTest, ARepositoryThatIsNamedIsRefused) {
  inference::RepositoryIndexRequest request;
  request.set_repository_name("/models");
  EXPECT_THAT(RepositoryIndexOf(request, kVersions).status(),
              IsError(StatusCode::kInvalidArgument, "PARAMETER_NOT_SUPPORTED", "repository_name"));
}

}  // namespace
}  // namespace phimap::testing
