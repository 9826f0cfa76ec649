// Loops that measure the machine's limits, and the elementwise part of the BLAS mappings. All run
// on the vector unit that the engine currently uses.
#ifndef PHIMAP_BENCH_VECTOR_LOOPS_H_
#define PHIMAP_BENCH_VECTOR_LOOPS_H_

#include <cstdint>

namespace phimap::bench {

// Runs `rounds` rounds of float32 multiply-adds that touch registers only, in enough independent
// chains to keep the units busy. Returns the floating-point operations done, two to a multiply-add.
int64_t RunMultiplyAdds(int64_t rounds);

// Reads `count` floats and returns a number that depends on them.
float ReadAll(const float* values, int64_t count);

// Computes one row of rbf values in place: products_j ← exp(−gamma · max(0, norm + norms_j − 2
// products_j)).
void RbfRow(float gamma, float norm, const float* norms, int64_t count, float* products);

// Computes products_j ← cos(2π·products_j): the products are angles in units of full turns, as in
// the engine.
void CosRow(int64_t count, float* products);

// Returns the squared norm of a row.
float SquaredNorm(const float* x, int64_t count);

// Returns the name of the vector unit in use.
const char* LoopTargetName();

}  // namespace phimap::bench

#endif  // PHIMAP_BENCH_VECTOR_LOOPS_H_
