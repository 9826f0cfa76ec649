#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/cli/views/views.h"

namespace phimap::cli {
namespace {

// An alias whose test has much evidence.
v1::AliasDrift Drifted() {
  v1::AliasDrift alias;
  alias.set_alias("prod");
  alias.set_version(3);
  alias.set_false_alarms(0.05);
  alias.set_promised_rows(25'920'000);
  alias.set_rows(12'300);
  alias.set_rows_not_finite(2);
  alias.set_evidence(1.25);
  alias.mutable_crossed_time()->set_seconds(1'700'000'000);
  v1::AliasDrift::Score& column = *alias.add_scores();
  column.set_kind("column");
  column.set_index(4);
  column.set_name("width");
  column.set_location(1.25);
  v1::AliasDrift::Score& direction = *alias.add_scores();
  direction.set_kind("direction");
  direction.set_index(2);
  direction.set_location(0.2);
  direction.set_spread(0.6);
  v1::AliasDrift::Score& weak = *alias.add_scores();
  weak.set_kind("norm");
  weak.set_location(0.3);
  alias.set_counted_rows(12'300);
  alias.set_shift(0.06);
  alias.set_shift_scale(0.5);
  alias.set_beyond_range_share(0.01);
  alias.set_beyond_range_expected(0.0001);
  v1::AliasDrift::Column& beyond = *alias.add_columns_beyond_range();
  beyond.set_index(4);
  beyond.set_name("width");
  beyond.set_share(0.16);
  v1::AliasDrift::Column& unnamed = *alias.add_columns_beyond_range();
  unnamed.set_index(7);
  unnamed.set_share(0.02);
  return alias;
}

std::string Rendered(const v1::AliasDrift& alias) {
  v1::GetDriftResponse response;
  *response.add_aliases() = alias;
  return RenderDrift("letters", response);
}

TEST(DriftViewTest, DriftIsSaidFirstAndExplained) {
  EXPECT_EQ(
      Rendered(Drifted()),
      "letters@prod (version 3): the served rows have drifted\n"
      "  evidence: 1.25, of 1, after 12,300 rows; it last reached 1 on 2023-11-14 at 22:13 UTC\n"
      "            2 more rows have scores that are not finite\n"
      "  scores:   column width has moved (1.25), direction 2 is spread differently (0.60)\n"
      "  shift:    the mean of F has moved by 12 % of the deviation of F, over the last 12,300 "
      "rows\n"
      "  range:    1 % of the numbers are beyond the range that the version was built from; "
      "without drift at most 0.01 %\n"
      "            worst: column width in 16 % of the rows, column 7 in 2 % of the rows\n"
      "  promise:  without drift, a false alarm within 25,920,000 rows has a probability of at "
      "most "
      "5 %\n");
}

TEST(DriftViewTest, NoEvidenceIsNoDrift) {
  v1::AliasDrift alias;
  alias.set_alias("prod");
  alias.set_version(1);
  alias.set_rows(50);
  EXPECT_THAT(Rendered(alias), ::testing::HasSubstr("): no evidence of drift\n"));
  alias.mutable_crossed_time()->set_seconds(1'700'000'000);
  EXPECT_THAT(Rendered(alias), ::testing::HasSubstr("): no evidence of drift any more\n"));
  alias.clear_crossed_time();
  alias.set_rows(0);
  EXPECT_THAT(Rendered(alias), ::testing::HasSubstr("): no rows tested yet\n"));
}

TEST(DriftViewTest, AnAliasThatIsNotTestedSaysWhy) {
  v1::AliasDrift alias;
  alias.set_alias("prod");
  alias.set_version(1);
  alias.set_not_tested("its version is not in this server's memory");
  EXPECT_EQ(Rendered(alias),
            "letters@prod (version 1): drift is not tested: its version is not in this server's "
            "memory\n");
}

}  // namespace
}  // namespace phimap::cli
