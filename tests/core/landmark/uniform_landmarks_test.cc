#include "core/landmark/uniform_landmarks.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

const std::vector<int64_t> kPool = {40, 10, 70, 20, 90, 30, 60, 0};

std::vector<int64_t> MustChoose(int64_t landmarks, uint64_t seed) {
  return UniformLandmarks(kPool, landmarks, seed).value();
}

TEST(UniformLandmarksTest, AreDistinctMembersOfThePool) {
  for (int64_t landmarks : {0, 1, 5, 8}) {
    std::vector<int64_t> chosen = MustChoose(landmarks, 1);
    ASSERT_EQ(chosen.size(), landmarks);
    for (int64_t slot : chosen) EXPECT_THAT(kPool, Contains(slot));
    std::sort(chosen.begin(), chosen.end());
    EXPECT_EQ(std::adjacent_find(chosen.begin(), chosen.end()), chosen.end());
  }
}

TEST(UniformLandmarksTest, NeverChangeForASeed) {
  EXPECT_THAT(MustChoose(4, 42), ElementsAre(20, 30, 70, 90));
}

TEST(UniformLandmarksTest, MoreContinueFewer) {
  const std::vector<int64_t> all = MustChoose(8, 6);
  const std::vector<int64_t> some = MustChoose(3, 6);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
}

TEST(UniformLandmarksTest, TooSmallAPoolNamesBothNumbers) {
  const absl::Status status = UniformLandmarks(kPool, 9, 1).status();
  EXPECT_THAT(status, IsError(StatusCode::kFailedPrecondition, "ROWS_TOO_FEW", "landmarks"));
  EXPECT_EQ(DetailOf(status)->metadata.at("expected"), "9");
  EXPECT_EQ(DetailOf(status)->metadata.at("actual"), "8");
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("9 landmarks"), HasSubstr("8 rows")));
}

// Each member is chosen with probability 3/8. Over T seeds, its count has mean T·3/8 and variance
// T·15/64. It may deviate by six standard deviations. Seeds are fixed.
TEST(UniformLandmarksTest, EveryMemberIsEquallyLikely) {
  constexpr int kTrials = 20000;
  std::vector<int> counts(91);
  for (int seed = 0; seed < kTrials; ++seed) {
    for (int64_t slot : MustChoose(3, seed)) ++counts[slot];
  }
  for (int64_t slot : kPool) {
    EXPECT_NEAR(counts[slot], kTrials * 0.375, 6 * std::sqrt(kTrials * 15.0 / 64)) << slot;
  }
}

}  // namespace
}  // namespace phimap::testing
