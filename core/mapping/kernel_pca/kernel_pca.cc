#include "core/mapping/kernel_pca/kernel_pca.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/linalg/lanczos.h"
#include "core/linalg/orthogonal_iteration.h"
#include "core/mapping/kernel_pca/pca_gram.h"
#include "core/random/random_stream.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kOversampling = 8;
// Largest residuals of the iteration without a warning. kLargestSingleResidual applies to a
// randomized Gram matrix, which is in float32.
constexpr double kLargestResidual = 1e-6;
constexpr double kLargestSingleResidual = 1e-4;

// Relative residuals that the iteration can reach with products in float64 and in float32.
constexpr double kTolerance = 1e-10;
constexpr double kSingleTolerance = 1e-5;

// Maximum number of products. In a randomized matrix, components that are still mixed after 300
// products belong to the noise, whose eigenvalues are close to each other.
constexpr int64_t kProducts = 1000;
constexpr int64_t kRandomizedProducts = 300;

Matrix<double> StartVectors(uint64_t seed, int64_t count, int64_t m) {
  const RandomStream normals(seed, StreamId::kStartVectors);
  Matrix<double> start = Matrix<double>::Uninit(PcaVectors(count, m), m);
  for (int64_t i = 0; i < start.size(); ++i) {
    start.data()[i] = normals.Normal(static_cast<uint64_t>(i));
  }
  return start;
}

// Returns a shift β for the randomized Gram matrix K̂. The matrix K̂ + βI is positive semidefinite
// up to a few hundredths of ‖K̂‖: if it still has a negative eigenvalue, its absolute value is much
// smaller than the largest eigenvalue.
absl::StatusOr<double> ShiftOf(const PcaGram& gram, uint64_t seed, int64_t m,
                               const TileControl& control) {
  constexpr int64_t kSteps = 60;
  const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out,
                            const TileControl& within) { return gram.Multiply(v, out, within); };
  const Matrix<double> start = StartVectors(seed, 1, m);
  PHIMAP_ASSIGN_OR_RETURN(
      const SpectrumEnds ends,
      FindSpectrumEnds(multiply, {start.data(), start.data() + m}, 0.01, kSteps, control));
  return std::max(0.0, ends.residual - ends.lowest);
}

bool IsSmall(const KernelPcaTask& pca, int64_t m) {
  return !pca.gram.any() && !pca.single_gram && m <= kMaxLapackLandmarks;
}

// Returns the leading eigenpairs of the shifted matrix, in order of descending absolute value. The
// shift is subtracted from the eigenvalues returned. The number of pairs is the number of
// components; for a randomized matrix, it is one more if the matrix has one more.
absl::StatusOr<Eigenpairs> LeadingPairs(const PcaGram& gram, const KernelPcaTask& pca, int64_t m,
                                        double shift, const TileControl& control) {
  const auto multiply = [&](ConstMatrixView<double> v, MatrixView<double> out,
                            const TileControl& within) {
    PHIMAP_RETURN_IF_ERROR(gram.Multiply(v, out, within));
    if (shift == 0) return absl::OkStatus();
    for (int64_t n = 0; n < v.rows(); ++n) {
      for (int64_t i = 0; i < m; ++i) out(n, i) += shift * v(n, i);
    }
    return absl::OkStatus();
  };
  const int64_t count = std::min(pca.components + (gram.randomized().has_value() ? 1 : 0), m);
  PHIMAP_ASSIGN_OR_RETURN(
      Eigenpairs pairs,
      IterateOrthogonally({.count = count,
                           .tolerance = gram.single() ? kSingleTolerance : kTolerance,
                           .max_products = gram.randomized().has_value() ? kRandomizedProducts
                                           : IsSmall(pca, m)             ? kProductsBeforeLapack
                                                                         : kProducts,
                           .ends_at_negative = shift == 0 && gram.randomized().has_value()},
                          multiply, StartVectors(pca.seed, pca.components, m), control));
  for (double& value : pairs.values) value -= shift;
  return pairs;
}

// Returns the leading eigenpairs of a Gram matrix that is not randomized.
absl::StatusOr<Eigenpairs> ExactPairs(const PcaGram& gram, const KernelPcaTask& pca, int64_t m,
                                      const TileControl& control) {
  if (!PcaByLapack(pca, m)) {
    PHIMAP_ASSIGN_OR_RETURN(Eigenpairs pairs, LeadingPairs(gram, pca, m, 0, control));
    if (!IsSmall(pca, m) || pairs.residual <= kTolerance) return pairs;
  }
  PHIMAP_RETURN_IF_ERROR(control(1));
  return FactorEigenpairs(gram.Exact(), pca.components);
}

// Returns the eigenpairs with the largest eigenvalues, and sets `shift`. The iteration finds the
// eigenvalues of largest absolute value instead. If none of these is negative, they are also the
// largest, and no shift is needed. Otherwise the iteration is repeated on the shifted matrix, which
// is slower.
absl::StatusOr<Eigenpairs> HighestPairs(const PcaGram& gram, const KernelPcaTask& pca, int64_t m,
                                        double& shift, const TileControl& control) {
  shift = 0;
  if (!gram.randomized().has_value()) return ExactPairs(gram, pca, m, control);
  PHIMAP_ASSIGN_OR_RETURN(Eigenpairs pairs,
                          LeadingPairs(gram, pca, m, 0, {control.threads_ref(), [&](double f) {
                                                           return control(0.5 * f);
                                                         }}));
  if (*std::min_element(pairs.values.begin(), pairs.values.end()) >= 0) return pairs;
  PHIMAP_ASSIGN_OR_RETURN(shift, ShiftOf(gram, pca.seed, m, {control.threads_ref(), [&](double f) {
                                                               return control(0.5 + 0.1 * f);
                                                             }}));
  return LeadingPairs(gram, pca, m, shift,
                      {control.threads_ref(), [&](double f) { return control(0.6 + 0.4 * f); }});
}

// Returns the unit eigenvectors of the first `kept` components, one per row. If `centred`, the mean
// of its entries is subtracted from each vector. That mean is 0 except for the iteration's error;
// after the subtraction, a constant added to all kernel values has no effect at all.
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

// Rounds the weights at random, in place. Returns how many weights are not 0 afterwards.
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
          absl::StatusCode::kFailedPrecondition, "COMPONENT_ROUNDED_AWAY", "spec.rounding",
          absl::StrCat("rounding=", scale, " leaves component ", n + 1,
                       " without any weight; use a larger value: the square root of the number of "
                       "landmarks, ",
                       std::sqrt(static_cast<double>(m)),
                       ", or more keeps nearly all of every component"));
    }
    loss.weights += kept;
  }
  return loss;
}

// Puts the landmarks with a nonzero weight into `stages`. Row n of `alpha` is the eigenvector α_n
// of component n; the component's weights in `stages` are α_n/√λ_n, where λ_n is its eigenvalue.
// Returns the indices of these landmarks.
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
  if (stages.remote.has_value()) stages.remote = WithExamples(*stages.remote, used);
  return used;
}

// Returns the components, counted from 1, whose eigenvalue in the exact matrix K is far enough from
// both neighbours: the gaps exceed 2c‖E‖ with c = 2, that is 4‖E‖. E = K̂ − K is the error of the
// randomized matrix K̂, and `error` is at least ‖E‖.
//
// `values` are the eigenvalues of K̂, not of K. By Weyl, each differs from that of K by at most
// ‖E‖, so a gap of more than 6·error in `values` is enough.
std::vector<int64_t> ComponentsApart(const std::vector<double>& values, double error) {
  std::vector<int64_t> apart;
  for (size_t n = 0; n + 1 < values.size(); ++n) {
    const bool above = n == 0 || values[n - 1] - values[n] > 6 * error;
    if (above && values[n] - values[n + 1] > 6 * error)
      apart.push_back(static_cast<int64_t>(n) + 1);
  }
  return apart;
}

// Returns the unit round-off of the serving type, or of a remote kernel's values if that is larger.
double UnitOf(const LandmarkTask& task) {
  const double unit = std::ldexp(1.0, task.serving_type == FloatType::kFloat32 ? -24 : -53);
  return task.remote != nullptr ? std::max(unit, task.remote->unit) : unit;
}

// Sets the tolerance and keeps the eigenvalues above it. Eigenvalues are in descending order, so
// the dropped ones are the last.
absl::Status KeepComponents(const PcaGram& gram, const Eigenpairs& pairs, const KernelPcaTask& pca,
                            double u, KernelPca& mapping) {
  // The tolerance is the larger of two limits: the precision of weights in the serving type (u),
  // and the rounding of an eigenvalue 0 in products (product).
  const double product = std::ldexp(1.0, gram.single() ? -24 : -53);
  mapping.tolerance =
      static_cast<double>(pairs.vectors.cols()) *
      std::max(u * gram.largest(), product * std::abs(pairs.values[0] + mapping.shift));
  for (int64_t n = 0; n < pca.components; ++n) {
    // A positive semidefinite matrix has no negative eigenvalue, except for rounding of a zero.
    if (!gram.randomized().has_value() && pairs.values[n] < -8 * mapping.tolerance) {
      return MakeError(
          absl::StatusCode::kFailedPrecondition, "KERNEL_NOT_POSITIVE_SEMIDEFINITE", "kernel",
          absl::StrCat("the kernel is not positive semidefinite: its Gram matrix on ",
                       pairs.vectors.cols(), " landmarks has the eigenvalue ", pairs.values[n],
                       ", the largest is ", pairs.values[0],
                       ". Kernel PCA needs a positive semidefinite kernel, F1 takes any"),
          {{"eigenvalue", absl::StrCat(pairs.values[n])}});
    }
    if (pairs.values[n] > mapping.tolerance) mapping.eigenvalues.push_back(pairs.values[n]);
  }
  if (!mapping.eigenvalues.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, "KERNEL_ZERO", "kernel",
                   pca.centred ? "all landmarks are one point in φ-space: nothing varies"
                               : "K(x, x) is 0 on every landmark: there is no direction");
}

// Measures the error of a randomized Gram matrix. No-op if the matrix is not randomized.
absl::Status Measure(const StageNumbers& stages, const PcaGram& gram, const Eigenpairs& pairs,
                     uint64_t seed, const TileControl& control, KernelPca& mapping) {
  if (!gram.randomized().has_value()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(
      const GramError error,
      MeasureGramError(stages.program, stages.rows.view(), *gram.randomized(), seed, control));
  mapping.gram_mean = error.kernel_mean;
  mapping.gram =
      GramLoss{.law = gram.randomized()->law(),
               .error = error,
               .apart = ComponentsApart(pairs.values,
                                        error.norm + pairs.residual * std::abs(pairs.values[0]))};
  return absl::OkStatus();
}

// Computes the weights, rounds them if requested, and keeps the landmarks that have weights.
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

// Returns the Gram matrix of all landmarks, and puts their feature stage into `stages`.
absl::StatusOr<PcaGram> GramOf(const LandmarkTask& task, const KernelPcaTask& pca,
                               StageNumbers& stages, const TileControl& control) {
  if (task.remote != nullptr) {
    PHIMAP_CHECK(!pca.gram.any() && !pca.single_gram);
    // emplace, because GCC 12 with sanitizers warns of an uninitialised string in an assignment.
    stages.remote.emplace(task.remote->block);
    return PcaGram::Of(task.remote->gram, control);
  }
  PHIMAP_ASSIGN_OR_RETURN(stages.rows, ServedLandmarks(task));
  stages.program = KernelProgram::Compile(task.kernel);
  return PcaGram::Make(stages.program, std::as_const(stages.rows).view(),
                       {pca.gram, pca.single_gram}, pca.seed, control);
}

absl::StatusOr<KernelPca> Build(const LandmarkTask& task, const KernelPcaTask& pca, bool measured,
                                const TileControl& control) {
  const int64_t m = task.count();
  const KernelPcaSteps steps = StepsOfKernelPca(task, pca);
  PHIMAP_CHECK(1 <= pca.components && pca.components <= m);
  StageNumbers stages;
  PHIMAP_ASSIGN_OR_RETURN(PcaGram gram,
                          GramOf(task, pca, stages, {control.threads_ref(), [&](double f) {
                                                       return control(steps.gram * f);
                                                     }}));
  const auto iterating = [&](double f) {
    return control(steps.gram + (steps.vectors - steps.gram) * f);
  };
  if (pca.centred) {
    PHIMAP_RETURN_IF_ERROR(
        gram.Centre({control.threads_ref(), [&](double) { return control(steps.gram); }}));
  }
  KernelPca mapping;
  mapping.trace = gram.trace();
  for (const double mean : gram.means()) mapping.gram_mean += mean / static_cast<double>(m);
  PHIMAP_ASSIGN_OR_RETURN(const Eigenpairs pairs, HighestPairs(gram, pca, m, mapping.shift,
                                                               {control.threads_ref(), iterating}));
  mapping.residual = pairs.residual;
  mapping.products = pairs.products;
  PHIMAP_RETURN_IF_ERROR(KeepComponents(gram, pairs, pca, UnitOf(task), mapping));
  if (measured) {
    PHIMAP_RETURN_IF_ERROR(
        Measure(stages, gram, pairs, pca.seed,
                {control.threads_ref(),
                 [&](double f) { return control(steps.vectors + (1 - steps.vectors) * f); }},
                mapping));
  }
  PHIMAP_RETURN_IF_ERROR(Expand(gram, pairs, pca, stages, mapping));
  PHIMAP_RETURN_IF_ERROR(
      EmitPlans({.input = task.input, .serving_type = task.serving_type}, stages, mapping));
  PHIMAP_RETURN_IF_ERROR(control(1));
  return mapping;
}

}  // namespace

bool PcaByLapack(const KernelPcaTask& pca, int64_t landmarks) {
  return IsSmall(pca, landmarks) && 12 * PcaVectors(pca.components, landmarks) >= landmarks;
}

int64_t PcaVectors(int64_t components, int64_t landmarks) {
  return std::min(components + kOversampling, landmarks);
}

absl::StatusOr<KernelPca> BuildKernelPca(const LandmarkTask& task, const KernelPcaTask& pca,
                                         const TileControl& control) {
  return Build(task, pca, /*measured=*/false, control);
}

absl::StatusOr<KernelPca> BuildMeasuredKernelPca(const LandmarkTask& task, const KernelPcaTask& pca,
                                                 const TileControl& control) {
  return Build(task, pca, /*measured=*/true, control);
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
    warnings.push_back(absl::StrCat("the iteration ended after ", pca.products,
                                    " products with a relative residual of ", pca.residual,
                                    ": components of close eigenvalues are mixed"));
  }
  if (!pca.gram.has_value()) return warnings;
  const double error = pca.gram->error.norm;
  const auto above = std::count_if(pca.eigenvalues.begin(), pca.eigenvalues.end(),
                                   [&](double value) { return value > error; });
  if (above == kept) return warnings;
  warnings.push_back(absl::StrCat(
      "the randomized Gram matrix is off by up to ", error,
      ", and the eigenvalues of components from ", above + 1,
      " on are no larger: they may be of noise alone; sparsify less, or ask for fewer"));
  return warnings;
}

}  // namespace phimap
