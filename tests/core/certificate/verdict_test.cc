#include "core/certificate/verdict.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using Grade = Verdict::Grade;
using Cause = Verdict::Cause;

// A certificate of F2 with 300 compared rows, whose distance of smoothers is `distance`. That at λ
// = 1 does not count.
Certificate WithDistance(double distance) {
  Certificate certificate{.held_out_rows = 2000, .landmarks = 500, .aim = Aim::kInnerProducts};
  certificate.fidelity =
      Fidelity{.rows = 300, .smoothers = {{1, 0.9}, {1e-2, distance}, {1e-4, distance / 2}}};
  certificate.effective_rows = EffectiveRows{1500, 800};
  certificate.serving_distance = 1e-6;
  return certificate;
}

TEST(VerdictTest, GradesByTheDistancesOfTunedLearners) {
  EXPECT_EQ(VerdictOf(WithDistance(0)).grade, Grade::kGood);
  EXPECT_EQ(VerdictOf(WithDistance(kGoodDistance)).grade, Grade::kGood);
  EXPECT_EQ(VerdictOf(WithDistance(kGoodDistance + 1e-9)).grade, Grade::kFair);
  EXPECT_EQ(VerdictOf(WithDistance(kFairDistance)).grade, Grade::kFair);
  EXPECT_EQ(VerdictOf(WithDistance(kFairDistance + 1e-9)).grade, Grade::kPoor);
  EXPECT_EQ(VerdictOf(WithDistance(1)).grade, Grade::kPoor);
  Certificate small_lambda = WithDistance(0);
  small_lambda.fidelity->smoothers.back().distance = kFairDistance;
  EXPECT_EQ(VerdictOf(small_lambda).grade, Grade::kFair);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(VerdictOf(WithDistance(nan)).grade, Grade::kPoor);
}

TEST(VerdictTest, GoodVersionsHaveNoCauseAndNoAdvice) {
  const Verdict verdict = VerdictOf(WithDistance(0.05));
  EXPECT_EQ(verdict.cause, Cause::kNone);
  EXPECT_THAT(verdict.advice, IsEmpty());
  EXPECT_EQ(
      verdict.ToText(),
      "good: on 300 new rows a tuned learner's predictions differ by up to 5 % from those on the "
      "kernel itself, at λ = 0.0001 to 0.01 of the mean eigenvalue");
}

TEST(VerdictTest, AdviceFollowsTheCause) {
  const Verdict landmarks = VerdictOf(WithDistance(0.5));
  EXPECT_EQ(landmarks.cause, Cause::kTooFewFeatures);
  EXPECT_THAT(landmarks.advice, HasSubstr("more landmarks"));

  Certificate sampled = WithDistance(0.5);
  sampled.landmarks = 0;
  EXPECT_THAT(VerdictOf(sampled).advice, HasSubstr("more dimensions"));

  Certificate cut = WithDistance(0.5);
  cut.serving_distance = 0.3;
  EXPECT_EQ(VerdictOf(cut).cause, Cause::kServingType);
  EXPECT_THAT(VerdictOf(cut).advice, HasSubstr("float64"));

  Certificate heavy = WithDistance(0.5);
  heavy.effective_rows->kernel = 12.3;
  EXPECT_EQ(VerdictOf(heavy).cause, Cause::kFewRowsCarry);
  EXPECT_THAT(VerdictOf(heavy).advice,
              HasSubstr("about 12 rows of 2000 carry the kernel's values for pairs of"));
  EXPECT_THAT(VerdictOf(heavy).advice, HasSubstr("more landmarks may not help"));
  heavy.effective_rows->kernel = 0.18;
  EXPECT_THAT(VerdictOf(heavy).advice, HasSubstr("about 1 row of 2000 carries"));
  // Of 40 held-out rows, 30 are nearly all.
  heavy.held_out_rows = heavy.fidelity->rows = 40;
  heavy.effective_rows->kernel = 30;
  EXPECT_EQ(VerdictOf(heavy).cause, Cause::kTooFewFeatures);
}

TEST(VerdictTest, WhereFewRowsCarryTheKernelLargeRegularizationCountsToo) {
  Certificate certificate = WithDistance(0.01);  // .9 at λ = 1
  EXPECT_EQ(VerdictOf(certificate).grade, Grade::kGood);
  certificate.effective_rows->kernel = 12.3;
  EXPECT_EQ(VerdictOf(certificate).grade, Grade::kPoor);
  EXPECT_EQ(VerdictOf(certificate).cause, Cause::kFewRowsCarry);
  EXPECT_THAT(VerdictOf(certificate).reason, HasSubstr("90 %"));
  EXPECT_THAT(VerdictOf(certificate).reason, HasSubstr("λ = 0.0001 to 1"));
  certificate.fidelity->smoothers[0].distance = kFairDistance;
  EXPECT_EQ(VerdictOf(certificate).grade, Grade::kGood);
}

// Where rounding errors of the kernel ask for a larger λ, it takes the place of the usual ones.
TEST(VerdictTest, NamesTheRegularizationsThatWereMeasured) {
  Certificate certificate = WithDistance(0.3);
  certificate.fidelity->smoothers = {{1, 0.9}, {0.13, 0.3}, {0.13, 0.3}};
  const Verdict verdict = VerdictOf(certificate);
  EXPECT_EQ(verdict.grade, Grade::kPoor);
  EXPECT_THAT(verdict.reason, HasSubstr("by up to 30 %"));
  EXPECT_THAT(verdict.reason, HasSubstr("at λ = 0.13 of the mean"));
  certificate.serving_distance = 0.2;
  EXPECT_EQ(VerdictOf(certificate).cause, Cause::kServingType);
}

// A kpca or F3 has fewer dimensions than the landmarks span: its rows lose more of K(x, x) than
// lies outside of the span.
TEST(VerdictTest, AsksForDimensionsWhereTheLandmarksHoldTheKernel) {
  Certificate certificate = WithDistance(0.5);
  certificate.fidelity->self_error_median = 0.3;
  certificate.fidelity->self_error_quantile_95 = 0.6;
  certificate.residual_share = ResidualShare{.median = 0.3, .quantile_95 = 0.6, .rows = 2000};
  EXPECT_EQ(VerdictOf(certificate).advice, "more landmarks reduce it");
  // If half of the rows are within the span, a median says little.
  certificate.residual_share->median = 0.01;
  EXPECT_EQ(VerdictOf(certificate).advice, "more dimensions or landmarks reduce it");
  certificate.residual_share->quantile_95 = 0.03;
  EXPECT_EQ(VerdictOf(certificate).advice, "more dimensions reduce it");
}

TEST(VerdictTest, GradesByTheDistanceOfRowsThatAreLeftOutToo) {
  Certificate certificate = WithDistance(0.01);
  certificate.left_out_distance = kGoodLeftOutDistance;
  EXPECT_EQ(VerdictOf(certificate).grade, Grade::kGood);
  certificate.left_out_distance = kFairLeftOutDistance;
  EXPECT_EQ(VerdictOf(certificate).grade, Grade::kFair);
  certificate.left_out_distance = 2.15;
  const Verdict verdict = VerdictOf(certificate);
  EXPECT_EQ(verdict.grade, Grade::kPoor);
  EXPECT_EQ(verdict.cause, Cause::kTooFewFeatures);
  EXPECT_THAT(verdict.reason, HasSubstr("was not trained on differ by 215 % from those on the"));
  // A worse grade for another reason keeps that reason.
  Certificate poor = WithDistance(0.5);
  poor.left_out_distance = 0.9;
  EXPECT_EQ(VerdictOf(poor).reason, VerdictOf(WithDistance(0.5)).reason);
  // λ = 1 says nothing where few rows carry the kernel.
  certificate.fidelity->smoothers[0].distance = kFairDistance;
  certificate.effective_rows->kernel = 12.3;
  EXPECT_EQ(VerdictOf(certificate).grade, Grade::kGood);
}

TEST(VerdictTest, APartOfAKernelOfFewDimensionsIsNeverGood) {
  Certificate certificate = WithDistance(0.01);
  certificate.rank = 58;
  EXPECT_EQ(VerdictOf(certificate).grade, Grade::kGood);
  certificate.kernel_rank = 136;
  const Verdict verdict = VerdictOf(certificate);
  EXPECT_EQ(verdict.grade, Grade::kFair);
  EXPECT_EQ(verdict.cause, Cause::kServingType);
  EXPECT_THAT(verdict.reason, HasSubstr("float32 keeps 58 of the kernel's 136 dimensions"));
}

TEST(VerdictTest, NothingIsSaidOfTooFewRows) {
  Certificate certificate = WithDistance(0);
  certificate.held_out_rows = certificate.fidelity->rows = kMinVerdictRows - 1;
  const Verdict verdict = VerdictOf(certificate);
  EXPECT_EQ(verdict.grade, Grade::kNotJudged);
  EXPECT_EQ(verdict.cause, Cause::kTooFewRows);
  EXPECT_THAT(verdict.reason, HasSubstr("29 held-out rows"));
  certificate.held_out_rows = certificate.fidelity->rows = kMinVerdictRows;
  EXPECT_EQ(VerdictOf(certificate).grade, Grade::kGood);
}

TEST(VerdictTest, AKernelThatIsConstantIsPoor) {
  Certificate certificate = WithDistance(0);
  certificate.fidelity->smoothers.clear();
  const Verdict verdict = VerdictOf(certificate);
  EXPECT_EQ(verdict.grade, Grade::kPoor);
  EXPECT_EQ(verdict.cause, Cause::kConstantKernel);
}

TEST(VerdictTest, OtherAimsSayWhatTheyAreJudgedBy) {
  Certificate f1{.held_out_rows = 2000, .landmarks = 500, .aim = Aim::kSimilarities};
  EXPECT_EQ(VerdictOf(f1).cause, Cause::kOtherAim);
  EXPECT_THAT(VerdictOf(f1).reason, HasSubstr("similarities"));
  EXPECT_THAT(VerdictOf(f1).advice, HasSubstr("phimap evaluate"));
  Certificate multiclass{.held_out_rows = 2000, .aim = Aim::kClasses};
  EXPECT_EQ(VerdictOf(multiclass).grade, Grade::kNotJudged);
  EXPECT_THAT(VerdictOf(multiclass).reason, HasSubstr("margins"));

  Certificate projection = WithDistance(0.9);
  projection.aim = Aim::kDistances;
  projection.landmarks = 0;
  projection.fidelity->distance_error_quantile_95 = 0.15;
  EXPECT_EQ(VerdictOf(projection).grade, Grade::kGood);
  EXPECT_THAT(VerdictOf(projection).reason, HasSubstr("kept within 15.0 %"));
  projection.fidelity->distance_error_quantile_95 = 0.5;
  EXPECT_EQ(VerdictOf(projection).grade, Grade::kPoor);
  EXPECT_THAT(VerdictOf(projection).advice, HasSubstr("more dimensions"));
}

TEST(VerdictTest, ArtifactsOfEarlierReleasesAreNotJudged) {
  const Verdict verdict = VerdictOf(Certificate{.held_out_rows = 2000, .landmarks = 500});
  EXPECT_EQ(verdict.grade, Grade::kNotJudged);
  EXPECT_EQ(verdict.cause, Cause::kNotMeasured);
  EXPECT_THAT(verdict.reason, HasSubstr("earlier release"));
}

}  // namespace
}  // namespace phimap::testing
