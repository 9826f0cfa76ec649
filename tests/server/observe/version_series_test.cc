#include "server/observe/version_series.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// The series of a version without a head: one counts its rows; four describe a sample of them
// (number, norms, residuals, and rows that are not finite).
constexpr int kOfVersion = 5;
// Those of the rest, which may have heads: also their answers, and rows and sum of confidence.
constexpr int kOfOther = kOfVersion + 3;

class VersionSeriesTest : public ::testing::Test {
 protected:
  std::string Scrape() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }
  int64_t Series() const {
    const std::vector<std::string> lines = absl::StrSplit(Scrape(), '\n');
    return std::count_if(lines.begin(), lines.end(),
                         [](const std::string& line) { return !line.empty() && line[0] != '#'; });
  }

  prometheus::Registry registry_;
  VersionSeries series_{registry_};
};

TEST_F(VersionSeriesTest, ALiveVersionHasItsOwnSeriesAndTakesItAway) {
  EXPECT_EQ(Series(), kOfOther);
  {
    const auto lease = series_.Open("letters", 7);
    lease->rows()->Increment(5);
    EXPECT_THAT(Scrape(),
                HasSubstr("phimap_version_rows_total{mapping=\"letters\",version=\"7\"} 5"));
  }
  EXPECT_THAT(Scrape(), Not(HasSubstr("letters")));
  EXPECT_EQ(Series(), kOfOther);
}

template <typename T>
RowsView ViewOf(const std::vector<T>& numbers, int64_t columns) {
  return {reinterpret_cast<const char*>(numbers.data()),
          sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64,
          static_cast<int64_t>(numbers.size()) / columns, columns};
}

TEST_F(VersionSeriesTest, OneRequestInSixtyFourGivesTheNormOfItsFirstRow) {
  const auto lease = series_.Open("letters", 7);
  std::vector<float> single(20, 0.5f);
  for (int i = 10; i < 20; ++i) single[i] = 1e30f;  // the second row
  for (int request = 0; request < 129; ++request) {
    lease->drift().Sample(ViewOf(single, 10), ViewOf(single, 10), nullptr);
  }
  const std::string labels = "{mapping=\"letters\",version=\"7\"} ";
  EXPECT_THAT(Scrape(), HasSubstr("phimap_version_drift_rows_total" + labels + "3\n"));
  EXPECT_THAT(Scrape(), HasSubstr("phimap_version_norm_sum_total" + labels + "7.5\n"));
  EXPECT_THAT(Scrape(), HasSubstr("phimap_version_residual_sum_total" + labels + "0\n"));
  const auto other = series_.Open("wide", 1);
  const std::vector<double> wide = {3, 4};
  other->drift().Sample(ViewOf(wide, 2), ViewOf(wide, 2), nullptr);
  EXPECT_THAT(Scrape(),
              HasSubstr("phimap_version_norm_sum_total{mapping=\"wide\",version=\"1\"} 25\n"));
}

// A row with ρ = ∞ or ‖F‖² = ∞ must not make the sums useless for good.
TEST_F(VersionSeriesTest, ARowThatIsNotFiniteIsCountedApart) {
  const auto lease = series_.Open("letters", 7);
  const std::vector<double> row = {3, 4};
  const std::vector<double> infinite = {1e200, 1};
  lease->drift().Sample(ViewOf(infinite, 2), ViewOf(infinite, 2), nullptr);
  for (int request = 0; request < 64; ++request) {
    lease->drift().Sample(ViewOf(row, 2), ViewOf(row, 2), nullptr);
  }
  const std::string labels = "{mapping=\"letters\",version=\"7\"} ";
  EXPECT_THAT(Scrape(), HasSubstr("phimap_version_drift_rows_not_finite_total" + labels + "1\n"));
  EXPECT_THAT(Scrape(), HasSubstr("phimap_version_drift_rows_total" + labels + "1\n"));
  EXPECT_THAT(Scrape(), HasSubstr("phimap_version_norm_sum_total" + labels + "25\n"));
}

std::shared_ptr<const HeadFacts> HeadOf(int classes) {
  auto head = std::make_shared<HeadFacts>();
  for (int i = 0; i < classes; ++i) head->classes.push_back(absl::StrCat("c", i));
  return head;
}

TEST_F(VersionSeriesTest, AnswersAreCountedByClassAndTheClassesBeyondTwentyTogether) {
  {
    const auto lease = series_.Open("letters", 7, HeadOf(26));
    lease->predictions().Count(6, std::vector<int32_t>{0, 19, 19, 20, 25, 25});
    const auto value = [](const char* name) {
      return absl::StrCat("{class=\"", name, "\",mapping=\"letters\",version=\"7\"} ");
    };
    EXPECT_THAT(Scrape(), HasSubstr(value("c0") + "1\n"));
    EXPECT_THAT(Scrape(), HasSubstr(value("c1") + "0\n"));
    EXPECT_THAT(Scrape(), HasSubstr(value("c19") + "2\n"));
    EXPECT_THAT(Scrape(), HasSubstr(value("_other") + "3\n"));
    EXPECT_THAT(Scrape(), Not(HasSubstr("\"c20\"")));
    Matrix<double> probabilities(2, 26);
    probabilities(0, 3) = 0.5;
    probabilities(1, 0) = 0.75;
    lease->predictions().CountConfidence(std::as_const(probabilities).view());
    EXPECT_THAT(Scrape(),
                HasSubstr("confidence_rows_total{mapping=\"letters\",version=\"7\"} 2\n"));
    EXPECT_THAT(Scrape(),
                HasSubstr("confidence_sum_total{mapping=\"letters\",version=\"7\"} 1.25\n"));
    int due = 0;
    for (int request = 0; request < 129; ++request) due += lease->predictions().IsDue() ? 1 : 0;
    EXPECT_EQ(due, 3);
  }
  EXPECT_EQ(Series(), kOfOther);
}

TEST_F(VersionSeriesTest, NumbersAndVersionsWithoutLabelsCountAsOthers) {
  const auto numbers = series_.Open("prices", 1, HeadOf(0));
  numbers->predictions().Count(5, {});
  EXPECT_THAT(Scrape(), HasSubstr("{class=\"_other\",mapping=\"prices\",version=\"1\"} 5\n"));
  std::vector<std::unique_ptr<const VersionSeries::Lease>> leases;
  for (int i = 0; i < VersionSeries::kMaxNamed; ++i) {
    leases.push_back(series_.Open(absl::StrCat("other-", i), 1));
  }
  const auto late = series_.Open("late", 1, HeadOf(3));
  late->predictions().Count(4, std::vector<int32_t>{0, 1, 2, 2});
  EXPECT_THAT(Scrape(), HasSubstr("{class=\"_other\",mapping=\"_other\",version=\"_other\"} 4\n"));
  // Named by an alias, it has classes of its own from then on.
  late->Promote();
  late->predictions().Count(2, std::vector<int32_t>{1, 1});
  EXPECT_THAT(Scrape(), HasSubstr("{class=\"c1\",mapping=\"late\",version=\"1\"} 2\n"));
}

TEST_F(VersionSeriesTest, LeasesOfOneVersionShareASeriesUntilTheLast) {
  auto first = series_.Open("letters", 7);
  const auto second = series_.Open("letters", 7);
  first->rows()->Increment();
  first.reset();
  second->rows()->Increment();
  EXPECT_THAT(Scrape(), HasSubstr("{mapping=\"letters\",version=\"7\"} 2"));
}

TEST_F(VersionSeriesTest, HoweverManyVersionsAreLiveTheSeriesAreBoundedAndNoRowIsLost) {
  std::vector<std::unique_ptr<const VersionSeries::Lease>> leases;
  for (int i = 0; i < 1000; ++i) {
    leases.push_back(series_.Open(absl::StrCat("hostile-", i), 1));
    leases.back()->rows()->Increment();
  }
  EXPECT_EQ(Series(), kOfOther + kOfVersion * VersionSeries::kMaxNamed);
  EXPECT_THAT(Scrape(), HasSubstr("{mapping=\"_other\",version=\"_other\"} 900"));
  // The first versions have labels of their own, and keep them. When one of these versions ends,
  // the next new version gets labels of its own.
  EXPECT_THAT(Scrape(), HasSubstr("mapping=\"hostile-0\""));
  leases.front().reset();
  const auto late = series_.Open("late", 1);
  EXPECT_THAT(Scrape(), HasSubstr("mapping=\"late\""));
  EXPECT_EQ(Series(), kOfOther + kOfVersion * VersionSeries::kMaxNamed);
}

// Production's version is loaded after a hundred trial versions, and gets its own labels as soon as
// an alias names it.
TEST_F(VersionSeriesTest, VersionsThatAliasesNameComeFirst) {
  std::vector<std::unique_ptr<const VersionSeries::Lease>> trials;
  for (int i = 0; i < VersionSeries::kMaxNamed; ++i) trials.push_back(series_.Open("trial", i));
  auto production = series_.Open("letters", 7);
  production->rows()->Increment();
  EXPECT_THAT(Scrape(), Not(HasSubstr("letters")));
  production->Promote();
  production->Promote();
  production->rows()->Increment(5);
  EXPECT_THAT(Scrape(),
              HasSubstr("phimap_version_rows_total{mapping=\"letters\",version=\"7\"} 5\n"));
  EXPECT_EQ(Series(), kOfOther + kOfVersion * (VersionSeries::kMaxNamed + 1));
  production.reset();
  EXPECT_THAT(Scrape(), Not(HasSubstr("letters")));
  // Aliases come from clients too, so their number is bounded.
  std::vector<std::unique_ptr<const VersionSeries::Lease>> aliased;
  for (int i = 0; i < 500; ++i) {
    aliased.push_back(series_.Open("aliased", i));
    aliased.back()->Promote();
  }
  EXPECT_EQ(Series(),
            kOfOther + kOfVersion * (VersionSeries::kMaxNamed + VersionSeries::kMaxAliased));
}

TEST_F(VersionSeriesTest, AMappingThatIsCalledOtherIsNotTheRest) {
  const auto lease = series_.Open("other", 1);
  lease->rows()->Increment();
  EXPECT_THAT(Scrape(), HasSubstr("{mapping=\"other\",version=\"1\"} 1"));
  EXPECT_THAT(Scrape(), HasSubstr("{mapping=\"_other\",version=\"_other\"} 0"));
}

TEST_F(VersionSeriesTest, ANameThatCouldBreakALineIsEscaped) {
  const auto lease = series_.Open("a\"} 1\nup 0\\", 1);
  EXPECT_THAT(Scrape(), HasSubstr("{mapping=\"a\\\"} 1\\nup 0\\\\\",version=\"1\"} 0\n"));
}

TEST_F(VersionSeriesTest, VersionsComeAndGoWhileTheyAreScraped) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kRounds; ++i) {
        const auto shared = series_.Open("shared", 1);
        const auto own = series_.Open(absl::StrCat("own-", t), i);
        shared->rows()->Increment();
        own->rows()->Increment();
      }
    });
  }
  for (int i = 0; i < 50; ++i) EXPECT_LE(Series(), kOfOther + kOfVersion * 2 * kThreads);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Series(), kOfOther);
}

}  // namespace
}  // namespace phimap::testing
