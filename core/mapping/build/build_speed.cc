#include "core/mapping/build/build_speed.h"

#include <time.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/linalg/matrix.h"

namespace phimap {
namespace {

// Time per operation of a blocked pivoted factorization relative to a large product, measured on an
// AVX-512 machine. The factorization's vector products and its search for pivots are slower.
constexpr double kFactorSlowness = 1.7;

double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Returns the shortest time of three runs, because the first run may find cold caches.
template <typename Run>
double BestSeconds(const Run& run) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double before = ThreadSeconds();
    run();
    best = std::min(best, ThreadSeconds() - before);
  }
  return std::max(best, 1e-9);
}

Matrix<double> Filled(int64_t rows, int64_t columns) {
  Matrix<double> m = Matrix<double>::Uninit(rows, columns);
  for (int64_t i = 0; i < m.size(); ++i) m.data()[i] = 0.1 * static_cast<double>(i % 13);
  return m;
}

double ProductFlopsPerSecond() {
  const Matrix<double> a = Filled(256, 512);
  const Matrix<double> b = Filled(1024, 512);
  Matrix<double> out(a.rows(), b.rows());
  const double seconds =
      BestSeconds([&] { MultiplyTransposed(1, a.view(), b.view(), 0, out.view()); });
  return 2.0 * static_cast<double>(out.size() * a.cols()) / seconds;
}

// Measures a kernel block like those of the certificate: 256 rows against 2,000 others.
double ElementsPerSecond() {
  const Matrix<double> x = Filled(256, 4);
  const Matrix<double> z = Filled(2000, 4);
  const std::vector<double> x_norms = SquaredNorms(x.view());
  const std::vector<double> z_norms = SquaredNorms(z.view());
  const KernelProgram rbf =
      KernelProgram::Compile(KernelExpression::Parse("rbf(gamma=0.1)").value());
  Matrix<double> out(x.rows(), z.rows());
  const double seconds =
      BestSeconds([&] { KernelBlock(rbf, x.view(), x_norms, z.view(), z_norms, out.view()); });
  return static_cast<double>(out.size()) / seconds;
}

}  // namespace

BuildSpeed MeasureBuildSpeed() {
  return {.product_flops_per_second = ProductFlopsPerSecond(),
          .elements_per_second = ElementsPerSecond()};
}

double SecondsOf(const Work& work, const BuildSpeed& speed) {
  return (work.product_flops + kFactorSlowness * work.factor_flops) /
             speed.product_flops_per_second +
         work.elements / speed.elements_per_second;
}

}  // namespace phimap
