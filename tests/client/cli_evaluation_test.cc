// Tests how an evaluation is displayed, and how it is turned into a request for advice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/certified_question.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "tests/client/temp_file.h"

namespace phimap::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Evaluation Example(int classes = 2) {
  v1::Evaluation evaluation;
  evaluation.mutable_version()->set_mapping("letters");
  evaluation.mutable_version()->set_number(3);
  evaluation.set_learner("linear_svm(C=1)");
  evaluation.set_rows(1000);
  evaluation.set_tested_rows(300);
  evaluation.set_held_out(0.3);
  evaluation.set_errors(30);
  evaluation.set_error(0.1);
  evaluation.set_error_standard_error(0.0173);
  evaluation.set_error_low(0.0684);
  evaluation.set_error_high(0.1397);
  evaluation.set_error_premise("assumes that the tested rows were drawn");
  evaluation.set_confidence(0.95);
  for (int i = 0; i < classes; ++i) {
    auto& c = *evaluation.add_classes();
    c.set_label(absl::StrCat("class ", i));
    c.set_rows(500);
    c.set_tested_rows(150);
    c.set_predicted(140);
    c.set_correct(135);
  }
  auto& mistake = *evaluation.add_confusion();
  mistake.set_actual(1);
  mistake.set_predicted(0);
  mistake.set_count(15);
  evaluation.add_folds()->set_summary("5 steps");
  for (int i = 0; i <= 100; ++i) evaluation.add_margin_quantiles(i / 100.0);
  struct {
    double alpha, rows, margin;
  } const certified[] = {{0, -0.5, 0}, {0.05, 0.02, -0.01}, {0.1, 0.1, 0.08}, {0.2, 0.2, 0.16}};
  for (const auto& c : certified) {
    auto& added = *evaluation.add_certified_margins();
    added.set_alpha(c.alpha);
    added.set_rows_margin(c.rows);
    if (c.margin != 0) added.set_margin(c.margin);
  }
  return evaluation;
}

TEST(EvaluationViewTest, ShowsErrorsClassesMarginsAndWhatIsCertified) {
  const std::string text = RenderEvaluation(Example(), 100);
  EXPECT_THAT(text, HasSubstr("letters@3  linear_svm(C=1)\n"));
  EXPECT_THAT(text, HasSubstr("10.00 %"));
  EXPECT_THAT(text, HasSubstr("30 rows were assigned a class not theirs"));
  EXPECT_THAT(text, HasSubstr("6.84 to 13.97 %   of future rows, confidence 0.95\n"));
  EXPECT_THAT(text, HasSubstr("assumes that the tested rows were drawn\n"));
  EXPECT_THAT(text, HasSubstr("class 1 as class 0 (15)"));
  EXPECT_THAT(text, HasSubstr("90.00 %    96.43 %"));  // recall 135/150, precision 135/140
  EXPECT_THAT(text, HasSubstr("5 steps"));
  EXPECT_THAT(text,
              HasSubstr("  0                   -0.500000                                  -\n"));
  EXPECT_THAT(text, HasSubstr("0.080000\n"));
  EXPECT_THAT(text, Not(HasSubstr("intercept")));
}

// The standard error of no error is 0, which is no certainty: 0.31 % is 1 − .025^(1/1200).
TEST(EvaluationViewTest, NoErrorIsShownWithItsInterval) {
  v1::Evaluation evaluation = Example();
  evaluation.set_tested_rows(1200);
  evaluation.set_errors(0);
  evaluation.set_error(0);
  evaluation.set_error_standard_error(0);
  evaluation.set_error_low(0);
  evaluation.set_error_high(0.0030694);
  const std::string text = RenderEvaluation(evaluation, 100);
  EXPECT_THAT(text, HasSubstr("0.00 to 0.31 % "));
  EXPECT_THAT(text, Not(HasSubstr("±")));
  // A server of an earlier release sends no interval, and none is shown.
  evaluation.clear_error_low();
  EXPECT_THAT(RenderEvaluation(evaluation, 100), Not(HasSubstr(" to 0.")));
}

TEST(EvaluationViewTest, SaysWhatTheInterceptDoesAndWhyNothingIsCertified) {
  v1::Evaluation evaluation = Example();
  evaluation.set_intercept_scale(2);
  evaluation.clear_certified_margins();
  evaluation.add_warnings("be careful");
  const std::string text = RenderEvaluation(evaluation, 200);
  EXPECT_THAT(text, HasSubstr("The learner has an intercept"));
  EXPECT_THAT(text, HasSubstr("this requires features that are coordinates"));
  EXPECT_THAT(text, HasSubstr("warning: be careful"));
}

TEST(EvaluationViewTest, LabelsCannotDrawAndManyClassesAreCut) {
  v1::Evaluation evaluation = Example(50);
  evaluation.mutable_classes(0)->set_label("\x1b[2J" + std::string(100, 'x'));
  // A label is shown with a limited number of bytes. Here the limit falls in the middle of the
  // first ü, which has two bytes.
  evaluation.mutable_classes(1)->set_label(std::string(23, 'y') + "üüü");
  const std::string text = RenderEvaluation(evaluation, 100);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("?[2J"));
  EXPECT_THAT(text, HasSubstr(std::string(23, 'y') + "..."));
  EXPECT_THAT(text, HasSubstr("and 10 more, in --json"));
}

TEST(CertifiedQuestionTest, TakesTheLeastShareWithAMarginOrTheOneThatIsNamed) {
  v1::AdviseRequest request;
  absl::StatusOr<std::string> origin = AskFromEvaluation(Example(), std::nullopt, request);
  ASSERT_TRUE(origin.ok()) << origin.status();
  EXPECT_EQ(request.margin(), 0.08);
  EXPECT_EQ(request.alpha(), 0.1);
  EXPECT_EQ(request.classes(), 0);
  EXPECT_THAT(*origin, HasSubstr("letters@3"));
  ASSERT_TRUE(AskFromEvaluation(Example(), 0.2, request).ok());
  EXPECT_EQ(request.margin(), 0.16);
  EXPECT_EQ(request.alpha(), 0.2);
}

TEST(CertifiedQuestionTest, OfSeveralClassesTheMarginOfTwoIsHalfAndTheInterceptIsTold) {
  v1::Evaluation evaluation = Example(5);
  evaluation.set_intercept_scale(1);
  v1::AdviseRequest request;
  const absl::StatusOr<std::string> origin = AskFromEvaluation(evaluation, std::nullopt, request);
  ASSERT_TRUE(origin.ok());
  EXPECT_EQ(request.margin(), 0.04);
  EXPECT_EQ(request.classes(), 5);
  EXPECT_THAT(*origin, HasSubstr("K + 1"));
  request.set_classes(7);
  ASSERT_TRUE(AskFromEvaluation(evaluation, std::nullopt, request).ok());
  EXPECT_EQ(request.classes(), 7);
}

TEST(CertifiedQuestionTest, WhatIsOfNoUseIsRefusedWithWhatThereIs) {
  const auto error_of = [](const v1::Evaluation& evaluation, std::optional<double> alpha) {
    v1::AdviseRequest request;
    const absl::Status status = AskFromEvaluation(evaluation, alpha, request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(error_of(Example(), 0.05), HasSubstr("one of 0.1, 0.2, got 0.05"));
  v1::Evaluation nothing = Example();
  nothing.clear_certified_margins();
  EXPECT_THAT(error_of(nothing, std::nullopt), HasSubstr("certifies no margin"));
  v1::Evaluation negative = Example();
  for (auto& c : *negative.mutable_certified_margins()) c.set_margin(-0.1);
  EXPECT_THAT(error_of(negative, std::nullopt), HasSubstr("at any share"));
}

TEST(CertifiedQuestionTest, ReadsWhatEvaluateWroteAndNothingElse) {
  const auto read = [](const std::string& text) {
    const TempFolder folder;
    return ReadEvaluation(folder.Write("evaluation.json", text));
  };
  const v1::Evaluation evaluation = Example();
  const absl::StatusOr<v1::Evaluation> same = read(*JsonText(evaluation));
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->SerializeAsString(), evaluation.SerializeAsString());
  for (const char* text : {"", "{}", "[1]", "{\"lines\": []}", "not json"}) {
    EXPECT_EQ(read(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_FALSE(ReadEvaluation("/nowhere/at/all").ok());
}

}  // namespace
}  // namespace phimap::cli
