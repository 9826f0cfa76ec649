#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/random/stream_ids.h"
#include "gtest/gtest.h"
#include "lab/built_map.h"
#include "lab/gram_schmidt_map.h"

namespace phimap::lab {
namespace {

constexpr const char* kKernel = "poly(degree=2, gamma=1, coef0=1)";

Matrix<double> PointsOfThePlane(int64_t count, uint64_t seed) {
  RandomCursor random(RandomStream(seed, StreamId::kLabRows));
  Matrix<double> points(count, 2);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < 2; ++k) points(i, k) = 2 * random.UniformOpen01() - 1;
  }
  return points;
}

// φ(x) of (x·y + 1)²: its six monomials.
std::vector<double> Phi(const double* x) {
  const double root = std::sqrt(2.0);
  return {1, root * x[0], root * x[1], x[0] * x[0], x[1] * x[1], root * x[0] * x[1]};
}

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

// Returns the Gram–Schmidt basis of φ of the first six points, by subtracting twice what lies in
// the span of the vectors before. Sets *least to the smallest share of a ‖φ‖² that is left.
std::vector<std::vector<double>> BasisInPhiSpace(const Matrix<double>& points, double* least) {
  std::vector<std::vector<double>> basis;
  *least = 1;
  for (int64_t i = 0; i < 6; ++i) {
    std::vector<double> q = Phi(points.row(i));
    for (int turn = 0; turn < 2; ++turn) {
      for (const std::vector<double>& before : basis) {
        const double along = Dot(q, before);
        for (size_t k = 0; k < q.size(); ++k) q[k] -= along * before[k];
      }
    }
    const std::vector<double> phi = Phi(points.row(i));
    *least = std::min(*least, Dot(q, q) / Dot(phi, phi));
    const double length = std::sqrt(Dot(q, q));
    for (double& entry : q) entry /= length;
    basis.push_back(q);
  }
  return basis;
}

TEST(LabGramSchmidtMapTest, CoordinatesAreThoseOfGramSchmidtInPhiSpaceInTheOrderOfDrawing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Matrix<double> landmarks = PointsOfThePlane(10, seed);
    const Matrix<double> rows = PointsOfThePlane(30, 100 + seed);
    const GramSchmidtMap map = GramSchmidtMap::Make(kKernel, landmarks.view()).value();
    // Six random points span the six-dimensional φ-space, so the last four give no feature.
    ASSERT_EQ(map.independent(), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
    double least = 0;
    const std::vector<std::vector<double>> basis = BasisInPhiSpace(landmarks, &least);
    // The map takes its factor from kernel values, whose rounding grows by 1/least where a residual
    // cancels.
    const double tolerance = 100 * 0x1p-53 / least;
    ASSERT_LT(tolerance, 1e-6);
    const Matrix<double> features = map.Map(rows.view());
    for (int64_t i = 0; i < rows.rows(); ++i) {
      for (int64_t r = 0; r < 6; ++r) {
        EXPECT_NEAR(features(i, r), Dot(Phi(rows.row(i)), basis[r]), tolerance);
      }
    }
  }
}

TEST(LabGramSchmidtMapTest, ALandmarkThatRepeatsAnEarlierOneGivesNoFeature) {
  Matrix<double> landmarks = PointsOfThePlane(4, 3);
  std::copy_n(landmarks.row(0), 2, landmarks.row(2));
  const GramSchmidtMap map = GramSchmidtMap::Make(kKernel, landmarks.view()).value();
  EXPECT_EQ(map.independent(), (std::vector<int64_t>{0, 1, 3}));
}

// F2 of the product projects onto the same span, so only the coordinates differ.
TEST(LabGramSchmidtMapTest, InnerProductsAreThoseOfTheProductsF2AndCoordinatesAreNot) {
  // A build needs one row that is no landmark.
  const Matrix<double> stream = PointsOfThePlane(11, 5);
  const ConstMatrixView<double> landmarks = stream.view().Rows(0, 10);
  const Matrix<double> rows = PointsOfThePlane(20, 6);
  const GramSchmidtMap map = GramSchmidtMap::Make(kKernel, landmarks).value();
  const BuiltMap product =
      BuiltMap::Build({"f2(landmarks=10, policy=given, serving_type=float64)", kKernel},
                      stream.view(), 1)
          .value();
  const Matrix<double> ours = map.Map(rows.view());
  const Matrix<double> theirs = product.Map(rows.view()).value();
  ASSERT_EQ(ours.cols(), theirs.cols());
  double farthest = 0;
  for (int64_t i = 0; i < rows.rows(); ++i) {
    for (int64_t j = 0; j < rows.rows(); ++j) {
      double a = 0;
      double b = 0;
      for (int64_t r = 0; r < ours.cols(); ++r) {
        a += ours(i, r) * ours(j, r);
        b += theirs(i, r) * theirs(j, r);
        farthest = std::max(farthest, std::abs(ours(i, r) - theirs(i, r)));
      }
      EXPECT_NEAR(a, b, 1e-8);
    }
  }
  EXPECT_GT(farthest, 0.1);
}

}  // namespace
}  // namespace phimap::lab
