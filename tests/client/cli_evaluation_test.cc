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
#include "tests/support/matchers.h"
#include "tests/support/text_proto.h"

namespace phimap::cli {
namespace {

v1::Evaluation Example(int classes = 2) {
  auto evaluation = testing::Parsed<v1::Evaluation>(R"text(
      version { name: "letters" number: 3 } learner: "linear_svm(C=1)" rows: 1000
      tested_rows: 300 held_out: 0.3 errors: 30 error: 0.1 error_standard_error: 0.0173
      error_low: 0.0684 error_high: 0.1397 confidence: 0.95
      error_premise: "assumes that the tested rows were drawn"
      confusion { actual: 1 predicted: 0 count: 15 } folds { summary: "5 steps" }
      certified_margins { alpha: 0 rows_margin: -0.5 }
      certified_margins { alpha: 0.05 rows_margin: 0.02 margin: -0.01 }
      certified_margins { alpha: 0.1 rows_margin: 0.1 margin: 0.08 }
      certified_margins { alpha: 0.2 rows_margin: 0.2 margin: 0.16 })text");
  for (int i = 0; i < classes; ++i) {
    *evaluation.add_classes() = testing::Parsed<v1::Evaluation::Class>(absl::StrCat(
        "label: 'class ", i, "' rows: 500 tested_rows: 150 predicted: 140 correct: 135"));
  }
  for (int i = 0; i <= 100; ++i) evaluation.add_margin_quantiles(i / 100.0);
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
  v1::Evaluation evaluation =
      testing::Merged(Example(),
                      "tested_rows: 1200 errors: 0 error: 0 error_standard_error: 0 error_low: 0 "
                      "error_high: 0.0030694");
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
  std::string origin = AskFromEvaluation(Example(), std::nullopt, request).value();
  EXPECT_EQ(request.margin(), 0.08);
  EXPECT_EQ(request.alpha(), 0.1);
  EXPECT_EQ(request.classes(), 0);
  EXPECT_THAT(origin, HasSubstr("letters@3"));
  ASSERT_TRUE(AskFromEvaluation(Example(), 0.2, request).ok());
  EXPECT_EQ(request.margin(), 0.16);
  EXPECT_EQ(request.alpha(), 0.2);
}

TEST(CertifiedQuestionTest, OfSeveralClassesTheMarginOfTwoIsHalfAndTheInterceptIsTold) {
  v1::Evaluation evaluation = Example(5);
  evaluation.set_intercept_scale(1);
  v1::AdviseRequest request;
  const std::string origin = AskFromEvaluation(evaluation, std::nullopt, request).value();
  EXPECT_EQ(request.margin(), 0.04);
  EXPECT_EQ(request.classes(), 5);
  EXPECT_THAT(origin, HasSubstr("K + 1"));
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
  const v1::Evaluation same = read(*JsonText(evaluation)).value();
  EXPECT_EQ(same.SerializeAsString(), evaluation.SerializeAsString());
  for (const char* text : {"", "{}", "[1]", "{\"lines\": []}", "not json"}) {
    EXPECT_EQ(read(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_FALSE(ReadEvaluation("/nowhere/at/all").ok());
}

}  // namespace
}  // namespace phimap::cli
