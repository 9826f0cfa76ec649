#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/cli/views/text.h"
#include "client/cli/views/views.h"

namespace phimap::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::AdviseRequest Question() {
  v1::AdviseRequest request;
  request.set_margin(0.5);
  request.set_error(0.1);
  request.set_confidence(0.95);
  return request;
}

v1::AdviseResponse Answer() {
  v1::AdviseResponse response;
  v1::AdviseResponse::Line* f2 = response.add_lines();
  f2->set_what("F2");
  f2->set_source("Theorem 1");
  f2->set_tier("literal");
  f2->set_landmarks(82'397);
  f2->set_dimensions(82'397);
  f2->set_margin(0.25);
  f2->set_error(0.1);
  f2->set_note("(8/ε)(1/γ² + ln 1/δ)");
  v1::AdviseResponse::Line* sharper = response.add_lines();
  *sharper = *f2;
  sharper->set_tier("derived");
  sharper->set_landmarks(215);
  v1::AdviseResponse::Line* weak = response.add_lines();
  weak->set_what("weak learner");
  weak->set_source("Theorem 1");
  weak->set_tier("literal");
  weak->set_note("the paper says Ω(γ) only");
  response.set_to_do("Build f2(landmarks=215).");
  response.set_verdict("F3 cannot help. Use F2.");
  response.set_proposal("f2(landmarks=215)");
  return response;
}

TEST(AdviceViewTest, DrawsABlockForEachTheoremAndARowForEachTier) {
  EXPECT_EQ(RenderAdvice(Question(), Answer(), 80),
            "Build f2(landmarks=215).\n"
            "  phimap build NAME --input=ROWS --mapping='f2(landmarks=215)' ...\n"
            "\n"
            "Why: F3 cannot help. Use F2.\n"
            "\n"
            "margin 0.5, error 0.1, confidence 0.95\n"
            "                     landmarks        dimensions    margin     error distortion\n"
            "F2: Theorem 1\n"
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
  EXPECT_THAT(RenderAdvice(Question(), answer, 100),
              ::testing::StartsWith(
                  "Measure: the theorem asks for a million landmarks.\n"
                  "  phimap build NAME --input=ROWS --mapping='f2(landmarks=auto(residual=0.1))' "
                  "...\n"
                  "  phimap evaluate NAME --input=ROWS --label=COLUMN\n"
                  "  phimap sweep --input=ROWS --label=COLUMN --mapping=f2 "
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
  EXPECT_THAT(text, ::testing::StartsWith("No theorem covers this case: measure instead."));
}

TEST(AdviceViewTest, RepeatsWhatWasAsked) {
  v1::AdviseRequest question = Question();
  question.set_alpha(0.02);
  question.set_points(1000);
  question.set_classes(10);
  question.set_distortion(0.05);
  question.set_kernel_error(0.2);
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
