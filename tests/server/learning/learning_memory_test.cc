#include <limits>

#include "gtest/gtest.h"
#include "server/learning/evaluation_job.h"

namespace phimap::testing {
namespace {

LearnerSpec Learner(const char* text) { return *LearnerSpec::Parse(text); }

TEST(LearningMemoryTest, IsOverWhatTheLearnersSayOfThemselves) {
  const LearningSize size{.rows = 10'000, .columns = 500, .features = 300, .classes = 26};
  // liblinear takes 16 bytes per value. A Gram matrix takes 8 bytes per pair of rows, or 16 in
  // libsvm's format.
  EXPECT_GE(LearningBytes(Learner("linear_svm()"), size), int64_t{16} * 10'000 * 501);
  EXPECT_GE(LearningBytes(Learner("kernel_sgd(strategy=gram)"), size),
            int64_t{8} * 10'000 * 10'000);
  EXPECT_GE(LearningBytes(Learner("kernel_svm()"), size), int64_t{16} * 8192 * 8192);
  EXPECT_GE(LearningBytes(Learner("kernel_sgd(strategy=stored_features)"), size),
            int64_t{8} * 10'000 * 300);
  EXPECT_GE(LearningBytes(Learner("one_parameter()"), size), int64_t{8} * 10'000 * 26);
  // The estimate is not much too high, either. A perceptron needs little memory, because it reads
  // the rows without copying them.
  EXPECT_LE(LearningBytes(Learner("perceptron()"), size), int64_t{10} << 20);
}

TEST(LearningMemoryTest, GrowsWithTheRowsAndSaturates) {
  for (const char* text : {"perceptron()", "winnow()", "linear_svm()", "weak_learner()",
                           "one_parameter()", "kernel_sgd(strategy=features)",
                           "kernel_sgd(strategy=kernel)", "kernel_sgd()", "kernel_svm()"}) {
    int64_t last = 0;
    for (int64_t rows = 10; rows < int64_t{1} << 50; rows *= 10) {
      const int64_t bytes =
          LearningBytes(Learner(text), {.rows = rows, .columns = 9, .features = 9, .classes = 3});
      EXPECT_TRUE(bytes > last || bytes == std::numeric_limits<int64_t>::max()) << text;
      last = bytes;
    }
  }
  EXPECT_EQ(LearningBytes(Learner("linear_svm()"),
                          {.rows = int64_t{1} << 60, .columns = 9, .features = 9, .classes = 3}),
            std::numeric_limits<int64_t>::max());
}

}  // namespace
}  // namespace phimap::testing
