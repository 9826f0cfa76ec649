// Measures how much time sparsifying the Gram matrix saves kernel PCA, including the time of the
// Gram matrix itself, and how much accuracy it costs: ‖K̂ − K‖₂ with its two bounds, and the angle
// between the components of K̂ and those of K with the bound of Theorem 2 of Achlioptas, McSherry,
// Schölkopf 2001.
//
// Not part of bench/run, because this is part of a build, not of serving. Fails if a bound does not
// hold and, with --check, if sparsifying is not --limit times faster.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "bench/interleaved.h"
#include "core/linalg/blas.h"
#include "core/mapping/kernel_pca/kernel_pca.h"
#include "core/status/check.h"

namespace phimap::bench {
namespace {

struct Arguments {
  int64_t rows = 10000;
  int64_t columns = 64;
  int64_t components = 16;
  double sparsify = 10;
  int threads = 1;
  int rounds = 3;
  double limit = 2;
};

// Number of components of K that are computed in addition to the compared ones. The angle is
// measured across the spectral gap that these additional components span.
constexpr int64_t kMore = 40;

// Returns rows around 64 centres. Each centre has 3 % fewer rows than the one before, so that the
// spectrum falls as slowly from component to component as that of real data.
Matrix<double> Rows(const Arguments& arguments) {
  constexpr int kCentres = 64;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<double> weights;
  for (int c = 0; c < kCentres; ++c) weights.push_back(std::pow(0.97, c));
  std::discrete_distribution<int> centre(weights.begin(), weights.end());
  Matrix<double> centres(kCentres, arguments.columns);
  for (int64_t i = 0; i < centres.size(); ++i) centres.data()[i] = normal(random);
  Matrix<double> rows(arguments.rows, arguments.columns);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const int c = centre(random);
    for (int64_t k = 0; k < rows.cols(); ++k) rows(i, k) = centres(c, k) + 0.2 * normal(random);
  }
  return rows;
}

KernelPca MustBuild(const LandmarkTask& task, const KernelPcaTask& pca, int threads,
                    bool measured) {
  const auto count = [&] { return threads; };
  const TileControl control(count, NeverStop);
  absl::StatusOr<KernelPca> built =
      measured ? BuildMeasuredKernelPca(task, pca, control) : BuildKernelPca(task, pca, control);
  PHIMAP_CHECK(built.ok());
  return *std::move(built);
}

// Returns the unit coefficient vectors α_n of the components, one per row.
Matrix<double> Expansions(const KernelPca& pca) {
  const auto& stages = std::get<ServingStages<double>>(pca.served.stages);
  const Matrix<double>& w = std::get<DenseProjection<double>>(stages.projection).matrix;
  Matrix<double> alpha(w.cols(), w.rows());
  for (int64_t n = 0; n < w.cols(); ++n) {
    for (int64_t i = 0; i < w.rows(); ++i) alpha(n, i) = w(i, n) * std::sqrt(pca.eigenvalues[n]);
  }
  return alpha;
}

// Returns the sine of the largest angle between the span of `found` and that of `exact`.
double SineBetween(const Matrix<double>& found, ConstMatrixView<double> exact) {
  Matrix<double> cosines(found.rows(), exact.rows());
  MultiplyTransposed(1, found.view(), exact, 0, cosines.view());
  Matrix<double> gram(found.rows(), found.rows());
  MultiplyTransposed(1, std::as_const(cosines).view(), std::as_const(cosines).view(), 0,
                     gram.view());
  return std::sqrt(std::max(0.0, 1 - SymmetricEigenvalues(gram.view())->front()));
}

// Prints a number with its bound. Returns true if the number is within the bound.
bool Keeps(const char* what, double number, double bound) {
  absl::PrintF("  %-46s %10.4g   bound %10.4g%s\n", what, number, bound,
               number <= bound ? "" : "   NOT KEPT");
  return number <= bound;
}

bool CheckAccuracy(const LandmarkTask& task, const KernelPcaTask& exact_task,
                   const KernelPcaTask& sparse_task, int threads) {
  KernelPcaTask more = exact_task;
  more.components += kMore;
  const KernelPca exact = MustBuild(task, more, threads, false);
  const KernelPca sparse = MustBuild(task, sparse_task, threads, true);
  const GramLoss& loss = *sparse.gram;
  PHIMAP_CHECK(static_cast<int64_t>(sparse.eigenvalues.size()) == sparse_task.components);
  PHIMAP_CHECK(static_cast<int64_t>(exact.eigenvalues.size()) == more.components);
  absl::PrintF(
      "products %d and %d, residuals %.1e and %.1e; λ of K %.1f … %.1f, of K̂ %.1f … %.1f\n",
      exact.products, sparse.products, exact.residual, sparse.residual, exact.eigenvalues[0],
      exact.eigenvalues[sparse_task.components - 1], sparse.eigenvalues[0],
      sparse.eigenvalues.back());
  bool kept = Keeps("‖K̂ − K‖₂, and 4σ√m", loss.error.norm, AmsNormBound(loss.law));
  kept &= Keeps("‖K̂ − K‖₂, and matrix Bernstein at 0.95", loss.error.norm,
                BernsteinNormBound(loss.law, 0.05, loss.error.largest_row));
  // Compares F̂(t), where t = λ̂_ℓ, with the eigenvectors of K whose eigenvalues are at most t − b.
  const double t = sparse.eigenvalues.back();
  const double b = t - exact.eigenvalues.back();
  const Matrix<double> all = Expansions(exact);
  const double sine = SineBetween(Expansions(sparse), all.view().Rows(0, more.components - 1));
  kept &= Keeps("sine of the angle to F(t − b), and ‖K̂ − K‖₂/b", sine, loss.error.norm / b);
  return kept;
}

int Run(const Arguments& arguments, bool check) {
  UseOneBlasThread();
  const Matrix<double> rows = Rows(arguments);
  const LandmarkTask task{
      .kernel = *KernelExpression::Parse(absl::StrFormat("rbf(gamma=%.17g)", 1.0 / rows.cols())),
      .input = {.columns = rows.cols()},
      .landmarks = rows.view(),
      .serving_type = FloatType::kFloat64};
  const KernelPcaTask exact{.components = arguments.components, .seed = 1, .single_gram = true};
  KernelPcaTask sparse = exact;
  sparse.gram.sparsify = arguments.sparsify;
  std::vector<Contender> contenders = {
      {"s = 1, float32", [&] { MustBuild(task, exact, arguments.threads, false); }},
      {absl::StrFormat("s = %g", arguments.sparsify),
       [&] { MustBuild(task, sparse, arguments.threads, false); }}};
  TimeInterleaved({.rounds = arguments.rounds, .round_seconds = 0}, contenders);
  absl::PrintF("%d rows of %d numbers, %d components, rbf, threads: %d; OpenBLAS for %s\n",
               rows.rows(), rows.cols(), arguments.components, arguments.threads, BlasCoreName());
  for (const Contender& contender : contenders) {
    absl::PrintF("  %-22s %8.1f ms\n", contender.name, contender.median_us / 1000);
  }
  const double ratio = contenders[0].median_us / contenders[1].median_us;
  absl::PrintF("sparsified: %.2f × as fast   limit %.1f\n", ratio, arguments.limit);
  const bool kept = CheckAccuracy(task, exact, sparse, arguments.threads);
  return !kept || (check && ratio < arguments.limit) ? 1 : 0;
}

}  // namespace
}  // namespace phimap::bench

int main(int argc, char** argv) {
  CLI::App app("Measures what sparsifying the Gram matrix saves and costs kernel PCA.");
  phimap::bench::Arguments arguments;
  bool check = false;
  app.add_option("--rows", arguments.rows, "Landmarks")->capture_default_str();
  app.add_option("--columns", arguments.columns, "Columns per row")->capture_default_str();
  app.add_option("--components", arguments.components, "Number of components")
      ->capture_default_str();
  app.add_option("--sparsify", arguments.sparsify, "Keep one in this many entries")
      ->capture_default_str();
  app.add_option("--threads", arguments.threads, "Threads of each build")->capture_default_str();
  app.add_option("--rounds", arguments.rounds, "Rounds")->capture_default_str();
  app.add_option("--limit", arguments.limit, "Smallest speedup that --check accepts")
      ->capture_default_str();
  app.add_flag("--check", check, "Exit with 1 below --limit");
  CLI11_PARSE(app, argc, argv);
  PHIMAP_CHECK(arguments.rows > arguments.components + 8 && arguments.columns >= 1 &&
               arguments.threads >= 1);
  return phimap::bench::Run(arguments, check);
}
