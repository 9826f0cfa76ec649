#include "core/mapping/kernel_pca.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_work.h"
#include "core/linalg/lanczos.h"
#include "core/linalg/orthogonal_iteration.h"
#include "core/mapping/pca_gram.h"
#include "core/random/random_stream.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kOversampling = 8;
// A residual up to it needs no word; of a randomized Gram matrix, which is in float32, the second.
constexpr double kLargestResidual = 1e-6;
constexpr double kLargestSingleResidual = 1e-4;

// Relative residuals that products in float64 and float32 reach.
constexpr double kTolerance = 1e-10;
constexpr double kSingleTolerance = 1e-5;

// Most sweeps. Of a randomized matrix the components that are still mixed after 300 lie among its
// noise, whose eigenvalues are close to each other.
constexpr int64_t kSweeps = 1000;
constexpr int64_t kRandomizedSweeps = 300;

Matrix<double> StartVectors(uint64_t seed, int64_t count, int64_t m) {
  const RandomStream normals(seed, StreamId::kStartVectors);
  Matrix<double> start = Matrix<double>::Uninit(std::min(count + kOversampling, m), m);
  for (int64_t i = 0; i < start.size(); ++i) {
    start.data()[i] = normals.Normal(static_cast<uint64_t>(i));
  }
  return start;
}

// β with K̂ + βI positive semidefinite, to a hundredth of ‖K̂‖.
absl::StatusOr<double> ShiftOf(const PcaGram& gram, uint64_t seed, int64_t m,
                               Checkpoint checkpoint) {
  constexpr int64_t kSteps = 60;
  const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out) {
    gram.Multiply(v, out);
    return absl::OkStatus();
  };
  const Matrix<double> start = StartVectors(seed, 1, m);
  PHIMAP_ASSIGN_OR_RETURN(
      const SpectrumEnds ends,
      FindSpectrumEnds(multiply, {start.data(), start.data() + m}, 0.01, kSteps, checkpoint));
  return std::max(0.0, ends.residual - ends.lowest);
}

// The leading pairs of K̂ by falling value, one more than there are components if there is one.
absl::StatusOr<Eigenpairs> LeadingPairs(const PcaGram& gram, const KernelPcaTask& pca, int64_t m,
                                        double shift, Checkpoint checkpoint) {
  const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out) {
    gram.Multiply(v, out);
    if (shift == 0) return absl::OkStatus();
    for (int64_t n = 0; n < v.rows(); ++n) {
      for (int64_t i = 0; i < m; ++i) out(n, i) += shift * v(n, i);
    }
    return absl::OkStatus();
  };
  const int64_t count = std::min(pca.components + (gram.randomized().has_value() ? 1 : 0), m);
  PHIMAP_ASSIGN_OR_RETURN(
      Eigenpairs pairs,
      IterateOrthogonally(
          {.count = count,
           .tolerance = gram.single() ? kSingleTolerance : kTolerance,
           .max_sweeps = gram.randomized().has_value() ? kRandomizedSweeps : kSweeps,
           .ends_at_negative = shift == 0 && gram.randomized().has_value()},
          multiply, StartVectors(pca.seed, pca.components, m), checkpoint));
  for (double& value : pairs.values) value -= shift;
  return pairs;
}

// The same, shifted where it must be. Pairs of largest modulus that are all positive are those of
// largest value, and without a shift the iteration is faster.
absl::StatusOr<Eigenpairs> HighestPairs(const PcaGram& gram, const KernelPcaTask& pca, int64_t m,
                                        double& shift, Checkpoint checkpoint) {
  shift = 0;
  if (!gram.randomized().has_value()) return LeadingPairs(gram, pca, m, 0, checkpoint);
  PHIMAP_ASSIGN_OR_RETURN(Eigenpairs pairs, LeadingPairs(gram, pca, m, 0, [&](double f) {
                            return checkpoint(0.5 * f);
                          }));
  if (*std::min_element(pairs.values.begin(), pairs.values.end()) >= 0) return pairs;
  PHIMAP_ASSIGN_OR_RETURN(
      shift, ShiftOf(gram, pca.seed, m, [&](double f) { return checkpoint(0.5 + 0.1 * f); }));
  return LeadingPairs(gram, pca, m, shift, [&](double f) { return checkpoint(0.6 + 0.4 * f); });
}

// Unit α_n, row after row, of `kept` components. Of centred ones the sum, which is 0 but for what
// the iteration left, is taken off, so that a shift of all kernel values is not seen.
Matrix<double> Expansions(const Eigenpairs& pairs, int64_t kept, bool centred) {
  const int64_t m = pairs.vectors.cols();
  Matrix<double> alpha = Matrix<double>::Uninit(kept, m);
  for (int64_t n = 0; n < kept; ++n) {
    const double* from = pairs.vectors.row(n);
    double mean = 0;
    for (int64_t i = 0; centred && i < m; ++i) mean += from[i] / static_cast<double>(m);
    for (int64_t i = 0; i < m; ++i) alpha(n, i) = from[i] - mean;
  }
  return alpha;
}

// Randomized rounding in place, and how many weights are left.
absl::StatusOr<RoundingLoss> Round(double scale, uint64_t seed, MatrixView<double> alpha) {
  const RandomStream uniform(seed, StreamId::kExpansionRounding);
  const int64_t m = alpha.cols();
  RoundingLoss loss{.scale = scale, .all_weights = alpha.rows() * m};
  for (int64_t n = 0; n < alpha.rows(); ++n) {
    int64_t kept = 0;
    for (int64_t i = 0; i < m; ++i) {
      double& a = alpha(n, i);
      if (std::abs(a) < 1 / scale) {
        const double u = uniform.UniformOpen01(static_cast<uint64_t>(n * m + i));
        a = u < scale * std::abs(a) ? std::copysign(1 / scale, a) : 0;
      }
      kept += a != 0 ? 1 : 0;
    }
    if (kept == 0) {
      return MakeError(
          absl::StatusCode::kFailedPrecondition, "ROUNDED_AWAY", "spec.rounding",
          absl::StrCat("rounding=", scale, " leaves component ", n + 1,
                       " no weight; the root of the landmarks, ", std::sqrt(static_cast<double>(m)),
                       ", and more keep about all there is to keep"));
    }
    loss.weights += kept;
  }
  return loss;
}

// Rows and weights of the landmarks that have any, α_n/√λ_n; and which they are.
std::vector<int64_t> SetExpansions(const Matrix<double>& alpha, const std::vector<double>& values,
                                   const std::vector<double>& means, StageNumbers& stages) {
  const int64_t kept = alpha.rows();
  std::vector<int64_t> used;
  for (int64_t i = 0; i < alpha.cols(); ++i) {
    bool any = false;
    for (int64_t n = 0; n < kept; ++n) any = any || alpha(n, i) != 0;
    if (any) used.push_back(i);
  }
  const auto count = static_cast<int64_t>(used.size());
  Matrix<double> rows = Matrix<double>::Uninit(count, stages.rows.cols());
  stages.dense = Matrix<double>::Uninit(count, kept);
  for (int64_t k = 0; k < count; ++k) {
    if (!rows.empty()) std::copy_n(stages.rows.row(used[k]), rows.cols(), rows.row(k));
    for (int64_t n = 0; n < kept; ++n) {
      stages.dense(k, n) = alpha(n, used[k]) / std::sqrt(values[n]);
    }
    if (!means.empty()) stages.centre.push_back(means[used[k]]);
  }
  stages.rows = std::move(rows);
  if (stages.external.has_value()) stages.external = WithExamples(*stages.external, used);
  return used;
}

// λ_n − λ_{n+1} > 2‖E‖ on both sides. K̂'s eigenvalues are K's within ‖E‖ each (Weyl), so that a
// gap of more than 4‖E‖ there is one of more than 2‖E‖ here.
std::vector<int64_t> ComponentsApart(const std::vector<double>& values, double error) {
  std::vector<int64_t> apart;
  for (size_t n = 0; n + 1 < values.size(); ++n) {
    const bool above = n == 0 || values[n - 1] - values[n] > 4 * error;
    if (above && values[n] - values[n + 1] > 4 * error)
      apart.push_back(static_cast<int64_t>(n) + 1);
  }
  return apart;
}

// Of what the plan is served in, or of values that are shorter.
double UnitOf(const LandmarkTask& task) {
  const double unit = std::ldexp(1.0, task.serving_type == FloatType::kFloat32 ? -24 : -53);
  return task.outside != nullptr ? std::max(unit, task.outside->unit) : unit;
}

// Keeps the eigenvalues above the tolerance, which it sets. They come by falling value: what is
// dropped stands behind what is kept.
absl::Status KeepComponents(const PcaGram& gram, const Eigenpairs& pairs, const KernelPcaTask& pca,
                            double u, KernelPca& mapping) {
  // What weights of the serving type can carry, and what rounding leaves of a zero.
  const double product = std::ldexp(1.0, gram.single() ? -24 : -53);
  mapping.tolerance =
      static_cast<double>(pairs.vectors.cols()) *
      std::max(u * gram.largest(), product * std::abs(pairs.values[0] + mapping.shift));
  for (int64_t n = 0; n < pca.components; ++n) {
    if (pairs.values[n] > mapping.tolerance) mapping.eigenvalues.push_back(pairs.values[n]);
  }
  if (!mapping.eigenvalues.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, "ZERO_KERNEL", "kernel",
                   pca.centred ? "all landmarks are one point in φ-space: nothing varies"
                               : "K(x, x) is 0 on every landmark: there is no direction");
}

// What randomizing lost, if anything was randomized.
absl::Status Measure(const StageNumbers& stages, const PcaGram& gram, const Eigenpairs& pairs,
                     uint64_t seed, Checkpoint checkpoint, KernelPca& mapping) {
  if (!gram.randomized().has_value()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(
      const GramError error,
      MeasureGramError(stages.program, stages.rows.view(), *gram.randomized(), seed, checkpoint));
  mapping.gram = GramLoss{.law = gram.randomized()->law(),
                          .error = error,
                          .apart = ComponentsApart(pairs.values, error.norm)};
  return absl::OkStatus();
}

// Weights, rounded or not, and the landmarks that have any.
absl::Status Expand(const PcaGram& gram, const Eigenpairs& pairs, const KernelPcaTask& pca,
                    StageNumbers& stages, KernelPca& mapping) {
  const auto kept = static_cast<int64_t>(mapping.eigenvalues.size());
  Matrix<double> alpha = Expansions(pairs, kept, pca.centred);
  if (pca.rounding > 0) {
    PHIMAP_ASSIGN_OR_RETURN(mapping.rounding, Round(pca.rounding, pca.seed, alpha.view()));
    stages.sparse = true;
  }
  mapping.used = SetExpansions(alpha, mapping.eigenvalues, gram.means(), stages);
  mapping.landmarks = static_cast<int64_t>(mapping.used.size());
  return absl::OkStatus();
}

// The Gram matrix, and the stage that the plan gets, of all landmarks.
absl::StatusOr<PcaGram> GramOf(const LandmarkTask& task, const KernelPcaTask& pca,
                               StageNumbers& stages, Checkpoint checkpoint) {
  if (task.outside != nullptr) {
    PHIMAP_CHECK(!pca.gram.any() && !pca.single_gram);
    stages.external = task.outside->block;
    return PcaGram::Of(task.outside->gram);
  }
  PHIMAP_ASSIGN_OR_RETURN(stages.rows, ServedLandmarks(task));
  stages.program = KernelProgram::Compile(task.kernel);
  return PcaGram::Make(stages.program, std::as_const(stages.rows).view(),
                       {pca.gram, pca.single_gram}, pca.seed, checkpoint);
}

absl::StatusOr<KernelPca> Build(const LandmarkTask& task, const KernelPcaTask& pca, bool measured,
                                Checkpoint checkpoint) {
  const int64_t m = task.count();
  PHIMAP_CHECK(1 <= pca.components && pca.components <= m);
  StageNumbers stages;
  PHIMAP_ASSIGN_OR_RETURN(PcaGram gram,
                          GramOf(task, pca, stages, [&](double f) { return checkpoint(0.4 * f); }));
  if (pca.centred) gram.Centre();
  KernelPca mapping;
  mapping.trace = gram.trace();
  PHIMAP_ASSIGN_OR_RETURN(const Eigenpairs pairs,
                          HighestPairs(gram, pca, m, mapping.shift,
                                       [&](double f) { return checkpoint(0.4 + 0.5 * f); }));
  mapping.residual = pairs.residual;
  mapping.sweeps = pairs.sweeps;
  PHIMAP_RETURN_IF_ERROR(KeepComponents(gram, pairs, pca, UnitOf(task), mapping));
  if (measured) {
    PHIMAP_RETURN_IF_ERROR(Measure(
        stages, gram, pairs, pca.seed, [&](double f) { return checkpoint(0.9 + 0.1 * f); },
        mapping));
  }
  PHIMAP_RETURN_IF_ERROR(Expand(gram, pairs, pca, stages, mapping));
  PHIMAP_RETURN_IF_ERROR(
      EmitPlans({.input = task.input, .serving_type = task.serving_type}, stages, mapping));
  PHIMAP_RETURN_IF_ERROR(checkpoint(1));
  return mapping;
}

}  // namespace

absl::StatusOr<KernelPca> BuildKernelPca(const LandmarkTask& task, const KernelPcaTask& pca,
                                         Checkpoint checkpoint) {
  return Build(task, pca, /*measured=*/false, checkpoint);
}

absl::StatusOr<KernelPca> BuildMeasuredKernelPca(const LandmarkTask& task, const KernelPcaTask& pca,
                                                 Checkpoint checkpoint) {
  return Build(task, pca, /*measured=*/true, checkpoint);
}

std::vector<std::string> WarningsOf(const KernelPca& pca, int64_t components) {
  std::vector<std::string> warnings;
  const int64_t kept = static_cast<int64_t>(pca.eigenvalues.size());
  if (kept < components) {
    warnings.push_back(absl::StrCat("of ", components, " components ", components - kept,
                                    " were dropped: their eigenvalues are at most ",
                                    pca.tolerance));
  }
  const double largest = pca.gram.has_value() ? kLargestSingleResidual : kLargestResidual;
  if (pca.residual > largest) {
    warnings.push_back(absl::StrCat("the iteration ended after ", pca.sweeps,
                                    " sweeps with a relative residual of ", pca.residual,
                                    ": components of close eigenvalues are mixed"));
  }
  if (!pca.gram.has_value()) return warnings;
  const double error = pca.gram->error.norm;
  const auto above = std::count_if(pca.eigenvalues.begin(), pca.eigenvalues.end(),
                                   [&](double value) { return value > error; });
  if (above == kept) return warnings;
  warnings.push_back(absl::StrCat(
      "the randomized Gram matrix is off by ", error, ", and the eigenvalues of components from ",
      above + 1, " on are no larger: they may be of noise alone; sparsify less, or ask for fewer"));
  return warnings;
}

MappingCost CostOfKernelPca(const LandmarkShape& shape, const KernelPcaTask& pca) {
  constexpr int64_t kDouble = sizeof(double);
  constexpr double kForecastSweeps = 40;
  const int64_t m = shape.landmarks;
  const int64_t block = std::min(shape.dimensions + kOversampling, m);
  const double rows = static_cast<double>(m);
  const double vectors = static_cast<double>(block);
  const double kept = 1 / pca.gram.sparsify;
  MappingCost cost;
  cost.work = WorkOfKernelBlock(1, TiledTriangle(m), static_cast<double>(shape.columns),
                                shape.elements_of_value);
  const Work block_work = cost.work;
  cost.work.product_flops += kForecastSweeps * vectors * (2 * rows * kept + 8 * vectors) * rows;
  cost.work.elements += rows * rows;
  int64_t gram_bytes = kDouble * m * m;
  if (pca.gram.any()) {
    // Once more to measure what was lost, with the steps of Lanczos. Entries kept cost ten times
    // those that come by tiles, a sign that is drawn about as much.
    cost.work += block_work;
    cost.work.product_flops += 2 * 60 * rows * rows;
    cost.work.elements += (10 * kept + (pca.gram.quantise ? 10 * kept : 0)) * rows * rows / 2;
    // Columns and values of half of the entries, twice while they grow; and K in float32.
    gram_bytes = static_cast<int64_t>(12 * 0.5 * kept * rows * rows * 1.1) + m * m / 8 + 4 * m * m;
  }
  cost.plan_numbers = m * (shape.columns + shape.dimensions) + (pca.centred ? m : 0);
  cost.output_columns = shape.dimensions;
  cost.row.product_flops = 2 * static_cast<double>(m * (shape.columns + shape.dimensions));
  cost.row.elements = rows * shape.elements_of_value;
  // A weight that is stored without the zeros beside it takes its column too.
  const int64_t indices = pca.rounding > 0 ? 8 * m * (shape.dimensions + 1) : 0;
  cost.kept_bytes = PlanPairBytes(shape.serving_type, cost.plan_numbers) + indices;
  // Gram matrix, a tile of it or the vectors with their images; weights and plans at last.
  cost.build_bytes =
      gram_bytes + kDouble * m * shape.columns +
      std::max({kDouble * 256 * m, 6 * kDouble * block * m,
                kDouble * (block + 2 * shape.dimensions + shape.columns) * m + cost.kept_bytes});
  return cost;
}

}  // namespace phimap
