// Mappings by OpenBLAS in float32, as one would write them without an engine of one's own.
#ifndef PHIMAP_BENCH_BLAS_MAPPING_H_
#define PHIMAP_BENCH_BLAS_MAPPING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/bench_plans.h"
#include "core/linalg/matrix.h"

namespace phimap::bench {

// Routines to use. All share the vectorized elementwise part.
enum class BlasWay {
  kGemm,  // sgemm, sgemm
  kTrmm,  // sgemm, strmm: half the multiplications of a triangle
  kGemv,  // sgemv, sgemv, row by row
  kTrmv,  // sgemv, strmv, row by row
};

std::string BlasWayName(BlasWay way);

// Sensible ways: triangular routines for a triangle, row by row for few rows.
std::vector<BlasWay> BlasWaysFor(const BenchMapping& mapping, int64_t rows);

// One thread's working memory for up to `rows` rows.
class BlasMapping {
 public:
  // `numbers` outlives it.
  BlasMapping(const BenchMapping& mapping, const BenchNumbers& numbers, int64_t rows);

  // Features of x, rows × inputs, as the constructor said; returns them, rows × outputs.
  const float* Transform(BlasWay way, const Matrix<float>& x);
  // The projection alone, of z, rows × landmarks. Triangular routines work in place: they get a
  // copy, which is timed with them.
  void Project(BlasWay way, const Matrix<float>& z);

 private:
  void Products(BlasWay way, const Matrix<float>& x);
  // From z to y_, or in place if `way` is triangular and z is z_.
  void Apply(BlasWay way, const Matrix<float>& z, int64_t rows);

  const BenchMapping& mapping_;
  const BenchNumbers& numbers_;
  std::vector<float> landmark_norms_;
  Matrix<float> z_;
  Matrix<float> y_;
};

// Holds OpenBLAS to one thread, and the name of the core it chose its routines for.
void UseOneThread();
std::string BlasCore();

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_BLAS_MAPPING_H_
