// The mappings that the benchmarks time. Landmarks and weights are random numbers, because the time
// does not depend on their values.
#ifndef PHIMAP_BENCH_BENCH_PLANS_H_
#define PHIMAP_BENCH_BENCH_PLANS_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace phimap::bench {

enum class WKind { kNone, kTriangular, kDense };

// The function that a mapping applies to each product of a row and a landmark.
enum class Elementwise { kNone, kRbf, kCos };

// A mapping: products of a row with `landmarks` fixed rows, then an elementwise function of these
// products, then a multiplication by W.
struct BenchMapping {
  std::string name;
  int64_t inputs = 0;
  int64_t landmarks = 0;
  int64_t outputs = 0;
  WKind w = WKind::kNone;
  Elementwise elementwise = Elementwise::kRbf;

  // Parameter of the rbf kernel: 1/inputs, which is what gamma=scale gives for standardized rows.
  double gamma() const { return 1.0 / static_cast<double>(inputs); }
};

// Returns F1, F2 and F3 with d landmarks, where F3 has d/8 outputs; RFF (random Fourier features),
// which is d cosines of products with frequencies; and JL (a random projection), which is d
// products without a function.
std::vector<BenchMapping> MappingsOf(int64_t inputs, int64_t d);

// The matrices of a mapping, dense and in float32.
struct BenchNumbers {
  Matrix<float> landmarks;  // landmarks × inputs
  Matrix<float> w;          // landmarks × outputs, zeros below a triangle; empty without W
};

BenchNumbers MakeNumbers(const BenchMapping& mapping, std::mt19937_64& random);
Plan MakePlan(const BenchMapping& mapping, const BenchNumbers& numbers);
// Returns the triangle of w as plans store it, row after row.
TriangularProjection<float> PackedTriangle(const Matrix<float>& w);

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_BENCH_PLANS_H_
