#include "core/mapping/kernel_pca/kernel_pca.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/kernel_work.h"
#include "core/linalg/blas.h"
#include "core/linalg/lanczos.h"
#include "core/linalg/matrix.h"
#include "core/linalg/orthogonal_iteration.h"
#include "core/linalg/tiles.h"
#include "core/mapping/kernel_pca/randomized_gram.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

// Form in which the Gram matrix K(S, S) of the landmarks S is stored.
struct GramForm {
  GramRandomization randomization;
  // Whether an exact Gram matrix is stored in float32. A randomized Gram matrix always is.
  bool single = false;
};

// The matrix whose eigenvectors kernel PCA finds: the Gram matrix of the landmarks or a randomized
// replacement, centred or not. Immutable except for Centre; thread-safe. Results do not depend on
// the number of threads, not even in the last bit. Memory for m landmarks: 8m² bytes in float64,
// 4m² in float32, or that of RandomizedGram.
class PcaGram {
 public:
  // Computes the Gram matrix of `rows`. Errors: those of `control` and of RandomizedGram::Draw.
  static absl::StatusOr<PcaGram> Make(const KernelProgram& program, ConstMatrixView<double> rows,
                                      const GramForm& form, uint64_t seed,
                                      const TileControl& control);

  // Copies a given Gram matrix, of which it reads the lower triangle. Errors: those of `control`.
  static absl::StatusOr<PcaGram> Of(ConstMatrixView<double> gram, const TileControl& control);

  // Centres the Gram matrix K of m landmarks: replaces it by (I − 11ᵀ/m) K (I − 11ᵀ/m), where 1 is
  // the vector of ones. Call it at most once. Errors: those of `control`.
  absl::Status Centre(const TileControl& control);

  // Multiplies b vectors, the rows of `v`, by the Gram matrix K: out = v·K. Shapes: v and out b×m.
  // `out` must not alias `v`. Errors: those of `control`. Calls BLAS.
  absl::Status Multiply(ConstMatrixView<double> v, MatrixView<double> out,
                        const TileControl& control) const;

  // Returns a copy of the matrix. REQUIRES: it is in float64 and not randomized.
  Matrix<double> Exact() const;

  // The sum of the eigenvalues.
  double trace() const { return trace_; }
  // max K_ii, before centring.
  double largest() const { return largest_; }
  // mean_j K_ij of each row; empty if the matrix is not centred.
  const std::vector<double>& means() const { return means_; }
  // Whether products are rounded to float32.
  bool single() const { return exact_.empty(); }
  const std::optional<RandomizedGram>& randomized() const { return randomized_; }

 private:
  PcaGram() = default;
  absl::Status MultiplyAsIs(ConstMatrixView<double> v, MatrixView<double> out,
                            const TileControl& control) const;

  // Exactly one of these three holds the matrix.
  Matrix<double> exact_;
  Matrix<float> single_;
  std::optional<RandomizedGram> randomized_;
  int64_t rows_ = 0;
  double trace_ = 0;
  double largest_ = 0;
  std::vector<double> means_;
};

// Rows of K that one thread multiplies at a time.
constexpr int64_t kProductRows = 256;

// Copies the lower triangle to the upper one, in square blocks, so that both stay in the cache.
absl::Status Mirror(MatrixView<double> gram, const TileControl& control) {
  constexpr int64_t kBlock = 64;
  return ForEachRange(gram.rows(), kBlock, control, [&](int64_t bi, int64_t count) {
    for (int64_t bj = 0; bj <= bi; bj += kBlock) {
      for (int64_t i = bi; i < bi + count; ++i) {
        for (int64_t j = bj; j < std::min(i, bj + kBlock); ++j) gram(j, i) = gram(i, j);
      }
    }
  });
}

double MeanOf(const double* numbers, int64_t count) {
  return std::accumulate(numbers, numbers + count, 0.0) / static_cast<double>(count);
}

// Mirror's share of the time that the Gram matrix takes. It reads and writes 8 bytes per value.
constexpr double kMirrorShare = 0.1;

// Subtracts the mean of each row from the row's entries.
void TakeOffMeans(MatrixView<double> rows) {
  for (int64_t n = 0; n < rows.rows(); ++n) {
    const double mean = MeanOf(rows.row(n), rows.cols());
    for (int64_t i = 0; i < rows.cols(); ++i) rows(n, i) -= mean;
  }
}

absl::StatusOr<PcaGram> PcaGram::Make(const KernelProgram& program, ConstMatrixView<double> rows,
                                      const GramForm& form, uint64_t seed,
                                      const TileControl& control) {
  PcaGram gram;
  gram.rows_ = rows.rows();
  if (form.randomization.any()) {
    PHIMAP_ASSIGN_OR_RETURN(gram.randomized_,
                            RandomizedGram::Draw(program, rows, form.randomization, seed, control));
  } else if (form.single) {
    PHIMAP_ASSIGN_OR_RETURN(gram.single_, SingleGram(program, rows, control));
  } else {
    gram.exact_ = Matrix<double>::Uninit(gram.rows_, gram.rows_);
    PHIMAP_RETURN_IF_ERROR(KernelGram(
        program, rows, gram.exact_.view(),
        {control.threads_ref(), [&](double f) { return control((1 - kMirrorShare) * f); }}));
    PHIMAP_RETURN_IF_ERROR(Mirror(gram.exact_.view(), {control.threads_ref(), [&](double f) {
                                                         return control(1 - kMirrorShare * (1 - f));
                                                       }}));
  }
  for (const double k : KernelDiagonal(program, rows, SquaredNorms(rows))) {
    gram.trace_ += k;
    gram.largest_ = std::max(gram.largest_, k);
  }
  return gram;
}

absl::StatusOr<PcaGram> PcaGram::Of(ConstMatrixView<double> values, const TileControl& control) {
  PcaGram gram;
  gram.rows_ = values.rows();
  gram.exact_ = Converted<double, double>(values);
  PHIMAP_RETURN_IF_ERROR(Mirror(gram.exact_.view(), control));
  for (int64_t i = 0; i < gram.rows_; ++i) {
    gram.trace_ += values(i, i);
    gram.largest_ = std::max(gram.largest_, values(i, i));
  }
  return gram;
}

absl::Status PcaGram::Centre(const TileControl& control) {
  PHIMAP_CHECK(means_.empty());
  Matrix<double> ones = Matrix<double>::Uninit(1, rows_);
  std::fill_n(ones.data(), rows_, 1 / static_cast<double>(rows_));
  std::vector<double> means(static_cast<size_t>(rows_));
  PHIMAP_RETURN_IF_ERROR(MultiplyAsIs(std::as_const(ones).view(),
                                      MatrixView<double>(means.data(), 1, rows_), control));
  means_ = std::move(means);
  // Updates the trace after centring: tr (I − 11ᵀ/m) K (I − 11ᵀ/m) = tr K − 1ᵀK1/m, where 1 is the
  // vector of ones. The means sum to 1ᵀK1/m.
  trace_ -= std::accumulate(means_.begin(), means_.end(), 0.0);
  return absl::OkStatus();
}

// K is symmetric, so its rows [begin, begin + count) give the same columns of the product.
absl::Status PcaGram::MultiplyAsIs(ConstMatrixView<double> v, MatrixView<double> out,
                                   const TileControl& control) const {
  if (randomized_.has_value()) return randomized_->Multiply(v, out, control);
  if (!exact_.empty()) {
    return ForEachRange(rows_, kProductRows, control, [&](int64_t begin, int64_t count) {
      MultiplyTransposed(1, v, std::as_const(exact_).view().Rows(begin, count), 0,
                         out.Block(0, begin, out.rows(), count));
    });
  }
  const Matrix<float> from = Converted<float, double>(v);
  Matrix<float> to = Matrix<float>::Uninit(out.rows(), out.cols());
  return ForEachRange(rows_, kProductRows, control, [&](int64_t begin, int64_t count) {
    MultiplyTransposedSingle(from.view(), std::as_const(single_).view().Rows(begin, count),
                             to.view().Block(0, begin, to.rows(), count));
    for (int64_t n = 0; n < out.rows(); ++n) {
      std::copy_n(to.row(n) + begin, count, out.row(n) + begin);
    }
  });
}

Matrix<double> PcaGram::Exact() const {
  PHIMAP_CHECK(!exact_.empty());
  Matrix<double> gram = exact_.Clone();
  if (means_.empty()) return gram;
  const double mean = MeanOf(means_.data(), rows_);
  for (int64_t i = 0; i < rows_; ++i) {
    for (int64_t j = 0; j < rows_; ++j) gram(i, j) += mean - means_[i] - means_[j];
  }
  return gram;
}

absl::Status PcaGram::Multiply(ConstMatrixView<double> v, MatrixView<double> out,
                               const TileControl& control) const {
  if (means_.empty()) return MultiplyAsIs(v, out, control);
  Matrix<double> from = Converted<double, double>(v);
  TakeOffMeans(from.view());
  PHIMAP_RETURN_IF_ERROR(MultiplyAsIs(std::as_const(from).view(), out, control));
  TakeOffMeans(out);
  return absl::OkStatus();
}

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
          absl::StatusCode::kFailedPrecondition, reason::kComponentRoundedAway, "rounding",
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
          absl::StatusCode::kFailedPrecondition, reason::kKernelNotPositiveSemidefinite, "kernel",
          absl::StrCat("the kernel is not positive semidefinite: its Gram matrix on ",
                       CountOf(pairs.vectors.cols(), "landmark"), " has the eigenvalue ",
                       pairs.values[n], ", the largest is ", pairs.values[0],
                       ". Kernel PCA needs a positive semidefinite kernel, F1 takes any"),
          {{"eigenvalue", absl::StrCat(pairs.values[n])}});
    }
    if (pairs.values[n] > mapping.tolerance) mapping.eigenvalues.push_back(pairs.values[n]);
  }
  if (!mapping.eigenvalues.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kKernelZero, "kernel",
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

namespace {

// Assumed number of products. The iteration needs more if many components are wanted, because
// their eigenvalues are close to each other.
constexpr double kForecastProducts = 40;
constexpr double kForecastOfMany = 120;

// Work of each step of the builder, in order.
struct PcaWork {
  Work gram;
  Work vectors;
  // Cost of measuring the randomization's error.
  Work loss;
};

PcaWork WorkOfPca(int64_t landmarks, int64_t columns, const ValueWork& value,
                  const KernelPcaTask& pca) {
  const double rows = static_cast<double>(landmarks);
  const double vectors = static_cast<double>(PcaVectors(pca.components, landmarks));
  const double kept = 1 / pca.gram.sparsify;
  const Work block =
      WorkOfKernelBlock(1, TiledTriangle(landmarks), static_cast<double>(columns), value);
  PcaWork work{.gram = block, .vectors = {}, .loss = {}};
  work.gram.elements += rows * rows;
  const double products = 16 * vectors < rows ? kForecastProducts : kForecastOfMany;
  work.vectors.product_flops = products * vectors * (2 * rows * kept + 8 * vectors) * rows;
  // LAPACK spends half of its work in products of a matrix with a vector, which take twice as long
  // as products of matrices.
  if (PcaByLapack(pca, landmarks)) work.vectors.product_flops = 18 * rows * rows * rows;
  if (!pca.gram.any()) return work;
  // A kept entry costs ten times an entry computed in tiles. Drawing a sign costs about the same.
  work.gram.elements += (10 * kept + (pca.gram.quantise ? 10 * kept : 0)) * rows * rows / 2;
  // Measuring the error computes all of K again, and the steps of Lanczos.
  work.loss = block;
  work.loss.product_flops += 2 * static_cast<double>(GramErrorSteps(landmarks)) * rows * rows;
  return work;
}

// Returns the bytes of the Gram matrix or its replacement.
int64_t GramBytes(int64_t m, const KernelPcaTask& pca) {
  // LAPACK works on a copy.
  if (!pca.gram.any()) return kDoubleBytes * m * m * (m <= kMaxLapackLandmarks ? 2 : 1);
  const double entries = 0.5 * static_cast<double>(m) * static_cast<double>(m) / pca.gram.sparsify;
  // The kept entries below the diagonal and their mirror images (12 bytes per entry, and 10 % to be
  // safe), the matrix in bits, and K in float32.
  return static_cast<int64_t>(12 * 1.1 * entries) + m * m / 8 + 4 * m * m;
}

// Returns the bytes of scratch memory. The memory is used in two steps. While the Gram matrix is
// computed, each thread holds a tile of the matrix, or the rows whose entries are kept. During
// products, the vectors are held side by side, or each thread holds some rows of the matrix.
int64_t ScratchBytes(const LandmarkShape& shape, const KernelPcaTask& pca) {
  constexpr int64_t kWideRowBytes = 128;
  const int64_t m = shape.landmarks;
  const int64_t tiles = std::min<int64_t>(shape.threads, (m + 63) / 64);
  const int64_t tile = kDoubleBytes * 256 * m;
  if (!pca.gram.any()) return tile * std::min<int64_t>(shape.threads, (m + 255) / 256);
  return tiles * std::max(tile, kDoubleBytes * m * (shape.columns + 1)) + kWideRowBytes * m;
}

}  // namespace

KernelPcaSteps StepsOfKernelPca(const LandmarkTask& task, const KernelPcaTask& pca) {
  const int64_t p = task.landmarks.cols();
  // The Gram matrix of a remote kernel need not be computed.
  const bool at_hand = task.remote != nullptr;
  const PcaWork work =
      WorkOfPca(task.count(), p, at_hand ? ValueWork() : WorkOfValue(task.kernel, p), pca);
  const double gram = at_hand ? 0 : work.gram.weight();
  const double vectors = work.vectors.weight();
  const double all = gram + vectors + work.loss.weight();
  return {.gram = gram / all, .vectors = (gram + vectors) / all};
}

MappingCost CostOfKernelPca(const LandmarkShape& shape, const KernelPcaTask& pca) {
  const int64_t m = shape.landmarks;
  const int64_t block = PcaVectors(shape.dimensions, m);
  const PcaWork work = WorkOfPca(m, shape.columns, shape.value, pca);
  MappingCost cost;
  cost.work = work.gram + work.vectors + work.loss;
  cost.plan_numbers = m * (shape.columns + shape.dimensions) + (pca.centred ? m : 0);
  cost.output_columns = shape.dimensions;
  cost.row.product_flops = 2 * static_cast<double>(m) *
                           (shape.value.products * static_cast<double>(shape.columns) +
                            static_cast<double>(shape.dimensions));
  cost.row.elements = static_cast<double>(m) * shape.value.elements;
  // A sparse matrix of weights also stores the column of each weight.
  const int64_t indices = pca.rounding > 0 ? 8 * m * (shape.dimensions + 1) : 0;
  cost.kept_bytes = PlanPairBytes(shape.serving_type, cost.plan_numbers) + indices;
  // The vectors and their products with the matrix; at the end, the weights and the plans.
  cost.build_bytes = GramBytes(m, pca) + kDoubleBytes * m * shape.columns +
                     std::max({ScratchBytes(shape, pca), 6 * kDoubleBytes * block * m,
                               kDoubleBytes * (block + 2 * shape.dimensions + shape.columns) * m +
                                   cost.kept_bytes});
  return cost;
}

}  // namespace phimap
