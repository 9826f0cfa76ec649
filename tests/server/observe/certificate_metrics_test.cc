#include "server/observe/certificate_metrics.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

const CertificateFigures kAll = {.landmarks = 500,
                                 .rank = 499,
                                 .trace_residual = 0.25,
                                 .held_out_trace_residual = 0.5,
                                 .kernel_error_mean = 0.125,
                                 .kernel_error_max = 0.75,
                                 .serving_error_mean = 1,
                                 .serving_error_max = 2,
                                 .mean_squared_norm = 0.875};

// The number of series of an alias if its certificate contains all figures.
constexpr int64_t kAllSeries = 9;

class CertificateMetricsTest : public ::testing::Test {
 protected:
  std::string Scrape() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }
  int64_t Series() const {
    const std::string text = Scrape();
    const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
    return std::count_if(lines.begin(), lines.end(), [](absl::string_view line) {
      return absl::StartsWith(line, "phimap_certificate_");
    });
  }

  prometheus::Registry registry_;
  CertificateMetrics metrics_{registry_};
};

TEST_F(CertificateMetricsTest, AnAliasShowsTheFiguresOfItsVersion) {
  metrics_.Show("letters", "prod", 7, kAll);
  const std::string at = "{alias=\"prod\",mapping=\"letters\",version=\"7\"} ";
  const std::string with = "{alias=\"prod\",mapping=\"letters\",stat=\"";
  for (const std::string& line :
       {"phimap_certificate_landmarks" + at + "500", "phimap_certificate_rank" + at + "499",
        "phimap_certificate_mean_squared_norm" + at + "0.875",
        "phimap_certificate_trace_residual_ratio" + at + "0.25",
        "phimap_certificate_held_out_trace_residual_ratio" + at + "0.5",
        "phimap_certificate_kernel_error_ratio" + with + "mean\",version=\"7\"} 0.125",
        "phimap_certificate_kernel_error_ratio" + with + "max\",version=\"7\"} 0.75",
        "phimap_certificate_serving_error_ratio" + with + "mean\",version=\"7\"} 1",
        "phimap_certificate_serving_error_ratio" + with + "max\",version=\"7\"} 2"}) {
    EXPECT_THAT(Scrape(), HasSubstr(line + "\n"));
  }
}

TEST_F(CertificateMetricsTest, AMoveTakesTheOldVersionAway) {
  metrics_.Show("letters", "prod", 7, kAll);
  metrics_.Show("letters", "prod", 8, {.landmarks = 100});
  EXPECT_THAT(Scrape(), Not(HasSubstr("version=\"7\"")));
  // A figure that was not measured has no series.
  EXPECT_EQ(Series(), 1);
  metrics_.Hide("letters", "prod");
  EXPECT_EQ(Series(), 0);
  metrics_.Hide("letters", "prod");
}

TEST_F(CertificateMetricsTest, HoweverManyAliasesThereAreTheSeriesAreBounded) {
  for (int i = 0; i < 1000; ++i) metrics_.Show(absl::StrCat("hostile-", i), "prod", 1, kAll);
  EXPECT_EQ(Series(), kAllSeries * CertificateMetrics::kMaxShown);
  EXPECT_THAT(Scrape(), HasSubstr("phimap_certificates_not_shown_total 900\n"));
  // An alias that has series keeps them when it moves to another version. Hiding an alias makes
  // room for another.
  metrics_.Show("hostile-0", "prod", 2, kAll);
  EXPECT_THAT(Scrape(), HasSubstr("mapping=\"hostile-0\",version=\"2\""));
  metrics_.Hide("hostile-0", "prod");
  metrics_.Show("late", "prod", 1, kAll);
  EXPECT_THAT(Scrape(), HasSubstr("mapping=\"late\""));
  EXPECT_EQ(Series(), kAllSeries * CertificateMetrics::kMaxShown);
}

TEST_F(CertificateMetricsTest, AliasesMoveWhileTheyAreScraped) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 300; ++i) {
        metrics_.Show("letters", "prod", i % 5, kAll);
        if (i % 7 == 0) metrics_.Hide("letters", "prod");
      }
    });
  }
  for (int i = 0; i < 50; ++i) EXPECT_LE(Series(), 3 * kAllSeries);
  for (std::thread& thread : threads) thread.join();
  metrics_.Hide("letters", "prod");
  EXPECT_EQ(Series(), 0);
}

}  // namespace
}  // namespace phimap::testing
