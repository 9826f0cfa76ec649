#include "core/theory/advisor.h"

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Subject = AdviceSubject;

Advice MustAdvise(const AdviceQuery& query) {
  const absl::StatusOr<Advice> advice = Advise(query);
  EXPECT_TRUE(advice.ok()) << advice.status();
  return advice.ok() ? *advice : Advice();
}

// Returns the advice line for `subject` and `tier`. If there is none, fails the test and returns an
// empty line.
AdviceLine LineOf(const Advice& advice, Subject subject, Tier tier) {
  for (const AdviceLine& line : advice.lines) {
    if (line.subject == subject && line.tier == tier) return line;
  }
  ADD_FAILURE() << "no line " << static_cast<int>(subject) << ", " << static_cast<int>(tier);
  return {};
}

TEST(AdvisorTest, MatchesTheGoldenTable) {
  struct {
    double margin, error, confidence;
    int64_t literal, binomial, d2, d3_literal, d3_derived, d3_exact, direct;
  } const cases[] = {{0.5, 0.1, 0.95, 560, 215, 1231, 35840, 5546, 544, 78},
                     {0.2, 0.1, 0.95, 2240, 1150, 4591, 219742, 43403, 3615, 634},
                     {0.1, 0.1, 0.95, 8240, 4307, 16591, 873440, 186200, 14584, 2624},
                     {0.1, 0.01, 0.95, 82397, 43225, 165903, 1110708, 241285, 21399, 4282}};
  for (const auto& c : cases) {
    SCOPED_TRACE(::testing::Message() << c.margin << " " << c.error);
    const Advice advice =
        MustAdvise({.margin = c.margin, .error = c.error, .confidence = c.confidence});
    for (const Subject what : {Subject::kF1, Subject::kF2}) {
      EXPECT_EQ(LineOf(advice, what, Tier::kLiteral).landmarks, c.literal);
      EXPECT_EQ(LineOf(advice, what, Tier::kLiteral).dimensions, c.literal);
      EXPECT_EQ(LineOf(advice, what, Tier::kDerived).landmarks, c.binomial);
    }
    EXPECT_EQ(LineOf(advice, Subject::kF1, Tier::kLiteral).margin, std::nullopt);
    EXPECT_EQ(LineOf(advice, Subject::kF2, Tier::kLiteral).margin, c.margin / 2);
    EXPECT_EQ(LineOf(advice, Subject::kF3, Tier::kLiteral).landmarks, c.d2);
    EXPECT_EQ(LineOf(advice, Subject::kF3, Tier::kLiteral).margin, c.margin / 4);
    EXPECT_EQ(LineOf(advice, Subject::kF3, Tier::kLiteral).dimensions, c.d3_literal);
    EXPECT_EQ(LineOf(advice, Subject::kF3, Tier::kDerived).dimensions, c.d3_derived);
    EXPECT_EQ(LineOf(advice, Subject::kF3, Tier::kExact).dimensions, c.d3_exact);
    EXPECT_EQ(LineOf(advice, Subject::kProjection, Tier::kExact).dimensions, c.direct);
  }
}

TEST(AdvisorTest, MatchesTheGoldenValuesOfDataSetsAndClasses) {
  const AdviceQuery query{.margin = 0.5, .error = 0.1, .confidence = 0.95, .points = 1000};
  const Advice halves = MustAdvise(query);
  const AdviceLine derived = LineOf(halves, Subject::kDataSet, Tier::kDerived);
  EXPECT_EQ(derived.dimensions, 1350);
  EXPECT_NEAR(derived.distortion.value_or(0), 0.2, 1e-14);
  EXPECT_NEAR(derived.margin.value_or(0), 0.25, 1e-14);
  const AdviceLine printed = LineOf(halves, Subject::kDataSet, Tier::kLiteral);
  EXPECT_EQ(printed.dimensions, 4093);
  EXPECT_NEAR(printed.distortion.value_or(0), 1.0 / 9, 1e-14);
  EXPECT_NEAR(printed.margin.value_or(0), 0.25, 1e-14);

  AdviceQuery classes = query;
  classes.classes = 10;
  classes.distortion = 0.05;
  const Advice advice = MustAdvise(classes);
  EXPECT_EQ(LineOf(advice, Subject::kClasses, Tier::kLiteral).dimensions, 23169);
  EXPECT_NEAR(LineOf(advice, Subject::kClasses, Tier::kLiteral).margin.value_or(0), 0.3509391,
              5e-8);
  EXPECT_THAT(LineOf(advice, Subject::kOneParameter, Tier::kLiteral).note,
              HasSubstr("e < 0.0592117"));
  EXPECT_GT(LineOf(advice, Subject::kOneParameter, Tier::kLiteral).margin.value_or(0), 0);
  classes.distortion = 0.0593;  // just over the critical distortion
  const AdviceLine over = LineOf(MustAdvise(classes), Subject::kOneParameter, Tier::kLiteral);
  EXPECT_EQ(over.dimensions, std::nullopt);
  EXPECT_THAT(over.note, HasSubstr("under 0.0592117"));
  EXPECT_THAT(
      LineOf(
          MustAdvise({.margin = 0.9, .error = 0.1, .confidence = 0.95, .points = 10, .classes = 3}),
          Subject::kOneParameter, Tier::kLiteral)
          .note,
      HasSubstr("e < 0.225057"));
}

TEST(AdvisorTest, MatchesTheGoldenValuesOfLengthsKernelsAndFeatures) {
  const Advice advice = MustAdvise(
      {.margin = 0.5, .error = 0.1, .confidence = 0.99, .distortion = 0.1, .kernel_error = 0.1});
  EXPECT_EQ(LineOf(advice, Subject::kLength, Tier::kLiteral).dimensions, 2355);
  EXPECT_EQ(LineOf(advice, Subject::kLength, Tier::kDerived).dimensions, 2271);
  EXPECT_EQ(LineOf(advice, Subject::kRandomFourier, Tier::kLiteral).dimensions, 4239);
  EXPECT_EQ(LineOf(advice, Subject::kRandomFourier, Tier::kDerived).dimensions, 2120);
  // β = 1 corresponds to confidence 1 − 1/n.
  const Advice kernels = MustAdvise(
      {.margin = 0.5, .error = 0.1, .confidence = 0.999, .points = 1000, .distortion = 0.2});
  EXPECT_EQ(LineOf(kernels, Subject::kProjectedKernel, Tier::kLiteral).dimensions, 2392);
}

TEST(AdvisorTest, ADataSetOfOnePointIsNotCalledPoints) {
  for (const int64_t points : {1, 2}) {
    const Advice advice =
        MustAdvise({.margin = 0.5, .error = 0.1, .confidence = 0.95, .points = points});
    EXPECT_EQ(LineOf(advice, Subject::kDataSet, Tier::kLiteral).note,
              points == 1 ? "of the one point" : "of all 2 points");
  }
}

TEST(AdvisorTest, MatchesTheGoldenValueOfTheWeakLearner) {
  const AdviceLine line = LineOf(MustAdvise({.margin = 0.5, .error = 0.1, .confidence = 0.95}),
                                 Subject::kWeakLearner, Tier::kDerived);
  EXPECT_NEAR(line.success.value_or(0), 0.5 * 0.0683099, 5e-8);
  EXPECT_EQ(line.error, 0.375);
  EXPECT_THAT(line.note, HasSubstr("0.416667"));  // 1/2 − γ/6
}

// For a result that is stated only with O() or Ω(), the advice never contains a number.
TEST(AdvisorTest, WhatThePapersSayWithOAloneHasNoNumber) {
  const Advice advice = MustAdvise({.margin = 0.5, .error = 0.1, .confidence = 0.95});
  for (const Subject what : {Subject::kProjection, Subject::kWeakLearner}) {
    const AdviceLine line = LineOf(advice, what, Tier::kLiteral);
    EXPECT_EQ(line.dimensions, std::nullopt);
    EXPECT_EQ(line.draws, std::nullopt);
    EXPECT_THAT(line.note, HasSubstr("only"));
  }
}

TEST(AdvisorTest, EveryRowHasItsTiersAndALineWithoutANumberSaysWhy) {
  for (const AdviceQuery& query :
       {AdviceQuery{.margin = 0.5, .error = 0.1, .confidence = 0.95},
        AdviceQuery{.margin = 0.5, .error = 0.1, .confidence = 0.95, .points = 9, .classes = 3},
        AdviceQuery{.margin = 0.5, .error = 0.1, .confidence = 0.95, .alpha = 0.3},
        AdviceQuery{.margin = 1e-4, .error = 1e-6, .confidence = 1 - 1e-9}}) {
    const Advice advice = MustAdvise(query);
    std::set<int> subjects;
    for (const AdviceLine& line : advice.lines) {
      subjects.insert(static_cast<int>(line.subject));
      EXPECT_THAT(line.source, Not(IsEmpty()));
      EXPECT_THAT(line.note, Not(IsEmpty())) << static_cast<int>(line.subject);
    }
    EXPECT_THAT(subjects, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13));
  }
}

// Checks the numbers over the whole range of queries: no overflow and no NaN.
TEST(AdvisorTest, EveryNumberIsSaneOnTheWholeRange) {
  for (double margin : {1e-4, 0.7, 1.0}) {
    for (double error : {1e-6, 1 - 1e-6}) {
      for (double confidence : {1e-9, 1 - 1e-9}) {
        for (double distortion : {0.0, 1e-6, 1 - 1e-6}) {
          const Advice advice = MustAdvise({.margin = margin,
                                            .error = error,
                                            .confidence = confidence,
                                            .points = 1'000'000'000'000'000,
                                            .classes = 1'000'000,
                                            .distortion = distortion,
                                            .kernel_error = 1e-6});
          for (const AdviceLine& line : advice.lines) {
            SCOPED_TRACE(static_cast<int>(line.subject));
            EXPECT_GE(line.dimensions.value_or(1), 1);
            EXPECT_GE(line.landmarks.value_or(1), 1);
            EXPECT_GT(line.margin.value_or(1), 0);
            EXPECT_LE(line.margin.value_or(0), margin);
            EXPECT_GT(line.error.value_or(1), 0);
            EXPECT_LT(line.distortion.value_or(0), 1);
          }
        }
      }
    }
  }
}

TEST(AdvisorTest, SaysWhenF3CannotHelpAndFromWhichErrorOnItDoes) {
  const Advice cannot = MustAdvise({.margin = 0.1, .error = 0.1, .confidence = 0.95});
  EXPECT_FALSE(cannot.f3_helps);
  EXPECT_EQ(cannot.proposal, "f2(landmarks=4307)");
  EXPECT_THAT(cannot.verdict, HasSubstr("F3 cannot help"));
  // At γ = 0.1, F3 needs fewer dimensions than F2 only for an error below a limit. This limit is
  // .023 if the exact law of F3 is compared with the binomial law of F2. It is 3e-3 if derived
  // bounds are compared with literal ones, and 6e-4 if literal bounds are compared with literal
  // ones.
  EXPECT_NEAR(cannot.f3_helps_below_error, 0.023, 0.0005);
  EXPECT_THAT(cannot.verdict, HasSubstr("below 0.023 (exact law against binomial)"));
  EXPECT_THAT(cannot.verdict, HasSubstr("below 0.0031 (derived against literal)"));
  EXPECT_THAT(cannot.verdict, HasSubstr("below 0.00059 (both literal)"));
  for (const Tier tier : {Tier::kLiteral, Tier::kDerived, Tier::kExact}) {
    EXPECT_THAT(LineOf(cannot, Subject::kF3, tier).note,
                HasSubstr("more dimensions than landmarks"));
  }
  const Advice helps = MustAdvise({.margin = 0.1, .error = 0.01, .confidence = 0.95});
  EXPECT_TRUE(helps.f3_helps);
  EXPECT_THAT(helps.verdict, HasSubstr("F3 helps: 21,399 features where F2 has 43,225"));
  EXPECT_EQ(helps.proposal, "f3(landmarks=87798, dimensions=21399)");
  EXPECT_NEAR(helps.f3_helps_below_error, cannot.f3_helps_below_error, 1e-12);
}

TEST(AdvisorTest, TheTurningPointIsOne) {
  for (double margin : {0.5, 0.05}) {
    const double turn =
        MustAdvise({.margin = margin, .error = 0.1, .confidence = 0.9}).f3_helps_below_error;
    EXPECT_TRUE(MustAdvise({.margin = margin, .error = turn * 0.98, .confidence = 0.9}).f3_helps);
    EXPECT_FALSE(MustAdvise({.margin = margin, .error = turn * 1.02, .confidence = 0.9}).f3_helps);
  }
}

TEST(AdvisorTest, ProposesNothingThatCannotBeBuiltAndSaysWhatCan) {
  AdviceQuery query{.margin = 0.1, .error = 0.01, .confidence = 0.95, .max_landmarks = 8192};
  const Advice advice = MustAdvise(query);
  EXPECT_EQ(advice.proposal, "");
  EXPECT_EQ(advice.to_measure, "f2(landmarks=auto(residual=0.1))");
  EXPECT_THAT(advice.to_do, StartsWith("Measure: the theorem asks for 87,798 landmarks "
                                       "where a mapping has at most 8,192"));
  EXPECT_THAT(advice.to_do, HasSubstr("Build f2(landmarks=auto(residual=0.1)), which adds"));
  EXPECT_THAT(advice.to_do, HasSubstr("test a learner on labeled rows"));
  EXPECT_THAT(advice.verdict, HasSubstr("a mapping has at most 8,192: with these, F2 has error at "
                                        "most 0.0527"));
  query.error = 0.053;
  const Advice fits = MustAdvise(query);
  EXPECT_EQ(fits.proposal.substr(0, 13), "f2(landmarks=");
  EXPECT_EQ(fits.to_measure, "");
  EXPECT_THAT(fits.to_do, StartsWith("Build " + fits.proposal + ": so many landmarks"));
  query.margin = 0.01;
  EXPECT_THAT(MustAdvise(query).verdict, HasSubstr("gives no guarantee for so few landmarks"));
}

TEST(AdvisorTest, ExamplesThatMissTheMarginAddToTheError) {
  const Advice advice =
      MustAdvise({.margin = 0.5, .error = 0.1, .confidence = 0.95, .alpha = 0.25});
  EXPECT_EQ(LineOf(advice, Subject::kF2, Tier::kLiteral).landmarks, 560);
  EXPECT_EQ(LineOf(advice, Subject::kF2, Tier::kLiteral).error, 0.35);
  EXPECT_EQ(LineOf(advice, Subject::kF3, Tier::kExact).error, 0.35);
  EXPECT_THAT(LineOf(advice, Subject::kF3PerfectSample, Tier::kExact).note, HasSubstr("alpha = 0"));
  EXPECT_EQ(LineOf(advice, Subject::kF3PerfectSample, Tier::kExact).dimensions, std::nullopt);
}

TEST(AdvisorTest, WhatIsOutOfRangeIsNamedWithItsRange) {
  const AdviceQuery good{.margin = 0.5, .error = 0.1, .confidence = 0.95};
  struct {
    const char* field;
    AdviceQuery query;
  } cases[] = {{"margin", good},      {"margin", good},  {"margin", good},
               {"error", good},       {"error", good},   {"confidence", good},
               {"confidence", good},  {"alpha", good},   {"alpha", good},
               {"points", good},      {"classes", good}, {"distortion", good},
               {"kernel_error", good}};
  cases[0].query.margin = 0;
  cases[1].query.margin = 1.5;
  cases[2].query.margin = std::nan("");
  cases[3].query.error = 0;
  cases[4].query.error = 1;
  cases[5].query.confidence = 95;
  cases[6].query.confidence = 1;
  cases[7].query.alpha = -0.1;
  cases[8].query.alpha = 0.9;  // with an error of 0.1, alpha + error is 1, so nothing is promised
  cases[9].query.points = -1;
  cases[10].query.classes = 1;
  cases[11].query.distortion = 1;
  cases[12].query.kernel_error = 2;
  for (const auto& c : cases) {
    EXPECT_THAT(
        Advise(c.query).status(),
        IsError(StatusCode::kInvalidArgument, "FIELD_OUT_OF_RANGE", c.field, HasSubstr("expected")))
        << c.field;
  }
  EXPECT_TRUE(good.Validate().ok());
}

}  // namespace
}  // namespace phimap::testing
