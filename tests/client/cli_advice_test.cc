#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "tests/support/matchers.h"
#include "tests/support/text_proto.h"

namespace phimap::cli {
namespace {

v1::AdviseRequest Question(const std::string& more = "") {
  return testing::Parsed<v1::AdviseRequest>("margin: 0.5 error: 0.1 confidence: 0.95 " + more);
}

v1::AdviseResponse Answer() {
  return testing::Parsed<v1::AdviseResponse>(R"text(
      lines { subject: SUBJECT_F2 source: "Theorem 1" tier: TIER_LITERAL landmarks: 82397
              dimensions: 82397 margin: 0.25 error: 0.1 note: "(8/ε)(1/γ² + ln 1/δ)" }
      lines { subject: SUBJECT_F2 source: "Theorem 1" tier: TIER_DERIVED landmarks: 215
              dimensions: 82397 margin: 0.25 error: 0.1 note: "(8/ε)(1/γ² + ln 1/δ)" }
      lines { subject: SUBJECT_WEAK_LEARNER source: "Theorem 1" tier: TIER_LITERAL
              note: "the paper says Ω(γ) only" }
      to_do: "Build f2(landmarks=215)." verdict: "F3 cannot help. Use F2."
      proposal: "f2(landmarks=215)")text");
}

TEST(AdviceViewTest, DrawsABlockForEachTheoremAndARowForEachTier) {
  EXPECT_EQ(RenderAdvice(Question(), Answer(), 80),
            "Build f2(landmarks=215).\n"
            "  phimap build NAME --input=ROWS --spec='f2(landmarks=215)' ...\n"
            "\n"
            "Why: F3 cannot help. Use F2.\n"
            "\n"
            "margin 0.5, error 0.1, confidence 0.95\n"
            "                     landmarks        dimensions    margin     error distortion\n"
            "f2: Theorem 1\n"
            "  literal               82,397            82,397      0.25       0.1          -\n"
            "             (8/ε)(1/γ² + ln 1/δ)\n"
            "  derived                  215            82,397      0.25       0.1          -\n"
            "             (8/ε)(1/γ² + ln 1/δ)\n"
            "weak learner: Theorem 1\n"
            "  literal    no number\n"
            "             the paper says Ω(γ) only\n");
}

// Where no theorem decides, the first lines say what to measure and with which commands.
TEST(AdviceViewTest, BeginsWithWhatToMeasureWhereTheTheoremAsksForTooMuch) {
  v1::AdviseResponse answer = Answer();
  answer.clear_proposal();
  answer.set_to_do("Measure: the theorem asks for a million landmarks.");
  answer.set_to_measure("f2(landmarks=auto(residual=0.1))");
  EXPECT_THAT(
      RenderAdvice(Question(), answer, 100),
      StartsWith("Measure: the theorem asks for a million landmarks.\n"
                 "  phimap build NAME --input=ROWS --spec='f2(landmarks=auto(residual=0.1))' "
                 "...\n"
                 "  phimap evaluate NAME --input=ROWS --label=COLUMN\n"
                 "  phimap sweep --input=ROWS --label=COLUMN --spec=f2 "
                 "--landmarks=100,300,1000,3000 ...\n"
                 "\n"
                 "Why: F3 cannot help. Use F2.\n"));
}

TEST(AdviceViewTest, ProposesNothingWhenTheServerDoesNot) {
  v1::AdviseResponse answer = Answer();
  answer.clear_proposal();
  answer.clear_to_do();
  const std::string text = RenderAdvice(Question(), answer, 80);
  EXPECT_THAT(text, Not(HasSubstr("phimap build")));
  EXPECT_THAT(text, StartsWith("No theorem covers this case: measure instead."));
}

TEST(AdviceViewTest, RepeatsWhatWasAsked) {
  const v1::AdviseRequest question =
      Question("alpha: 0.02 points: 1000 classes: 10 distortion: 0.05 kernel_error: 0.2");
  EXPECT_THAT(RenderAdvice(question, Answer(), 80),
              HasSubstr("margin 0.5, error 0.1, confidence 0.95, alpha 0.02, points 1,000, classes "
                        "10, distortion 0.05, kernel error 0.2\n"));
}

TEST(ParagraphTest, CountsCharactersAndNotBytes) {
  std::string out;
  AppendParagraph(out, "γ: ", std::string(37, 'a') + " ε", 42);
  EXPECT_EQ(out, "γ: " + std::string(37, 'a') + " ε\n");  // 42 characters, 44 bytes
  out.clear();
  AppendParagraph(out, "γ: ", std::string(37, 'a') + " εε", 42);
  EXPECT_EQ(out, "γ: " + std::string(37, 'a') + "\n   εε\n");
}

}  // namespace
}  // namespace phimap::cli
