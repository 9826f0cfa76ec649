// Measures the choice of landmarks by randomly pivoted Cholesky, and compares it with the work that
// this choice cannot avoid: the N×d kernel block of the chosen rows, and N·d²/2 multiplications as
// one product of OpenBLAS.
//
// Not part of bench/run, because this is part of a build, not of serving.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "bench/interleaved.h"
#include "bench/normal_matrix.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_expression.h"
#include "core/landmark/rpcholesky.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"

namespace phimap::bench {
namespace {

constexpr double kLimit = 1.5;
constexpr int64_t kTileRows = 512;

struct Sizes {
  int64_t rows = 20000;
  int64_t landmarks = 1000;
  int64_t columns = 64;
  int rounds = 5;
};

// Computes K(pool, landmarks) in tiles, as a build computes blocks.
void BlockOfKernel(const KernelProgram& kernel, const Matrix<double>& pool, Matrix<double>& out) {
  const ConstMatrixView<double> landmarks = pool.view().Rows(0, out.cols());
  const std::vector<double> landmark_norms = SquaredNorms(landmarks);
  for (int64_t begin = 0; begin < pool.rows(); begin += kTileRows) {
    const int64_t count = std::min(kTileRows, pool.rows() - begin);
    const ConstMatrixView<double> tile = pool.view().Rows(begin, count);
    KernelBlock(kernel, tile, SquaredNorms(tile), landmarks, landmark_norms,
                out.view().Rows(begin, count));
  }
}

int Run(const Sizes& sizes, bool check) {
  UseOneBlasThread();
  const Matrix<double> pool = NormalMatrix(sizes.rows, sizes.columns);
  const absl::StatusOr<KernelExpression> expression = KernelExpression::Parse(
      absl::StrFormat("rbf(gamma=%.17g)", 1.0 / static_cast<double>(sizes.columns)));
  PHIMAP_CHECK(expression.ok());
  const KernelProgram kernel = KernelProgram::Compile(*expression);
  Matrix<double> block(sizes.rows, sizes.landmarks);
  const Matrix<double> factor = NormalMatrix(sizes.rows, sizes.landmarks);
  const Matrix<double> half = NormalMatrix(sizes.landmarks, sizes.landmarks / 2);
  Matrix<double> product(sizes.rows, sizes.landmarks / 2);
  const auto choose = [&](int threads) {
    return [&, threads] {
      PHIMAP_CHECK(ChooseRandomPivots({.kernel = kernel,
                                       .pool = pool.view(),
                                       .landmarks = sizes.landmarks,
                                       .seed = 1,
                                       .threads = [threads] { return threads; }},
                                      NeverStop)
                       .ok());
    };
  };
  std::vector<Contender> contenders = {
      {"kernel block", [&] { BlockOfKernel(kernel, pool, block); }},
      {"product", [&] { Multiply(1, factor.view(), half.view(), 0, product.view()); }},
      {"rpcholesky, 1 thread", choose(1)},
      {"rpcholesky, 2 threads", choose(2)}};
  TimeInterleaved({.rounds = sizes.rounds, .round_seconds = 0}, contenders);
  absl::PrintF("%d rows of %d numbers, %d landmarks, rbf, float64; OpenBLAS for %s\n", sizes.rows,
               sizes.columns, sizes.landmarks, BlasCoreName());
  for (const Contender& contender : contenders) {
    absl::PrintF("  %-22s %8.1f ms\n", contender.name, contender.median_us / 1000);
  }
  const double ratio =
      contenders[2].median_us / (contenders[0].median_us + contenders[1].median_us);
  absl::PrintF("rpcholesky, 1 thread / (kernel block + product): %.2f   limit %.1f\n", ratio,
               kLimit);
  return check && ratio > kLimit ? 1 : 0;
}

}  // namespace
}  // namespace phimap::bench

int main(int argc, char** argv) {
  CLI::App app("Measures what choosing landmarks by randomly pivoted Cholesky costs.");
  phimap::bench::Sizes sizes;
  bool check = false;
  app.add_option("--rows", sizes.rows, "Rows of the pool")->capture_default_str();
  app.add_option("--landmarks", sizes.landmarks, "Rows to choose")->capture_default_str();
  app.add_option("--columns", sizes.columns, "Columns per row")->capture_default_str();
  app.add_option("--rounds", sizes.rounds, "Rounds")->capture_default_str();
  app.add_flag("--check", check, "Exit with 1 if the limit is exceeded");
  CLI11_PARSE(app, argc, argv);
  PHIMAP_CHECK(1 <= sizes.landmarks && sizes.landmarks <= sizes.rows && sizes.columns >= 1);
  return phimap::bench::Run(sizes, check);
}
