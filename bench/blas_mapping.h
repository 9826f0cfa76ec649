// Mappings that use OpenBLAS in float32, as one would write them without a special engine.
#ifndef PHIMAP_BENCH_BLAS_MAPPING_H_
#define PHIMAP_BENCH_BLAS_MAPPING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_plans.h"
#include "core/linalg/matrix.h"

namespace phimap::bench {

// The OpenBLAS routines to use. All ways share the vectorized elementwise part.
enum class BlasWay {
  kGemm,  // sgemm, sgemm
  kTrmm,  // sgemm, strmm: half the multiplications of a triangle
  kGemv,  // sgemv, sgemv, row by row
  kTrmv,  // sgemv, strmv, row by row
};

std::string BlasWayName(BlasWay way);

// Returns the sensible ways: triangular routines only for a triangle, row by row only for few rows.
std::vector<BlasWay> BlasWaysFor(const BenchMapping& mapping, int64_t rows);

// Computes a mapping by OpenBLAS on one thread. The object holds the working memory for up to
// `rows` rows.
class BlasMapping {
 public:
  // `mapping` and `numbers` must outlive this object.
  BlasMapping(const BenchMapping& mapping, const BenchNumbers& numbers, int64_t rows);

  // Returns the features (rows × outputs) of x (rows × inputs). The sizes are those given to the
  // constructor.
  const float* Transform(BlasWay way, const Matrix<float>& x);
  // Computes only the projection of z (rows × landmarks). Triangular routines work in place, so
  // they run on a copy of z, and a measured time includes the copying.
  void Project(BlasWay way, const Matrix<float>& z);

 private:
  void Products(BlasWay way, const Matrix<float>& x);
  // Writes the projection of z to y_. If `way` is triangular, works in place instead. REQUIRES: z
  // is z_ if `way` is triangular.
  void Apply(BlasWay way, const Matrix<float>& z, int64_t rows);

  const BenchMapping& mapping_;
  const BenchNumbers& numbers_;
  std::vector<float> landmark_norms_;
  Matrix<float> z_;
  Matrix<float> y_;
};

// UseOneThread limits OpenBLAS to one thread. BlasCore returns the name of the core for which
// OpenBLAS chose its routines.
void UseOneThread();
std::string BlasCore();

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_BLAS_MAPPING_H_
