// Balcan, Blum, Vempala 2006, Theorem 4: for a kernel that is a black box, landmarks have to come
// from the distribution that is learned. The paper's construction, run.
//
// X is the words of 30 bits, X' a random subset of 2^15, and D uniform on X'. A word of X' has a
// label by a coin, hidden in the kernel:
//
//   φ(x) = (1, 0) outside of X', (−1/2, √3/2) on X' where c(x) = 1, (−1/2, −√3/2) where it is −1,
//
// so that K is 1 between words outside of X' and within a class, and −1/2 otherwise; c has margin
// √3/2 in φ-space. With α > 0 every word also has a dimension of its own, of length √α, and K is
// positive definite.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/linalg/blas.h"
#include "core/linalg/checkpoint.h"
#include "core/linalg/pivoted_cholesky.h"
#include "core/random/random_stream.h"
#include "core/theory/landmark_bounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"

namespace phimap {
namespace {

using testing::ErrorOn;
using testing::LabeledRows;
using testing::MustTrain;

constexpr int kBits = 30;
constexpr int64_t kHidden = int64_t{1} << (kBits / 2);
const double kMargin = std::sqrt(3.0) / 2;

using Words = std::vector<uint32_t>;

class HiddenTarget {
 public:
  HiddenTarget(uint64_t seed, double alpha) : alpha_(alpha) {
    RandomCursor random(RandomStream(seed, StreamId::kSelfCheck));
    while (static_cast<int64_t>(classes_.size()) < kHidden) {
      const uint64_t bits = random.Bits64();
      classes_.emplace(static_cast<uint32_t>(bits >> (64 - kBits)), static_cast<int32_t>(bits & 1));
    }
    for (const auto& [word, label] : classes_) words_.push_back(word);
    // The order of a hash table is nobody's promise.
    std::sort(words_.begin(), words_.end());
  }

  // The black box.
  double Kernel(uint32_t x, uint32_t y) const {
    if (x == y) return 1;
    const auto a = classes_.find(x);
    const auto b = classes_.find(y);
    const bool inside_a = a != classes_.end();
    const bool inside_b = b != classes_.end();
    const bool same = inside_a == inside_b && (!inside_a || a->second == b->second);
    return (1 - alpha_) * (same ? 1 : -0.5);
  }

  // D.
  Words Draw(int64_t count, uint64_t seed) const {
    const RandomStream stream(seed, StreamId::kLandmarks);
    Words drawn;
    for (int64_t i = 0; i < count; ++i) {
      drawn.push_back(words_[stream.UniformBelow(static_cast<uint64_t>(i), words_.size())]);
    }
    return drawn;
  }
  int32_t Label(uint32_t word) const { return classes_.at(word); }

 private:
  double alpha_;
  std::unordered_map<uint32_t, int32_t> classes_;
  Words words_;
};

// Any other distribution than D; this one is uniform on X.
Words UniformWords(int64_t count, uint64_t seed) {
  const RandomStream stream(seed, StreamId::kSplit);
  Words drawn;
  for (int64_t i = 0; i < count; ++i) {
    drawn.push_back(static_cast<uint32_t>(stream.Bits64(static_cast<uint64_t>(i)) >> (64 - kBits)));
  }
  return drawn;
}

Matrix<double> Block(const HiddenTarget& target, const Words& x, const Words& z) {
  Matrix<double> block(static_cast<int64_t>(x.size()), static_cast<int64_t>(z.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < z.size(); ++j) block(i, j) = target.Kernel(x[i], z[j]);
  }
  return block;
}

// F1, or F2 = k_r(x)·L_r^{-T} on the pivots.
LabeledRows Features(const HiddenTarget& target, const Words& landmarks, const Words& rows,
                     bool f2) {
  LabeledRows features{.rows = {}, .labels = {}, .classes = 2};
  for (const uint32_t row : rows) features.labels.push_back(target.Label(row));
  if (!f2) {
    features.rows = Block(target, rows, landmarks);
    return features;
  }
  Matrix<double> gram = Block(target, landmarks, landmarks);
  const absl::StatusOr<PivotedCholesky> factor = FactorPivoted(gram.view(), {.tolerance = 1e-10}, NeverStop);
  EXPECT_TRUE(factor.ok()) << factor.status();
  Words pivots;
  for (const int64_t pivot : factor->pivots) pivots.push_back(landmarks[pivot]);
  features.rows = Block(target, rows, pivots);
  const int64_t rank = factor->rank();
  SolveLowerTriangleFromRight(gram.view().Block(0, 0, rank, rank), features.rows.view());
  return features;
}

constexpr const char* kLearners[] = {"linear_svm()", "perceptron(average=true)", "winnow()",
                                     "weak_learner(rounds=5, draws=50, bias=1)"};

// Landmarks that know nothing of D are outside of X' (but with probability 200·2⁻¹⁵), and to them
// all of X' looks alike: no learner does better than a coin. 2,000 rows: six sigma are 0.067.
TEST(LowerBoundTest, FeaturesFromPointsIndependentOfTheDistributionTellNothing) {
  for (const double alpha : {0.0, 0.1}) {
    const HiddenTarget target(7, alpha);
    const Words landmarks = UniformWords(200, 1);
    for (const bool f2 : {false, true}) {
      const LabeledRows train = Features(target, landmarks, target.Draw(2000, 2), f2);
      const LabeledRows test = Features(target, landmarks, target.Draw(2000, 3), f2);
      // Every row is the same row; of F2 up to how BLAS rounds where a row stands in a block.
      for (int64_t i = 1; i < train.rows.rows(); ++i) {
        for (int64_t k = 0; k < train.rows.cols(); ++k) {
          ASSERT_NEAR(train.rows(i, k), train.rows(0, k), f2 ? 1e-13 : 0);
        }
      }
      for (const char* learner : kLearners) {
        EXPECT_NEAR(ErrorOn(*MustTrain(learner, train, 1), test), 0.5, 0.067) << learner;
      }
    }
  }
}

// As many landmarks from D as Theorem 1 asks for, and the features separate D, F2 at half the
// margin.
TEST(LowerBoundTest, FeaturesFromTheDistributionSeparateIt) {
  const std::optional<int64_t> enough = LiteralLandmarks(kMargin, 0.05, 0.001);
  ASSERT_TRUE(enough.has_value());
  const HiddenTarget target(7, 0);
  const Words landmarks = target.Draw(*enough, 1);
  for (const bool f2 : {false, true}) {
    const LabeledRows train = Features(target, landmarks, target.Draw(2000, 2), f2);
    const LabeledRows test = Features(target, landmarks, target.Draw(2000, 3), f2);
    for (const char* learner : kLearners) {
      EXPECT_EQ(ErrorOn(*MustTrain(learner, train, 1), test), 0) << learner;
    }
    if (!f2) continue;
    // φ has two dimensions, and so has F2.
    EXPECT_EQ(train.rows.cols(), 2);
    const std::unique_ptr<const Model> model = MustTrain("linear_svm(bias=0)", train, 1);
    const double* w = model->linear()->weights.row(1);
    double margin = 1;
    for (int64_t i = 0; i < test.rows.rows(); ++i) {
      const double* x = test.rows.row(i);
      const double y = test.labels[i] == 1 ? 1 : -1;
      margin = std::min(margin,
                        y * (w[0] * x[0] + w[1] * x[1]) /
                            std::sqrt((w[0] * w[0] + w[1] * w[1]) * (x[0] * x[0] + x[1] * x[1])));
    }
    EXPECT_GE(margin, kMargin / 2);
  }
}

}  // namespace
}  // namespace phimap
