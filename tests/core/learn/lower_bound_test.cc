// Balcan, Blum, Vempala 2006, Theorem 4: if the kernel is a black box, the landmarks must come from
// the distribution that is to be learned. This test runs the paper's construction.
//
// X is the set of all words of 30 bits. X' is a random subset of 2^15 words, and D is the uniform
// distribution on X'. Each word x of X' has a random label c(x) of 1 or −1. The label is hidden in
// the kernel, whose φ has two dimensions:
//
//   φ(x) = (1, 0) outside of X', (−1/2, √3/2) if c(x) = 1, (−1/2, −√3/2) if c(x) = −1.
//
// So K is 1 for two words outside of X', and for two words of X' with the same label. For all other
// pairs K is −1/2. In φ-space, c has margin √3/2. With α > 0, φ has a further dimension for each
// single word, in which this word has length √α. Then K is positive definite.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/random/stream_ids.h"
#include "core/theory/landmark_bounds.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/learn/labeled_data.h"
#include "tests/core/mapping/builds.h"

namespace phimap::testing {
namespace {

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
    // Sort, because the order of a hash table is unspecified.
    std::sort(words_.begin(), words_.end());
  }

  // The black-box kernel K(x, y).
  double Kernel(uint32_t x, uint32_t y) const {
    if (x == y) return 1;
    const auto a = classes_.find(x);
    const auto b = classes_.find(y);
    const bool inside_a = a != classes_.end();
    const bool inside_b = b != classes_.end();
    const bool same = inside_a == inside_b && (!inside_a || a->second == b->second);
    return (1 - alpha_) * (same ? 1 : -0.5);
  }

  // Draws words from D.
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

// Returns words from a distribution other than D: uniform on X.
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

// A version that was built from a stream of words. The build gets only the kernel's values, not the
// words themselves.
class BuiltFromWords {
 public:
  BuiltFromWords(const HiddenTarget& target, const std::string& mapping, Words stream)
      : target_(target),
        stream_(std::move(stream)),
        version_(MustBuild(SpecOf(mapping, "precomputed()"), Block(target, stream_, stream_))) {}

  LabeledRows Features(const Words& words) const {
    Words landmarks;
    for (const int64_t row : version_.certificate.landmark_rows) landmarks.push_back(stream_[row]);
    LabeledRows features{.rows = FeaturesFrom(version_, Block(target_, words, landmarks)),
                         .labels = {},
                         .classes = 2};
    for (const uint32_t word : words) features.labels.push_back(target_.Label(word));
    return features;
  }

 private:
  const HiddenTarget& target_;
  Words stream_;
  BuiltVersion version_;
};

std::string MappingOf(const char* name, int64_t landmarks) {
  return std::string(name) + "(landmarks=" + std::to_string(landmarks) + ", serving_type=float64)";
}

constexpr const char* kLearners[] = {"linear_svm()", "perceptron(average=true)", "winnow()",
                                     "weak_learner(rounds=5, draws=50, bias=1)"};

// Landmarks that are independent of D are outside of X', except with probability 240·2⁻¹⁵. Each
// such landmark has the same kernel value with every word of X'. So no learner does better than
// tossing a coin. The error on 2,000 rows may differ from 1/2 by six standard deviations, 0.067.
TEST(LowerBoundTest, FeaturesFromPointsIndependentOfTheDistributionTellNothing) {
  for (const double alpha : {0.0, 0.1}) {
    const HiddenTarget target(7, alpha);
    for (const char* mapping : {"f1", "f2"}) {
      const BuiltFromWords built(target, MappingOf(mapping, 200), UniformWords(240, 1));
      const LabeledRows train = built.Features(target.Draw(2000, 2));
      const LabeledRows test = built.Features(target.Draw(2000, 3));
      // All rows have equal features. With F2 they differ by rounding, because BLAS rounds a row
      // differently depending on its position in a block.
      for (int64_t i = 1; i < train.rows.rows(); ++i) {
        for (int64_t k = 0; k < train.rows.cols(); ++k) {
          ASSERT_NEAR(train.rows(i, k), train.rows(0, k), 1e-12);
        }
      }
      for (const char* learner : kLearners) {
        EXPECT_NEAR(ErrorOn(*MustTrain(learner, train, 1), test), 0.5, 0.067) << learner;
      }
    }
  }
}

// Builds versions on landmarks from D, as many as Theorem 1 requires. Their features separate D,
// and those of F2 have at least half of the margin of c. This is also true for α > 0, where each
// word has a dimension of its own. The margin of c is then smaller by the factor √(1 − α).
TEST(LowerBoundTest, FeaturesFromTheDistributionSeparateIt) {
  for (const double alpha : {0.0, 0.1}) {
    const double margin = kMargin * std::sqrt(1 - alpha);
    const int64_t enough = BinomialLandmarks(margin, 0.05, 0.001).value();
    const HiddenTarget target(7, alpha);
    for (const char* mapping : {"f1", "f2"}) {
      const BuiltFromWords built(target, MappingOf(mapping, enough), target.Draw(enough + 60, 1));
      const LabeledRows train = built.Features(target.Draw(2000, 2));
      const LabeledRows test = built.Features(target.Draw(2000, 3));
      for (const char* learner : kLearners) {
        EXPECT_LE(ErrorOn(*MustTrain(learner, train, 1), test), alpha == 0 ? 0 : 0.05)
            << mapping << " " << learner;
      }
      if (std::string(mapping) == "f1") continue;
      if (alpha == 0) {
        EXPECT_EQ(train.rows.cols(), 2);  // φ has two dimensions, and so has F2
      }
      // w is the part of Σ y·φ(x) in the landmarks' span, summed over the training words x with
      // their labels y. Apart from the words' own dimensions, Σ y·φ(x) is the vector that separates
      // the labels c.
      std::vector<double> w(static_cast<size_t>(train.rows.cols()));
      for (int64_t i = 0; i < train.rows.rows(); ++i) {
        for (int64_t k = 0; k < train.rows.cols(); ++k) {
          w[k] += (train.labels[i] == 1 ? 1 : -1) * train.rows(i, k);
        }
      }
      double least = 1;
      for (int64_t i = 0; i < test.rows.rows(); ++i) {
        double product = 0;
        double lengths[] = {0, 0};
        for (int64_t k = 0; k < test.rows.cols(); ++k) {
          product += w[k] * test.rows(i, k);
          lengths[0] += w[k] * w[k];
          lengths[1] += test.rows(i, k) * test.rows(i, k);
        }
        least = std::min(
            least, (test.labels[i] == 1 ? 1 : -1) * product / std::sqrt(lengths[0] * lengths[1]));
      }
      EXPECT_GT(least, 0.98 * margin);  // the theorem only promises half of the margin
    }
  }
}

}  // namespace
}  // namespace phimap::testing
