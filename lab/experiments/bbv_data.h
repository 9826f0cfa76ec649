// The data of section 6 of Balcan, Blum, Vempala 2006, and what its two tables print.
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
// Printed errors, one a method.
using BbvPrinted = std::array<double, 5>;

// The kernel of Table 1.
inline constexpr const char* kBbvPolynomial = "poly(degree=2, gamma=1, coef0=1)";
inline constexpr int64_t kBbvSurfaceLandmarks = 10;
inline constexpr int64_t kBbvSurfaceTrainRows = 40;
inline constexpr int64_t kBbvSurfaceTestRows = 100;

// A row of Table 1: points of the plane with l·(x₁²/a² ± x₂²/b² − 1) >= c and |x_i| <= M.
struct BbvSurface {
  const char* name;
  double b;  // a is 1 in every row
  double sign;
  double c;
  double bound;  // M
  // Whether points of class −1 are drawn from a Gaussian.
  bool gauss;
  BbvPrinted printed;

  // x₁² ± x₂²/b² − 1.
  double Side(double x1, double x2) const { return x1 * x1 + sign * x2 * x2 / (b * b) - 1; }
  // γ_l of section 6.1, c/((1 + 2M²)√(1 + 1/a⁴ + 1/b⁴)).
  double LeastMargin() const;
};

const std::array<BbvSurface, 8>& BbvSurfaces();

// Footnote 5: a fair coin for the class, then points uniform in the square |x_i| <= M, or of a
// Gaussian with this deviation in each coordinate, until one is in the region of the class. Class
// 1 is l = 1.
Examples DrawSurface(const BbvSurface& surface, double deviation, int64_t count, uint64_t seed);

// w with w·φ(x) = x₁² ± x₂²/b² − 1, put together of the features of five points of the axes:
// (x·e + 1)² + (1 − x·e)² is 2(x·e)² + 2, and φ(0)·φ(x) is 1. `map` is the exact one of
// kBbvPolynomial.
absl::StatusOr<std::vector<double>> BoundaryVector(const BuiltMap& map, const BbvSurface& surface);

// K(x, x) of each row.
absl::StatusOr<std::vector<double>> SelfKernel(const std::string& kernel,
                                               ConstMatrixView<double> rows);
// y·w·F(x)/(‖w‖·√K(x, x)) of each example, rising. REQUIRES: two classes, one self_kernel a row.
std::vector<double> RisingMargins(const std::vector<double>& w, const Examples& features,
                                  const std::vector<double>& self_kernel);

// A row of Table 2.
struct BbvDataSet {
  const char* name;
  // File in lab/data.
  const char* file;
  // The class that is told from the others; −1 where there are two.
  int32_t positive;
  const char* kernel;
  int64_t landmarks;  // d1
  int64_t train_rows;
  int64_t printed_test_rows;
  // Number of runs whose means are printed, as the numbers themselves show; the text says 10.
  int64_t printed_runs;
  BbvPrinted printed;
};

const std::array<BbvDataSet, 5>& BbvDataSets();
absl::StatusOr<Examples> ReadBbvDataSet(const std::string& data_dir, const BbvDataSet& data);

}  // namespace phimap::lab

#endif  // PHIMAP_LAB_EXPERIMENTS_BBV_DATA_H_
