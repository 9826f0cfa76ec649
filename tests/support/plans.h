// Generates plans with every combination of stages, filled with random numbers, and runs them.
#ifndef PHIMAP_TESTS_SUPPORT_PLANS_H_
#define PHIMAP_TESTS_SUPPORT_PLANS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "core/linalg/matrix.h"
#include "core/plan/plan.h"

namespace phimap::testing {

// The kinds of features. kSinCos: cosines and sines of angles in turns. The number of features is
// even, and they are computed from half as many rows of A'. kPhase: cosines of angles with offsets.
// kMonomials: monomials of degree 3. kStrings: a kernel of strings. kRemote: a remote kernel of
// texts. The plans of the last two have no input stage, and no columns.
enum class FeatureKind { kProduct, kL1, kSinCos, kPhase, kMonomials, kStrings, kRemote };
enum class WKind { kNone, kTriangular, kDense, kSparse };

struct PlanShape {
  FloatType serving_type = FloatType::kFloat32;
  int64_t columns = 5;
  bool shift = false;
  bool scale = false;
  // Columns after the projection of the input stage; 0: no projection.
  int64_t projected = 0;
  FeatureKind features = FeatureKind::kProduct;
  int64_t feature_count = 7;
  // The kernel, used only with kProduct and kL1.
  const char* kernel = "rbf(gamma=0.5)";
  bool centre = false;
  WKind w = WKind::kNone;
  // Number of columns of a dense or sparse W.
  int64_t outputs = 4;
  uint64_t seed = 1;

  std::string ToText() const;
};

// Returns a plan of this shape. Its numbers are uniform in (-1, 1). The numbers of W and P are
// divided by the length of the sums in which they are used, so that no stage makes numbers larger.
Plan MakePlan(const PlanShape& shape);

// Shapes with each kind of input stage, of features of rows, of kernel and of W. Their sizes leave
// partial panels and chunks, and some of their sums are longer than one chain. The engine visits
// only the stored numbers of sparse rows under some of them, and makes rows dense under the others.
std::vector<PlanShape> ShapesOfEveryKind(FloatType serving_type);

// Returns the features of each row in the serving type T. Ends the program on an error.
template <typename T>
Matrix<T> MustTransform(const Engine& engine, const RowsView& rows);
template <typename T>
Matrix<T> MustTransform(const Plan& plan, const RowsView& rows);
// Like MustTransform, for either serving type. The features are widened to float64.
Matrix<double> MustTransformWide(const Plan& plan, const RowsView& rows);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_PLANS_H_
