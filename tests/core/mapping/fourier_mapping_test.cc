#include "core/mapping/fourier/fourier_mapping.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/linalg/blas.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/support/checkpoints.h"
#include "tests/support/matchers.h"
#include "tests/support/naive_kernel.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr double kTurn = 6.283185307179586;
constexpr FourierForm kForms[] = {FourierForm::kPhase, FourierForm::kSinCos};

Plan MustMakePlan(const FourierTask& task, int64_t columns) {
  UseOneBlasThread();
  const InputStage input{.columns = columns};
  PlanPair plans =
      BuildFourier({.input = input, .serving_type = FloatType::kFloat64}, task, NeverStop).value();
  return std::move(plans.served);
}

const ProductFeatures<double>& Features(const Plan& plan) {
  return std::get<ProductFeatures<double>>(std::get<1>(plan.stages).features);
}

double InnerProduct(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t k = 0; k < count; ++k) sum += a[k] * b[k];
  return sum;
}

// Maps the rows of `x` with the features ψ of one draw. Returns the inner products ψ(x)·ψ(y) for
// all pairs of rows.
Matrix<double> GramOf(const FourierTask& task, const Matrix<double>& x) {
  const Matrix<double> f = MustTransformWide(MustMakePlan(task, x.cols()), WireRows(x));
  return NaiveGram(f, f);
}

TEST(FourierMappingTest, FrequenciesAndPhasesAreThoseOfTheFrozenStreams) {
  constexpr int64_t kColumns = 5;
  constexpr uint64_t kSeed = 77;
  const RandomStream normals(kSeed, StreamId::kFourierFrequencies);
  const RandomStream phases(kSeed, StreamId::kFourierPhases);
  for (const FourierForm form : kForms) {
    const Plan plan = MustMakePlan({.kernel = *FourierKernelOf(MustParseKernel("1*rbf(gamma=0.3)")),
                                    .form = form,
                                    .dimensions = 8,
                                    .seed = kSeed},
                                   kColumns);
    const ProductFeatures<double>& features = Features(plan);
    ASSERT_EQ(features.rows.rows(), form == FourierForm::kPhase ? 8 : 4);
    for (int64_t i = 0; i < features.rows.size(); ++i) {
      EXPECT_NEAR(features.rows.data()[i], std::sqrt(2 * 0.3) * normals.Normal(i) / kTurn, 1e-15);
    }
    ASSERT_EQ(features.offsets.size(), form == FourierForm::kPhase ? 8u : 0u);
    for (size_t j = 0; j < features.offsets.size(); ++j) {
      EXPECT_EQ(features.offsets[j], phases.UniformOpen01(j));
    }
  }
}

TEST(FourierMappingTest, FrequenciesOfALaplacianAreRatiosOfNormalNumbers) {
  constexpr uint64_t kSeed = 78;
  const RandomStream normals(kSeed, StreamId::kFourierCauchy);
  const FourierTask task{.kernel = *FourierKernelOf(MustParseKernel("1*laplacian(gamma=0.3)")),
                         .dimensions = 8,
                         .seed = kSeed};
  const Plan plan = MustMakePlan(task, 5);
  const ProductFeatures<double>& features = Features(plan);
  for (int64_t i = 0; i < features.rows.size(); ++i) {
    const double cauchy = normals.Normal(2 * i) / normals.Normal(2 * i + 1);
    EXPECT_NEAR(features.rows.data()[i], 0.3 * cauchy / kTurn, 1e-15 * (1 + std::abs(cauchy)));
  }
}

// The frequencies ω of a Laplacian kernel are Cauchy numbers of scale γ. So |ω| < γ has probability
// 1/2, and |ω| < γ·tan(3π/8) has probability 3/4. A share of N draws may deviate from its
// probability p by six standard deviations, √(p(1 − p)/N) each.
TEST(FourierMappingTest, FrequenciesOfALaplacianAreCauchyOfScaleGamma) {
  constexpr int64_t kDimensions = 10000;
  const Plan plan =
      MustMakePlan({.kernel = *FourierKernelOf(MustParseKernel("1*laplacian(gamma=0.7)")),
                    .form = FourierForm::kPhase,
                    .dimensions = kDimensions,
                    .seed = 1},
                   2);
  const Matrix<double>& rows = Features(plan).rows;
  const double count = static_cast<double>(rows.size());
  double median = 0;
  double quartile = 0;
  double positive = 0;
  for (int64_t i = 0; i < rows.size(); ++i) {
    const double omega = rows.data()[i] * kTurn / 0.7;
    median += std::abs(omega) < 1 ? 1 / count : 0;
    quartile += std::abs(omega) < std::tan(3 * kTurn / 16) ? 1 / count : 0;
    positive += omega > 0 ? 1 / count : 0;
  }
  EXPECT_NEAR(median, 0.5, 6 * 0.5 / std::sqrt(count));
  EXPECT_NEAR(quartile, 0.75, 6 * 0.433 / std::sqrt(count));
  EXPECT_NEAR(positive, 0.5, 6 * 0.5 / std::sqrt(count));
}

// Computes the defining equations in long double from the rows of the plan. D is the number of
// features and c the factor of the kernel. A feature of the phase form is √(2c/D)·cos(ωᵀx + b). The
// other form has pairs of features √(2c/D)·cos ωᵀx and √(2c/D)·sin ωᵀx. An angle is a sum of 12
// terms under 3, so it has an error under 200·2⁻⁵³ turns, which is 2e-13 in radians.
TEST(FourierMappingTest, FeaturesAreTheDefiningEquation) {
  constexpr int64_t kDimensions = 30;
  const Matrix<double> x = NormalRows({.rows = 40, .cols = 12, .seed = 3});
  for (const FourierForm form : kForms) {
    for (const bool orthogonal : {false, true}) {
      const Plan plan =
          MustMakePlan({.kernel = *FourierKernelOf(MustParseKernel("2*rbf(gamma=0.1)")),
                        .form = form,
                        .orthogonal = orthogonal,
                        .dimensions = kDimensions,
                        .seed = 5},
                       12);
      const Matrix<double> f = MustTransformWide(plan, WireRows(x));
      ASSERT_EQ(f.cols(), kDimensions);
      const ProductFeatures<double>& features = Features(plan);
      const int64_t count = features.rows.rows();
      const long double scale = std::sqrt(2 * 2.0L / kDimensions);
      const long double turn = 2 * std::acos(-1.0L);
      for (int64_t i = 0; i < x.rows(); ++i) {
        for (int64_t j = 0; j < count; ++j) {
          long double angle = features.offsets.empty() ? 0 : features.offsets[j];
          for (int64_t k = 0; k < 12; ++k) {
            angle += static_cast<long double>(x(i, k)) * features.rows(j, k);
          }
          ASSERT_NEAR(f(i, j), static_cast<double>(scale * std::cos(turn * angle)), 2e-13);
          if (form == FourierForm::kPhase) continue;
          ASSERT_NEAR(f(i, count + j), static_cast<double>(scale * std::sin(turn * angle)), 2e-13);
        }
      }
    }
  }
}

// Orthogonal frequencies come in blocks of as many as there are columns. Two frequencies of the
// same block are orthogonal up to rounding. Two frequencies of different blocks are not.
TEST(FourierMappingTest, OrthogonalFrequenciesAreSoWithinBlocksAndHaveTheirLengths) {
  constexpr int64_t kColumns = 6;
  constexpr int64_t kRows = 15;
  constexpr uint64_t kSeed = 4;
  const Plan plan = MustMakePlan({.kernel = *FourierKernelOf(MustParseKernel("1*rbf(gamma=0.5)")),
                                  .form = FourierForm::kPhase,
                                  .orthogonal = true,
                                  .dimensions = kRows,
                                  .seed = kSeed},
                                 kColumns);
  const Matrix<double>& rows = Features(plan).rows;
  const RandomStream normals(kSeed, StreamId::kFourierLengths);
  for (int64_t i = 0; i < kRows; ++i) {
    double chi_squared = 0;
    for (int64_t k = 0; k < kColumns; ++k) {
      const double z = normals.Normal(i * kColumns + k);
      chi_squared += z * z;
    }
    for (int64_t j = 0; j <= i; ++j) {
      const double product = InnerProduct(rows.row(i), rows.row(j), kColumns) * kTurn * kTurn;
      if (i == j) {
        EXPECT_NEAR(product, chi_squared, 1e-12 * chi_squared);
      } else if (i / kColumns == j / kColumns) {
        EXPECT_NEAR(product, 0, 1e-12) << i << ", " << j;
      } else {
        EXPECT_GT(std::abs(product), 1e-6) << i << ", " << j;
      }
    }
  }
}

// Tests that each orthogonal frequency ω alone has the moments of a normal one. For each of its
// entries ω_k, the mean of ω_k² is 2γ and the mean of ω_k⁴ is 3(2γ)². Over N draws, the standard
// deviations of these means are 2γ√(2/N) and (2γ)²√(96/N). Seeds are fixed. Six standard deviations
// are allowed.
TEST(FourierMappingTest, EachOrthogonalFrequencyAloneIsNormal) {
  constexpr int64_t kColumns = 4;
  constexpr int kDraws = 5000;
  double square[kColumns] = {};
  double fourth[kColumns] = {};
  for (int seed = 0; seed < kDraws; ++seed) {
    const Plan plan = MustMakePlan({.kernel = *FourierKernelOf(MustParseKernel("1*rbf(gamma=0.5)")),
                                    .orthogonal = true,
                                    .dimensions = 6,
                                    .seed = static_cast<uint64_t>(seed)},
                                   kColumns);
    for (int64_t k = 0; k < kColumns; ++k) {
      const double omega = Features(plan).rows(1, k) * kTurn;
      square[k] += omega * omega / kDraws;
      fourth[k] += std::pow(omega, 4) / kDraws;
    }
  }
  for (int64_t k = 0; k < kColumns; ++k) {
    EXPECT_NEAR(square[k], 1, 6 * std::sqrt(2.0 / kDraws)) << k;
    EXPECT_NEAR(fourth[k], 3, 6 * std::sqrt(96.0 / kDraws)) << k;
  }
}

// Compares the mean of ψ(x)·ψ(y) over S seeds with the kernel. D is the number of features, c = 3
// the factor of the kernel, and δ = x − y. K is the kernel without its factor at (x, y), and K₂ the
// same at (2x, 2y).
//
// With sines and cosines, ψ(x)·ψ(y)/c is the mean of D/2 terms cos ωᵀδ. Each term has mean K and
// variance (1 + K₂)/2 − K². With phases, it is the mean of D terms 2cos(a + b)cos(a' + b) with a =
// ωᵀx and a' = ωᵀy. This is cos ωᵀδ plus cos(a + a' + 2b), which adds a variance of 1/2. The
// variance of ψ(x)·ψ(y) is c² times the variance of these means.
//
// The mean over S seeds may deviate by six standard deviations, √(variance/S) each. Seeds are
// fixed. With orthogonal frequencies the variance is at most a few percent larger
// (orthogonal_frequencies_test.cc), so the same tolerance is enough.
TEST(FourierMappingTest, InnerProductsAreUnbiasedWithTheVarianceOfTheLaw) {
  constexpr int kSeeds = 2500;
  constexpr int64_t kDimensions = 12;
  struct Case {
    const char* kernel;
    bool orthogonal;
  };
  const Matrix<double> x = NormalRows({.rows = 4, .cols = 5, .seed = 21});
  Matrix<double> twice = x.Clone();
  for (int64_t i = 0; i < twice.size(); ++i) twice.data()[i] *= 2;
  for (const Case& c : {
           Case{"3*rbf(gamma=0.15)", false},
           Case{"3*rbf(gamma=0.15)", true},
           Case{"3*laplacian(gamma=0.2)", false},
           Case{"3*rbf(gamma=0.15, columns=1:4)", false},
           Case{"3*matern(nu=0.5, length_scale=2)", false},
           Case{"3*matern(nu=1.5, length_scale=2)", false},
           Case{"3*matern(nu=2.5, length_scale=2)", true},
           Case{"3*rbf(scales=[1, 2, 4, 2, 3])", false},
       }) {
    const Matrix<double> exact = NaiveKernelMatrix(MustParseKernel(c.kernel), x, x);
    const Matrix<double> exact_twice = NaiveKernelMatrix(MustParseKernel(c.kernel), twice, twice);
    for (const FourierForm form : kForms) {
      Matrix<double> mean(4, 4);
      for (int seed = 0; seed < kSeeds; ++seed) {
        const Matrix<double> gram = GramOf({.kernel = *FourierKernelOf(MustParseKernel(c.kernel)),
                                            .form = form,
                                            .orthogonal = c.orthogonal,
                                            .dimensions = kDimensions,
                                            .seed = static_cast<uint64_t>(seed)},
                                           x);
        for (int64_t i = 0; i < 16; ++i) mean.data()[i] += gram.data()[i] / kSeeds;
      }
      for (int64_t i = 0; i < 16; ++i) {
        const double k = exact.data()[i] / 3;
        const double term = (1 + exact_twice.data()[i] / 3) / 2 - k * k;
        const double variance =
            9 * (form == FourierForm::kPhase ? (term + 0.5) / kDimensions : 2 * term / kDimensions);
        EXPECT_NEAR(mean.data()[i], exact.data()[i], 6 * std::sqrt(variance / kSeeds) + 1e-12)
            << c.kernel << static_cast<int>(form) << c.orthogonal << " " << i;
      }
    }
  }
}

// The squared error over all pairs is lower for sines and cosines than for phases, and lower for
// orthogonal frequencies than for independent ones.
TEST(FourierMappingTest, TheDefaultFormAndOrthogonalFrequenciesHaveTheLowerVariance) {
  const Matrix<double> x = NormalRows({.rows = 60, .cols = 16, .seed = 22});
  const char* const kKernel = "rbf(gamma=0.01)";
  const Matrix<double> exact = NaiveKernelMatrix(MustParseKernel(kKernel), x, x);
  const auto error = [&](FourierForm form, bool orthogonal) {
    double sum = 0;
    for (uint64_t seed = 0; seed < 100; ++seed) {
      const Matrix<double> gram =
          GramOf({.kernel = *FourierKernelOf(MustParseKernel("1*rbf(gamma=0.01)")),
                  .form = form,
                  .orthogonal = orthogonal,
                  .dimensions = 32,
                  .seed = seed},
                 x);
      for (int64_t i = 0; i < 60; ++i) {
        for (int64_t j = 0; j < i; ++j) sum += std::pow(gram(i, j) - exact(i, j), 2);
      }
    }
    return sum;
  };
  const double phase = error(FourierForm::kPhase, false);
  const double pairs = error(FourierForm::kSinCos, false);
  EXPECT_LT(pairs, 0.8 * phase);
  EXPECT_LT(error(FourierForm::kPhase, true), 0.95 * phase);
  EXPECT_LT(error(FourierForm::kSinCos, true), 0.8 * pairs);
}

// Tests all pairs of 1,000 rows. The largest error stays within the certificate's bound for these
// pairs. The mean error falls with the square root of the number of features.
TEST(FourierMappingTest, GramErrorKeepsTheBoundForAllPairsAndShrinksAsTheRoot) {
  const Matrix<double> x = NormalRows({.rows = 1000, .cols = 8, .seed = 23});
  const Matrix<double> exact = NaiveKernelMatrix(MustParseKernel("rbf(gamma=0.1)"), x, x);
  for (const FourierForm form : kForms) {
    double previous = std::numeric_limits<double>::infinity();
    for (const int64_t dimensions : {64, 256, 1024}) {
      const Matrix<double> gram =
          GramOf({.kernel = *FourierKernelOf(MustParseKernel("1*rbf(gamma=0.1)")),
                  .form = form,
                  .dimensions = dimensions,
                  .seed = 7},
                 x);
      double worst = 0;
      double squares = 0;
      for (int64_t i = 0; i < 1000; ++i) {
        for (int64_t j = 0; j < i; ++j) {
          worst = std::max(worst, std::abs(gram(i, j) - exact(i, j)));
          squares += std::pow(gram(i, j) - exact(i, j), 2);
        }
      }
      const double bound = FourierError(form, dimensions, 0.05 / (1000 * 999 / 2.0));
      EXPECT_LE(worst, bound) << dimensions;
      EXPECT_GT(worst, bound / 3) << dimensions;
      EXPECT_LT(squares, previous / 2) << dimensions;  // on average a quarter
      previous = squares;
    }
  }
}

// The features of the artifact agree with the kernel to within 6/√D for D features. This is six
// standard deviations of the phase form.
TEST(FourierMappingTest, ABuildApproximatesItsKernelInEitherTypeAndForm) {
  Matrix<double> x = NormalRows({.rows = 500, .cols = 20, .seed = 4});
  for (int64_t i = 0; i < x.rows(); ++i) {
    for (int64_t j = 0; j < x.cols(); ++j) x(i, j) = 100 + 3 * x(i, j);  // far from the origin
  }
  for (const char* options : {"", ", form=phase", ", orthogonal=true", ", serving_type=float64"}) {
    for (const char* kernel : {"rbf(gamma=0.003)", "2*rbf(gamma=scale)", "rbf(gamma=median)"}) {
      const BuiltVersion built =
          MustBuild(SpecOf(std::string("fourier(dimensions=1024") + options + ")", kernel), x);
      SCOPED_TRACE(built.provenance.spec_text + " " + built.provenance.kernel_text);
      EXPECT_EQ(built.output_columns, 1024);
      const Matrix<double> f = FeaturesFrom(built, x);
      const Matrix<double> gram = NaiveGram(f, f);
      const KernelExpression resolved = MustParseKernel(built.provenance.kernel_text.c_str());
      const Matrix<double> exact = NaiveKernelMatrix(resolved, x, x);
      double worst = 0;
      for (int64_t i = 0; i < gram.size(); ++i) {
        worst = std::max(worst, std::abs(gram.data()[i] - exact.data()[i]) / exact(0, 0));
      }
      EXPECT_LE(worst, 6 / std::sqrt(1024.0));
      EXPECT_GT(worst, 2 / std::sqrt(1024.0));
      EXPECT_LE(built.certificate.serving_error->max / built.certificate.serving_error->scale,
                1e-5);
      EXPECT_LE(built.certificate.kernel_error->max / exact(0, 0), 6 / std::sqrt(1024.0));
    }
  }
}

// The frequencies of a Laplacian are Cauchy numbers, which can be very large. Angles are therefore
// accurate in float32 only with few frequencies and a small γ. Other versions are served in
// float64.
TEST(FourierMappingTest, ABuildApproximatesALaplacianAndChoosesTheTypeThatHoldsItsAngles) {
  const Matrix<double> x = NormalRows({.rows = 500, .cols = 6, .seed = 5});
  const Matrix<double> exact = NaiveKernelMatrix(MustParseKernel("2*laplacian(gamma=0.25)"), x, x);
  for (const char* options : {"", ", form=phase", ", serving_type=float64"}) {
    const BuiltVersion built = MustBuild(
        SpecOf(std::string("fourier(dimensions=1024") + options + ")", "2*laplacian(gamma=0.25)"),
        x);
    SCOPED_TRACE(built.provenance.spec_text);
    const Matrix<double> f = FeaturesFrom(built, x);
    const Matrix<double> gram = NaiveGram(f, f);
    double worst = 0;
    for (int64_t i = 0; i < gram.size(); ++i) {
      worst = std::max(worst, std::abs(gram.data()[i] - exact.data()[i]) / 2);
    }
    EXPECT_LE(worst, 6 / std::sqrt(1024.0));
    EXPECT_GT(worst, 2 / std::sqrt(1024.0));
    EXPECT_LE(built.certificate.serving_error->max / built.certificate.serving_error->scale, 1e-3);
    EXPECT_THAT(built.certificate.theorem, HasSubstr("for all pairs of 1,000 rows"));
    EXPECT_THAT(built.certificate.theorem, Not(HasSubstr("for all rows within")));
  }
  const BuiltVersion far =
      Build(SpecOf("fourier(dimensions=1024)", "laplacian(gamma=1e5)"), x).value();
  EXPECT_EQ(far.serving_type, FloatType::kFloat64);
}

TEST(FourierMappingTest, StandardizedColumnsAreTheOnesThatTheKernelSees) {
  Matrix<double> x = NormalRows({.rows = 400, .cols = 3, .seed = 8});
  for (int64_t i = 0; i < x.rows(); ++i) x(i, 1) = 1e4 * x(i, 1) - 5e3;
  const BuiltVersion built =
      MustBuild(SpecOf("fourier(dimensions=2048)", "rbf(gamma=0.2)", /*standardize=*/true), x);
  EXPECT_LE(built.certificate.kernel_error->max, 6 / std::sqrt(2048.0));
  EXPECT_GT(built.certificate.kernel_error->max, 2 / std::sqrt(2048.0));
}

TEST(FourierMappingTest, CertificateNamesTheBoundWithItsNumbersAndMeasuresTheKernel) {
  const Matrix<double> x = NormalRows({.rows = 2000, .cols = 5, .seed = 6});
  const BuiltVersion built = MustBuild(SpecOf("fourier(dimensions=4000)", "rbf(gamma=0.1)"), x);
  const Certificate& certificate = built.certificate;
  EXPECT_EQ(certificate.landmarks, 0);
  EXPECT_EQ(certificate.pool_rows, 0);
  EXPECT_EQ(certificate.held_out_rows, 200);
  EXPECT_FALSE(certificate.rank.has_value());
  EXPECT_THAT(certificate.theorem, HasSubstr("Rahimi, Recht 2007"));
  // The two bounds a are √(4·ln(2/0.05)/4000) = 0.0607 for one pair and
  // √(4·ln(2·499,500/0.05)/4000) = 0.1296 for all 499,500 pairs of 1,000 rows.
  EXPECT_THAT(certificate.theorem, HasSubstr("a = 0.061 for one pair"));
  EXPECT_THAT(certificate.theorem, HasSubstr("a = 0.13 for all pairs of 1,000 rows"));
  EXPECT_THAT(certificate.theorem, HasSubstr("for all rows within"));
  ASSERT_TRUE(certificate.kernel_error.has_value());
  EXPECT_LE(certificate.kernel_error->max, 0.13);
  EXPECT_GT(certificate.kernel_error->mean, 1e-3);
  const BuiltVersion orthogonal =
      MustBuild(SpecOf("fourier(dimensions=4000, orthogonal=true)", "rbf(gamma=0.1)"), x);
  EXPECT_THAT(orthogonal.certificate.theorem, HasSubstr("no bound of its deviation"));
}

TEST(FourierMappingTest, KernelsBeyondFloat32AreServedInFloat64) {
  const Matrix<double> x = NormalRows({.rows = 300, .cols = 4, .seed = 11});
  const BuiltVersion built = MustBuild(SpecOf("fourier(dimensions=64)", "1e100*rbf(gamma=0.1)"), x);
  EXPECT_EQ(built.serving_type, FloatType::kFloat64);
  EXPECT_LE(built.certificate.kernel_error->max, 1e100);
  const absl::Status status =
      Build(SpecOf("fourier(dimensions=64, serving_type=float32)", "1e100*rbf(gamma=0.1)"), x)
          .status();
  EXPECT_EQ(ReasonOf(status), "VALUE_NOT_REPRESENTABLE");
}

TEST(FourierMappingTest, OneRowIsEnoughToBuildFrom) {
  const Matrix<double> x = NormalRows({.rows = 1, .cols = 8, .seed = 7});
  EXPECT_EQ(MustBuild(SpecOf("fourier(dimensions=4)", "rbf(gamma=1)"), x).output_columns, 4);
  const absl::Status empty =
      Build(SpecOf("fourier(dimensions=4)", "rbf(gamma=1)"), Matrix<double>(0, 8)).status();
  EXPECT_EQ(ReasonOf(empty), "STREAM_EMPTY");
}

TEST(FourierMappingTest, OrthogonalFrequenciesCanBeCancelled) {
  const Matrix<double> x = NormalRows({.rows = 100, .cols = 8, .seed = 10});
  const InputStage input{.columns = 8};
  ExpectStopsAt(3, [&](Checkpoint checkpoint) {
    return BuildFourier({.input = input},
                        {.kernel = *FourierKernelOf(MustParseKernel("1*rbf(gamma=1)")),
                         .orthogonal = true,
                         .dimensions = 64},
                        checkpoint)
        .status();
  });
}

}  // namespace
}  // namespace phimap::testing
