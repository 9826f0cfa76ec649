// Tests `phimap evaluate` as a user would run it, against a real server and on real data.
#include <google/protobuf/util/json_util.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping_service.pb.h"
#include "tests/e2e/cli_fixture.h"
#include "tests/support/matchers.h"
#include "tests/support/source_dir.h"

namespace phimap::e2e {
namespace {

const std::string kCancer = testing::SourcePath("lab/data/cancer.csv");

class EvaluateTest : public CliFixture {
 protected:
  void Build(const std::string& name, const std::string& input, const std::string& mapping) {
    const ProcessResult built =
        Phimap({"build", name, "--input=" + input, "--label=label", "--spec=" + mapping,
                "--kernel=rbf(gamma=scale)", "--standardize"});
    ASSERT_EQ(built.exit_code, 0) << built.err;
  }
  ProcessResult Evaluate(const std::string& name, const std::string& input,
                         std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"evaluate", name, "--input=" + input, "--label=label"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Phimap(arguments);
  }
  v1::Evaluation MustEvaluate(const std::string& name, const std::string& input,
                              std::vector<std::string> more = {}) {
    more.push_back("--json");
    const ProcessResult done = Evaluate(name, input, more);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    v1::Evaluation evaluation;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(done.out, &evaluation).ok());
    return evaluation;
  }
};

TEST_F(EvaluateTest, FindsTheErrorOfRealDataAndDrawsIt) {
  Build("cancer", kCancer, "f2(landmarks=60)");
  const v1::Evaluation evaluation = MustEvaluate("cancer", kCancer, {"--folds=10"});
  EXPECT_EQ(evaluation.rows(), 683);
  EXPECT_EQ(evaluation.tested_rows(), 683);
  EXPECT_EQ(evaluation.folds_size(), 10);
  // In the papers, support vector machines have an error of 3 to 4 % on these rows. The bound is
  // about twice that.
  EXPECT_LT(evaluation.error(), 0.08);
  EXPECT_EQ(evaluation.classes_size(), 2);
  EXPECT_EQ(evaluation.margin_quantiles_size(), 101);
  EXPECT_EQ(evaluation.certified_margins_size(), 11);
  const ProcessResult drawn = Evaluate("cancer", kCancer, {"--folds=10"});
  ASSERT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("cancer@1  linear_svm(C=1"));
  EXPECT_THAT(drawn.out, HasSubstr("each in one of 10 folds"));
  EXPECT_THAT(drawn.out, HasSubstr("certified:"));
}

TEST_F(EvaluateTest, TheJsonIsTheSameEachTimeAndHoldsNoTime) {
  Build("cancer", kCancer, "f2(landmarks=20)");
  const ProcessResult first = Evaluate("cancer", kCancer, {"--json", "--seed=3"});
  const ProcessResult second = Evaluate("cancer", kCancer, {"--json", "--seed=3"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, second.out);
}

TEST_F(EvaluateTest, ClassesAreAnyTexts) {
  std::ifstream letters(kLetters);
  std::string text;
  for (std::string line; text.size() < 60'000 && std::getline(letters, line);) text += line + "\n";
  const std::string some = File(text, "some.csv");
  Build("letters", some, "f1(landmarks=40)");
  const v1::Evaluation evaluation =
      MustEvaluate("letters", some, {"--learner=perceptron(epochs=2)", "--held-out=0.5"});
  EXPECT_EQ(evaluation.classes_size(), 26);
  EXPECT_EQ(evaluation.classes(0).label(), "A");
  EXPECT_LT(evaluation.error(), 0.7);  // guessing would be wrong for 25 of 26
  EXPECT_EQ(evaluation.certified_margins_size(), 0);
}

TEST_F(EvaluateTest, WhatItCertifiesIsAQuestionForTheAdvisor) {
  Build("cancer", kCancer, "f2(landmarks=60)");
  const ProcessResult json = Evaluate("cancer", kCancer, {"--json", "--held-out=0.5"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const std::string file = File(json.out, "evaluation.json");
  const ProcessResult advice =
      Phimap({"advise", "--from-evaluation=" + file, "--error=0.1", "--confidence=0.95"});
  ASSERT_EQ(advice.exit_code, 0) << advice.err;
  EXPECT_THAT(advice.out, HasSubstr("0.95 by cancer@1 and linear_svm"));
  EXPECT_THAT(advice.out, HasSubstr("f2: Balcan, Blum, Vempala 2006, Theorem 1"));
  // The advice from an evaluation file must equal the advice for the margins that the file
  // contains.
  v1::Evaluation evaluation;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json.out, &evaluation).ok());
  for (const auto& certified : evaluation.certified_margins()) {
    if (!certified.has_margin() || certified.margin() < 1e-4) continue;
    const std::vector<std::string> rest = {"--error=0.1", "--confidence=0.95", "--json",
                                           absl::StrCat("--alpha=", certified.alpha())};
    std::vector<std::string> from_file = {"advise", "--from-evaluation=" + file};
    std::vector<std::string> given = {"advise",
                                      absl::StrFormat("--margin=%.17g", certified.margin())};
    from_file.insert(from_file.end(), rest.begin(), rest.end());
    given.insert(given.end(), rest.begin(), rest.end());
    const ProcessResult a = Phimap(from_file);
    ASSERT_EQ(a.exit_code, 0) << a.err;
    EXPECT_EQ(a.out, Phimap(given).out);
  }
  EXPECT_EQ(
      Phimap({"advise", "--from-evaluation=-", "--error=0.1", "--confidence=0.95"}, json.out).out,
      advice.out);
  const ProcessResult neither = Phimap({"advise", "--error=0.1", "--confidence=0.95"});
  EXPECT_NE(neither.exit_code, 0);
  EXPECT_THAT(neither.err, HasSubstr("--from-evaluation"));
}

TEST_F(EvaluateTest, ErrorsNameWhatTheUserTyped) {
  Build("cancer", kCancer, "f2(landmarks=20)");
  const auto expect = [&](const ProcessResult& done, const std::string& text) {
    EXPECT_NE(done.exit_code, 0);
    EXPECT_THAT(done.err, HasSubstr(text));
    EXPECT_EQ(done.out, "");
  };
  expect(Evaluate("cancer", kCancer, {"--learner=svm()"}), "--learner: ");
  expect(Evaluate("cancer", kCancer, {"--learner=linear_svm(C=-1)"}), "phimap: C: C of linear_svm");
  expect(Evaluate("cancer", kCancer, {"--folds=700"}), "--folds: ");
  expect(Evaluate("cancer", kCancer, {"--confidence=3"}), "--confidence: ");
  expect(Evaluate("cancer@9", kCancer), "9");
  expect(Phimap({"evaluate", "cancer", "--input=" + kCancer, "--label=nothing"}), "nothing");
  expect(Phimap({"evaluate", "cancer", "--input=" + kCancer}), "--label");
  expect(Phimap({"evaluate", "cancer", "--input=rows.npy", "--label=label"}), "CSV");
  expect(Evaluate("cancer", kLetters), "columns");
}

}  // namespace
}  // namespace phimap::e2e
