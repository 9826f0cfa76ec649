// The data of section 6 of Balcan, Blum, Vempala 2006, and the numbers that its two tables print.
#ifndef PHIMAP_LAB_EXPERIMENTS_BBV_DATA_H_
#define PHIMAP_LAB_EXPERIMENTS_BBV_DATA_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lab/built_map.h"
#include "lab/examples.h"

namespace phimap::lab {

// The methods, in the order of the tables' columns.
enum BbvMethod { kBbvF1Winnow, kBbvF1Svm, kBbvF2Winnow, kBbvF2Svm, kBbvSvm };
inline constexpr std::array<const char*, 5> kBbvMethods = {"F1 + Winnow", "F1 + SVM", "F2 + Winnow",
                                                           "F2 + SVM", "SVM"};
// Printed errors, one per method.
using BbvPrinted = std::array<double, 5>;

// The kernel of Table 1.
inline constexpr const char* kBbvPolynomial = "poly(degree=2, gamma=1, coef0=1)";
inline constexpr int64_t kBbvSurfaceLandmarks = 10;
inline constexpr int64_t kBbvSurfaceTrainRows = 40;
inline constexpr int64_t kBbvSurfaceTestRows = 100;

// A row of Table 1: points of the plane with l·(x₁²/a² ± x₂²/b² − 1) >= c and |x_i| <= M, where l
// is the label.
struct BbvSurface {
  const char* name;
  double b;  // a is 1 in every row
  double sign;
  double c;
  double bound;  // M
  // Whether points of class −1 are drawn from a Gaussian.
  bool gauss;
  BbvPrinted printed;

  // Returns x₁² ± x₂²/b² − 1.
  double Side(double x1, double x2) const { return x1 * x1 + sign * x2 * x2 / (b * b) - 1; }
  // Returns γ_l of section 6.1, c/((1 + 2M²)√(1 + 1/a⁴ + 1/b⁴)).
  double LeastMargin() const;
};

const std::array<BbvSurface, 8>& BbvSurfaces();

// Draws examples as in footnote 5: the class by a fair coin, then points until one is in the region
// of the class. Points are uniform in the square |x_i| <= M, or Gaussian with `deviation` in each
// coordinate. Class 1 is l = 1.
Examples DrawSurface(const BbvSurface& surface, double deviation, int64_t count, uint64_t seed);

// Returns w with w·φ(x) = x₁² ± x₂²/b² − 1, as a sum over the features of five points on the axes:
// (x·e + 1)² + (1 − x·e)² is 2(x·e)² + 2, and φ(0)·φ(x) is 1. REQUIRES: `map` is the exact map of
// kBbvPolynomial.
absl::StatusOr<std::vector<double>> BoundaryVector(const BuiltMap& map, const BbvSurface& surface);

// Returns K(x, x) of each row.
absl::StatusOr<std::vector<double>> SelfKernel(const std::string& kernel,
                                               ConstMatrixView<double> rows);
// Returns y·w·F(x)/(‖w‖·√K(x, x)) of all examples, in ascending order. REQUIRES: two classes, and
// one self_kernel per row.
std::vector<double> RisingMargins(const std::vector<double>& w, const Examples& features,
                                  const std::vector<double>& self_kernel);

// A row of Table 2.
struct BbvDataSet {
  const char* name;
  // File in lab/data.
  const char* file;
  // The class that is separated from all others; −1 if there are only two classes.
  int32_t positive;
  const char* kernel;
  int64_t landmarks;  // d1
  int64_t train_rows;
  int64_t printed_test_rows;
  // Number of runs behind the printed means, inferred from their digits. The paper's text says 10.
  int64_t printed_runs;
  BbvPrinted printed;
};

const std::array<BbvDataSet, 5>& BbvDataSets();
absl::StatusOr<Examples> ReadBbvDataSet(const std::string& data_dir, const BbvDataSet& data);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_BBV_DATA_H_
