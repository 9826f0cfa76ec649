// Tests the text form of learners.
#include "core/learn/learner_spec.h"

#include <string>

#include "core/status/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace phimap {
namespace {

using ::testing::HasSubstr;

TEST(LearnerSpecTest, DefaultsAreWrittenOutAndReadBack) {
  const char* const kTexts[] = {
      "perceptron(epochs=10, average=false, bias=1)",
      "winnow(rate=0.1, threshold=0, epochs=10, bias=1)",
      "linear_svm(C=1, tolerance=0.01, bias=1)",
      "weak_learner(rounds=100, margin=0.1, draws=1000, bias=0)",
      "one_parameter(C=1, tolerance=0.01, epochs=1000)",
      "kernel_sgd(strategy=gram, rate=0.1, epochs=20)",
      "kernel_svm(C=1, tolerance=0.001)",
  };
  for (const std::string text : kTexts) {
    const std::string bare = text.substr(0, text.find('(')) + "()";
    const absl::StatusOr<LearnerSpec> spec = LearnerSpec::Parse(bare);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->ToText(), text);
    EXPECT_EQ(LearnerSpec::Parse(text)->ToText(), text);
  }
}

TEST(LearnerSpecTest, EveryParameterIsTakenAndWritten) {
  const char* const kTexts[] = {
      "perceptron(epochs=3, average=true, bias=0)",
      "winnow(rate=0.5, threshold=-1.5, epochs=4, bias=2)",
      "linear_svm(C=10, tolerance=1e-06, bias=0)",
      "weak_learner(rounds=1, margin=0.25, draws=7, bias=1)",
      "one_parameter(C=0.5, tolerance=0.001, epochs=5)",
      "kernel_sgd(strategy=stored_features, rate=0.25, epochs=2)",
      "kernel_sgd(strategy=features, rate=0.25, epochs=2)",
      "kernel_sgd(strategy=kernel, rate=0.25, epochs=2)",
      "kernel_svm(C=3, tolerance=0.5)",
  };
  for (const char* text : kTexts) {
    const absl::StatusOr<LearnerSpec> spec = LearnerSpec::Parse(text);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->ToText(), text);
  }
}

TEST(LearnerSpecTest, ErrorsNameTheColumnAndWhatIsExpected) {
  const struct {
    const char* text;
    const char* says;
  } kCases[] = {
      {"svm()", "column 1: unknown learner 'svm'; expected perceptron, winnow, linear_svm"},
      {"linear_svm(c=1)", "column 12: linear_svm has no parameter 'c'; it has C, tolerance, bias"},
      {"linear_svm", "column 11: expected '('"},
      {"linear_svm() x", "column 14: expected the end"},
      {"perceptron(epochs=0)", "column 19: epochs is an integer from 1 to 1e+06, got 0"},
      {"perceptron(average=maybe)", "average is one of false, true; got 'maybe'"},
      {"kernel_sgd(strategy=fast)", "one of features, stored_features, kernel, gram; got 'fast'"},
      {"linear_svm(C=0)", "column 14: C of linear_svm is > 0, at most 1e+12, got 0"},
      {"linear_svm(bias=-1)", "column 17: bias of linear_svm is from 0 to 1e+06, got -1"},
      {"weak_learner(margin=1.5)", "column 21: margin of weak_learner is > 0, at most 1, got 1.5"},
  };
  for (const auto& c : kCases) {
    const absl::Status status = LearnerSpec::Parse(c.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.says));
  }
}

TEST(LearnerSpecTest, AnEmptyTextIsTheDefaultLearner) {
  EXPECT_EQ(LearnerSpec::Parse("")->ToText(), "linear_svm(C=1, tolerance=0.01, bias=1)");
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
}  // namespace phimap
