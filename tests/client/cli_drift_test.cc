#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/cli/views/views.h"
#include "tests/support/matchers.h"
#include "tests/support/text_proto.h"

namespace phimap::cli {
namespace {

// An alias whose test has much evidence.
v1::AliasDrift Drifted() {
  return testing::Parsed<v1::AliasDrift>(R"(
      alias: "prod" version: 3 false_alarms: 0.05 promised_rows: 25920000 rows: 12300
      rows_not_finite: 2 evidence: 1.25 crossed_time { seconds: 1700000000 }
      scores { kind: KIND_COLUMN index: 4 name: "width" location: 1.25 }
      scores { kind: KIND_DIRECTION index: 2 location: 0.2 spread: 0.6 }
      scores { kind: KIND_NORM location: 0.3 }
      counted_rows: 12300 shift: 0.06 shift_scale: 0.5
      beyond_range_share: 0.01 beyond_range_expected: 0.0001
      columns_beyond_range { index: 4 name: "width" share: 0.16 }
      columns_beyond_range { index: 7 share: 0.02 })");
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
  auto alias = testing::Parsed<v1::AliasDrift>("alias: 'prod' version: 1 rows: 50");
  EXPECT_THAT(Rendered(alias), HasSubstr("): no evidence of drift\n"));
  alias.mutable_crossed_time()->set_seconds(1'700'000'000);
  EXPECT_THAT(Rendered(alias), HasSubstr("): no evidence of drift any more\n"));
  alias.clear_crossed_time();
  alias.set_rows(0);
  EXPECT_THAT(Rendered(alias), HasSubstr("): no rows tested yet\n"));
}

TEST(DriftViewTest, AnAliasThatIsNotTestedSaysWhy) {
  EXPECT_EQ(
      Rendered(testing::Parsed<v1::AliasDrift>(
          "alias: 'prod' version: 1 not_tested: \"its version is not in this server's memory\"")),
      "letters@prod (version 1): drift is not tested: its version is not in this server's "
      "memory\n");
}

}  // namespace
}  // namespace phimap::cli
