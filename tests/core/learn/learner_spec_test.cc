// Tests the text form of learners.
#include "core/learn/learner_spec.h"

#include <string>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

TEST(LearnerSpecTest, DefaultsAreWrittenOutAndReadBack) {
  const char* const kTexts[] = {
      "perceptron(epochs=10, average=false, bias=1)",
      "winnow(rate=0.1, threshold=0, epochs=10, bias=1)",
      "linear_svm(C=1, tolerance=0.01, bias=1)",
      "logistic(C=1, tolerance=0.01, bias=1)",
      "svr(C=1, epsilon=0.1, tolerance=0.01, bias=1)",
      "ridge(alpha=auto)",
      "weak_learner(rounds=100, margin=0.1, draws=1000, bias=0)",
      "one_parameter(C=1, tolerance=0.01, epochs=1000)",
      "kernel_sgd(strategy=gram, rate=0.1, epochs=20)",
      "kernel_svm(C=1, tolerance=0.001)",
  };
  for (const std::string text : kTexts) {
    const std::string bare = text.substr(0, text.find('(')) + "()";
    const LearnerSpec spec = LearnerSpec::Parse(bare).value();
    EXPECT_EQ(spec.ToText(), text);
    EXPECT_EQ(LearnerSpec::Parse(text)->ToText(), text);
  }
}

TEST(LearnerSpecTest, EveryParameterIsTakenAndWritten) {
  const char* const kTexts[] = {
      "perceptron(epochs=3, average=true, bias=0)",
      "winnow(rate=0.5, threshold=-1.5, epochs=4, bias=2)",
      "linear_svm(C=10, tolerance=1e-06, bias=0)",
      "linear_svm(C=10, tolerance=1e-06, bias=0, class_weight=[1, 2.5])",
      "logistic(C=10, tolerance=1e-06, bias=0, class_weight=balanced)",
      "svr(C=10, epsilon=0, tolerance=1e-06, bias=0)",
      "ridge(alpha=0.03, class_weight=balanced)",
      "weak_learner(rounds=1, margin=0.25, draws=7, bias=1)",
      "one_parameter(C=0.5, tolerance=0.001, epochs=5)",
      "kernel_sgd(strategy=stored_features, rate=0.25, epochs=2)",
      "kernel_sgd(strategy=features, rate=0.25, epochs=2)",
      "kernel_sgd(strategy=kernel, rate=0.25, epochs=2)",
      "kernel_svm(C=3, tolerance=0.5)",
  };
  for (const char* text : kTexts) {
    const LearnerSpec spec = LearnerSpec::Parse(text).value();
    EXPECT_EQ(spec.ToText(), text);
  }
}

TEST(LearnerSpecTest, ErrorsNameTheColumnAndWhatIsExpected) {
  const struct {
    const char* text;
    const char* says;
  } kCases[] = {
      {"svm()", "column 1: unknown learner 'svm'; expected perceptron, winnow, linear_svm"},
      {"linear_svm(c=1)", "linear_svm has no parameter 'c'; it has C, tolerance, bias"},
      {"logistic(class_weight=heavy)",
       "class_weight of logistic is a list, [a, b], of numbers > 0, at most 1e+12 or balanced, "
       "got 'heavy'"},
      {"ridge(class_weight=[1, 0])", "each number of class_weight is > 0, at most 1e+12, got 0"},
      {"ridge(alpha=0)", "alpha of ridge is > 0, at most 1e+12, got 0"},
      {"linear_svm x", "column 12: expected the end"},
      {"linear_svm() x", "column 14: expected the end"},
      {"perceptron(epochs=0)", "epochs is an integer from 1 to 1e+06, got 0"},
      {"perceptron(average=maybe)", "average is one of false, true; got 'maybe'"},
      {"kernel_sgd(strategy=fast)", "one of features, stored_features, kernel, gram; got 'fast'"},
      {"linear_svm(C=0)", "C of linear_svm is > 0, at most 1e+12, got 0"},
      {"linear_svm(bias=-1)", "bias of linear_svm is from 0 to 1e+06, got -1"},
      {"weak_learner(margin=1.5)", "margin of weak_learner is > 0, at most 1, got 1.5"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(LearnerSpec::Parse(c.text).status(),
                IsError(StatusCode::kInvalidArgument, _, _, HasSubstr(c.says)))
        << c.text;
  }
}

TEST(LearnerSpecTest, AnEmptyTextIsTheDefaultLearner) {
  EXPECT_EQ(LearnerSpec::Parse("")->ToText(), "linear_svm(C=1, tolerance=0.01, bias=1)");
}

TEST(LearnerSpecTest, AnAlphaThatWasChosenTakesThePlaceOfTheWord) {
  LearnerSpec spec = LearnerSpec::Parse("ridge(alpha=auto)").value();
  spec.values.Resolve("auto", 0.03);
  EXPECT_EQ(spec.ToText(), "ridge(alpha=0.03)");
}

TEST(LearnerSpecTest, KernelLearnersSayWhatTheyNeed) {
  const auto reason = [](const char* text, const KernelInput& input) {
    return DetailOf(MakeLearner(*LearnerSpec::Parse(text), input).status())->reason;
  };
  EXPECT_EQ(reason("kernel_svm()", {}), "KERNEL_NOT_AVAILABLE");
  EXPECT_EQ(reason("kernel_sgd()", {}), "KERNEL_NOT_AVAILABLE");
  EXPECT_EQ(reason("kernel_sgd(strategy=features)", {.kernel = KernelExpression(), .map = nullptr}),
            "KERNEL_NOT_AVAILABLE");
  EXPECT_EQ(reason("kernel_svm()",
                   {.kernel = *KernelExpression::Parse("rbf(gamma=scale)"), .map = nullptr}),
            "GAMMA_UNRESOLVED");
}

}  // namespace
}  // namespace phimap::testing
