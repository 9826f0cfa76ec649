#include "core/theory/fourier_bounds.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "tests/support/rare_failures.h"

namespace phimap::testing {
namespace {

TEST(FourierBoundsTest, HaveTheirGoldenValues) {
  EXPECT_EQ(FourierFeatures(FourierForm::kPhase, 0.1, 0.01), 4239);
  EXPECT_EQ(FourierFeatures(FourierForm::kSinCos, 0.1, 0.01), 2120);
}

TEST(FourierBoundsTest, SinesAndCosinesComeInPairs) {
  for (double a = 0.01; a <= 1; a += 0.013) {
    EXPECT_EQ(FourierFeatures(FourierForm::kSinCos, a, 0.01).value() % 2, 0) << a;
  }
}

// Draws kTrials sets of random Fourier features for inputs with one column. For two inputs at the
// distance r, each set gives an estimate of exp(−r²). Hold() counts the sets whose estimate has an
// error of at least 0.5. This count may be as large as AreAsRareAs allows for kDelta.
class FourierDraws {
 public:
  static constexpr double kOff = 0.5;
  static constexpr double kDelta = 0.01;
  static constexpr int kTrials = 4000;

  bool Hold(FourierForm form, int64_t dimensions, double r) {
    int missed = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const double value =
          form == FourierForm::kPhase ? Phase(dimensions, r) : Pairs(dimensions / 2, r);
      missed += std::abs(value - std::exp(-r * r)) >= kOff ? 1 : 0;
    }
    return AreAsRareAs(kDelta, missed, kTrials);
  }

 private:
  double Phase(int64_t dimensions, double r) {
    double sum = 0;
    for (int64_t i = 0; i < dimensions; ++i) {
      const double omega = std::sqrt(2) * random_.Normal(index_++);
      const double b = 2 * std::acos(-1.0) * random_.UniformOpen01(index_++);
      sum += 2 * std::cos(b) * std::cos(omega * r + b);
    }
    return sum / static_cast<double>(dimensions);
  }
  double Pairs(int64_t pairs, double r) {
    double sum = 0;
    for (int64_t i = 0; i < pairs; ++i) {
      sum += std::cos(std::sqrt(2) * random_.Normal(index_++) * r);
    }
    return sum / static_cast<double>(pairs);
  }

  RandomStream random_{5, StreamId::kProjection};
  uint64_t index_ = 0;
};

// Hoeffding's inequality uses only the range of a term, which is [−2, 2] for the phase form and
// [−1, 1] for sines and cosines. The inequality allows for a variance of up to 4 and 1. The true
// variance is at most 1 and 1/2, which is reached for inputs that are far apart. Therefore
// Hoeffding's inequality requires 170 (phase form) and 86 features (sines and cosines), but 27 and
// 26 are enough. These two numbers are from the law of a sum of n cosines of uniform angles, whose
// characteristic function is J₀ⁿ (scipy). With 13 and 12 features, a share of 0.071 and 0.084 of
// the draws has too large an error.
TEST(FourierBoundsTest, KernelValuesAreKeptAsOftenAsStated) {
  struct {
    FourierForm form;
    int64_t stated, enough, too_few;
  } const cases[] = {{FourierForm::kPhase, 170, 27, 13}, {FourierForm::kSinCos, 86, 26, 12}};
  FourierDraws draws;
  for (const auto& c : cases) {
    EXPECT_EQ(FourierFeatures(c.form, FourierDraws::kOff, FourierDraws::kDelta), c.stated);
    for (const double r : {0.1, 0.8, 3.0}) EXPECT_TRUE(draws.Hold(c.form, c.stated, r)) << r;
    EXPECT_TRUE(draws.Hold(c.form, c.enough, 3));
    EXPECT_FALSE(draws.Hold(c.form, c.too_few, 3));
  }
}

TEST(FourierBoundsTest, TheErrorOfSoManyFeaturesIsTheInverse) {
  for (const FourierForm form : {FourierForm::kPhase, FourierForm::kSinCos}) {
    for (const double a : {0.02, 0.1, 0.7}) {
      const int64_t features = FourierFeatures(form, a, 0.01).value();
      EXPECT_LE(FourierError(form, features, 0.01), a);
      EXPECT_GT(FourierError(form, features - 2, 0.01), a);
    }
  }
}

// Points of the lattice with spacing kStep, by their indices, in a disc around 0 with twice the
// region's radius: the differences x − y and the sums x + y of points of the region.
class DiscOfPairs {
 public:
  static constexpr int kSteps = 12;  // of the radius of the region
  static constexpr int kSide = 4 * kSteps + 1;

  explicit DiscOfPairs(double radius) : step_(radius / kSteps) {}

  // Returns the largest error of K̂ over pairs of the region. `errors` are those of K̂ as a function
  // of x − y, and `offsets` what is added for x + y.
  double LargestOver(const std::vector<double>& errors, const std::vector<double>& offsets) const {
    double largest = 0;
    for (int a = -kSteps; a <= kSteps; ++a) {
      for (int b = -kSteps; b <= kSteps; ++b) {
        for (int c = -kSteps; c <= kSteps && IsInside(a, b, 1); ++c) {
          for (int d = -kSteps; d <= kSteps; ++d) {
            if (!IsInside(c, d, 1)) continue;
            largest = std::max(
                largest, std::abs(errors[Index(a - c, b - d)] + offsets[Index(a + c, b + d)]));
          }
        }
      }
    }
    return largest;
  }
  // Returns f(u, v) of each point (u, v) of the disc, and 0 of the others.
  template <typename F>
  std::vector<double> ValuesOf(const F& f) const {
    std::vector<double> values(kSide * kSide);
    for (int i = -2 * kSteps; i <= 2 * kSteps; ++i) {
      for (int j = -2 * kSteps; j <= 2 * kSteps; ++j) {
        if (IsInside(i, j, 2)) values[Index(i, j)] = f(step_ * i, step_ * j);
      }
    }
    return values;
  }

 private:
  static bool IsInside(int i, int j, int radii) {
    return i * i + j * j <= radii * radii * kSteps * kSteps;
  }
  static size_t Index(int i, int j) {
    return static_cast<size_t>((i + 2 * kSteps) * kSide + j + 2 * kSteps);
  }
  double step_;
};

// Tests the bound that holds for all pairs of rows at once, for both forms, by the errors K̂ − K
// over a lattice of pairs in a disc. The larger the disc, the more independent errors there are,
// and the nearer the largest comes to the bound, which is derived with a net and Hoeffding's
// inequality. For kSinCos a third of the bound is exceeded in most draws. For kPhase only 0.22 of
// it is: its terms are in [−2, 2], for which the inequality takes a variance of 4, where theirs is
// 1 at most, and its net is one of pairs. By variances alone, its bound is twice the error of any
// draw.
//
// As a function of x and y, K̂ of kSinCos is the mean of cos ω·(x − y). That of kPhase adds the mean
// of cos(ω·(x + y) + 2b).
TEST(FourierBoundsTest, TheUniformBoundHoldsForAllPairsOfADisc) {
  constexpr int kTrials = 25;
  constexpr double kDelta = 0.1;
  for (const FourierForm form : {FourierForm::kSinCos, FourierForm::kPhase}) {
    SCOPED_TRACE(form == FourierForm::kPhase ? "phase" : "sincos");
    const FourierRegion region{
        .form = form, .dimensions = 600, .columns = 2, .gamma = 0.5, .radius = 10};
    const double bound = FourierUniformError(region, kDelta);
    ASSERT_LT(bound, 1);
    EXPECT_GT(bound, FourierError(region.form, region.dimensions, kDelta));
    const int64_t frequencies = form == FourierForm::kPhase ? 600 : 300;
    const RandomStream random(6, StreamId::kProjection);
    uint64_t index = 0;
    const DiscOfPairs disc(region.radius);
    std::vector<double> largest;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> omega(static_cast<size_t>(2 * frequencies));
      std::vector<double> offset(static_cast<size_t>(frequencies));
      for (double& w : omega) w = random.Normal(index++);
      for (double& b : offset) b = 4 * std::acos(-1.0) * random.UniformOpen01(index++);
      const auto mean = [&](double u, double v, double with_offset) {
        double sum = 0;
        for (int64_t j = 0; j < frequencies; ++j) {
          sum += std::cos(omega[2 * j] * u + omega[2 * j + 1] * v + with_offset * offset[j]);
        }
        return sum / static_cast<double>(frequencies);
      };
      largest.push_back(disc.LargestOver(disc.ValuesOf([&](double u, double v) {
        return mean(u, v, 0) - std::exp(-0.5 * (u * u + v * v));
      }),
                                         disc.ValuesOf([&](double u, double v) {
                                           return form == FourierForm::kPhase ? mean(u, v, 1) : 0;
                                         })));
    }
    const auto missed = [&](double share) {
      return std::count_if(largest.begin(), largest.end(),
                           [&](double error) { return error > share * bound; });
    };
    std::sort(largest.begin(), largest.end());
    std::printf("largest error: %.3f to %.3f of the bound, median %.3f\n", largest.front() / bound,
                largest.back() / bound, largest[kTrials / 2] / bound);
    const double exceeded = form == FourierForm::kPhase ? 0.22 : 1.0 / 3;
    EXPECT_TRUE(AreAsRareAs(kDelta, missed(1), kTrials));
    EXPECT_FALSE(AreAsRareAs(kDelta, missed(exceeded), kTrials));
  }
}

TEST(FourierBoundsTest, TheUniformBoundGrowsWithTheRegionAndFallsWithTheFeatures) {
  FourierRegion region{
      .form = FourierForm::kPhase, .dimensions = 4096, .columns = 10, .gamma = 0.1, .radius = 3};
  const double bound = FourierUniformError(region, 0.05);
  region.radius = 6;
  const double wider = FourierUniformError(region, 0.05);
  EXPECT_GT(wider, bound);
  region.dimensions *= 4;
  EXPECT_LT(FourierUniformError(region, 0.05), 0.6 * wider);
  region.form = FourierForm::kSinCos;
  EXPECT_LT(FourierUniformError(region, 0.05), 0.3 * wider);
}

}  // namespace
}  // namespace phimap::testing
