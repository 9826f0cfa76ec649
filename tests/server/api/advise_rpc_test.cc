#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Line = v1::AdviseResponse::Line;

class AdviseRpcTest : public ServerFixture {
 protected:
  AdviseRpcTest() { Start(); }

  // The answer to a question about a margin, an error and a confidence, with `more` in text form.
  v1::AdviseResponse Advise(double margin, double error, double confidence,
                            const std::string& more = "") {
    return Answer(&MappingStub::Advise, absl::StrCat("margin: ", margin, " error: ", error,
                                                     " confidence: ", confidence, " ", more));
  }
  static Line LineOf(const v1::AdviseResponse& response, Line::Subject subject, Line::Tier tier) {
    for (const v1::AdviseResponse::Line& line : response.lines()) {
      if (line.subject() == subject && line.tier() == tier) return line;
    }
    ADD_FAILURE() << "no line " << Line::Subject_Name(subject) << ", " << Line::Tier_Name(tier);
    return {};
  }
};

// The first row of the golden table in advisor_test.cc, whose numbers all differ.
TEST_F(AdviseRpcTest, MatchesTheGoldenTable) {
  const v1::AdviseResponse advice = Advise(0.5, 0.1, 0.95);
  EXPECT_EQ(LineOf(advice, Line::SUBJECT_F1, Line::TIER_LITERAL).landmarks(), 560);
  EXPECT_EQ(LineOf(advice, Line::SUBJECT_F2, Line::TIER_LITERAL).dimensions(), 560);
  EXPECT_EQ(LineOf(advice, Line::SUBJECT_F2, Line::TIER_LITERAL).margin(), 0.25);
  EXPECT_EQ(LineOf(advice, Line::SUBJECT_F2, Line::TIER_DERIVED).dimensions(), 215);
  EXPECT_EQ(LineOf(advice, Line::SUBJECT_F3, Line::TIER_LITERAL).landmarks(), 1231);
  EXPECT_EQ(LineOf(advice, Line::SUBJECT_F3, Line::TIER_LITERAL).dimensions(), 35840);
  EXPECT_EQ(LineOf(advice, Line::SUBJECT_F3, Line::TIER_DERIVED).dimensions(), 5546);
  EXPECT_EQ(LineOf(advice, Line::SUBJECT_F3, Line::TIER_EXACT_LAW).dimensions(), 544);
  EXPECT_EQ(LineOf(advice, Line::SUBJECT_PROJECTION, Line::TIER_EXACT_LAW).dimensions(), 78);
  EXPECT_EQ(LineOf(advice, Line::SUBJECT_PROJECTION, Line::TIER_LITERAL).dimensions(), 0);
}

TEST_F(AdviseRpcTest, MatchesTheOtherGoldenValues) {
  const v1::AdviseResponse halves = Advise(0.5, 0.1, 0.95, "points: 1000");
  EXPECT_EQ(LineOf(halves, Line::SUBJECT_DATA_SET, Line::TIER_DERIVED).dimensions(), 1350);
  EXPECT_EQ(LineOf(halves, Line::SUBJECT_DATA_SET, Line::TIER_LITERAL).dimensions(), 4093);
  const v1::AdviseResponse classes =
      Advise(0.5, 0.1, 0.95, "points: 1000 classes: 10 distortion: 0.05");
  EXPECT_EQ(LineOf(classes, Line::SUBJECT_CLASSES, Line::TIER_LITERAL).dimensions(), 23169);
  EXPECT_NEAR(LineOf(classes, Line::SUBJECT_CLASSES, Line::TIER_LITERAL).margin(), 0.3509391, 5e-8);
  EXPECT_THAT(LineOf(classes, Line::SUBJECT_ONE_PARAMETER, Line::TIER_LITERAL).note(),
              HasSubstr("0.0592117"));
  const v1::AdviseResponse lengths = Advise(0.5, 0.1, 0.99, "distortion: 0.1 kernel_error: 0.1");
  EXPECT_EQ(LineOf(lengths, Line::SUBJECT_LENGTH, Line::TIER_LITERAL).dimensions(), 2355);
  EXPECT_EQ(LineOf(lengths, Line::SUBJECT_LENGTH, Line::TIER_DERIVED).dimensions(), 2271);
  EXPECT_EQ(LineOf(lengths, Line::SUBJECT_RANDOM_FOURIER, Line::TIER_LITERAL).dimensions(), 4239);
  EXPECT_EQ(LineOf(lengths, Line::SUBJECT_RANDOM_FOURIER, Line::TIER_DERIVED).dimensions(), 2120);
  EXPECT_NEAR(LineOf(lengths, Line::SUBJECT_WEAK_LEARNER, Line::TIER_DERIVED).success(),
              0.5 * 0.0683099, 5e-8);
  const v1::AdviseResponse projected = Advise(0.5, 0.1, 0.999, "points: 1000 distortion: 0.2");
  EXPECT_EQ(LineOf(projected, Line::SUBJECT_PROJECTED_KERNEL, Line::TIER_LITERAL).dimensions(),
            2392);
}

TEST_F(AdviseRpcTest, SaysWhenF3CannotHelpAndProposesWhatThisServerBuilds) {
  const v1::AdviseResponse advice = Advise(0.1, 0.1, 0.95);
  EXPECT_FALSE(advice.f3_helps());
  EXPECT_THAT(advice.verdict(), HasSubstr("F3 cannot help"));
  EXPECT_EQ(advice.proposal(), "f2(landmarks=4307)");
  EXPECT_NEAR(advice.f3_helps_below_error(), 0.023, 0.0005);
  const v1::AdviseResponse more = Advise(0.1, 0.01, 0.95);
  EXPECT_TRUE(more.f3_helps());
  EXPECT_EQ(more.proposal(), "");
  EXPECT_THAT(more.verdict(), HasSubstr("at most 8,192"));
  EXPECT_THAT(more.to_do(), StartsWith("Measure: "));
  EXPECT_EQ(more.to_measure(), "f2(landmarks=auto(residual=0.1))");
  EXPECT_THAT(advice.to_do(), StartsWith("Build f2(landmarks=4307)"));
  // A number that a theorem does not give is absent, not 0.
  const Line weak = LineOf(more, Line::SUBJECT_WEAK_LEARNER, Line::TIER_LITERAL);
  EXPECT_FALSE(weak.has_dimensions() || weak.has_margin() || weak.has_error() || weak.has_draws());
}

}  // namespace
}  // namespace phimap::testing
