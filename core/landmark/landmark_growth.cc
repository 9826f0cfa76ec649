#include "core/landmark/landmark_growth.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/value_error.h"
#include "core/linalg/blas.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/theory/binomial.h"

namespace phimap {
namespace {

// Number of deciding rows per tile.
constexpr int64_t kDecidingTile = 256;

// The rows x whose K(x, x) is not 0, and for each row its squared norm, √K(x, x) and K(x, x).
struct NormalRows {
  // `unit`: unit round-off of the rows (see SelfErrors).
  NormalRows(const KernelProgram& kernel, ConstMatrixView<double> from, double unit) {
    const std::vector<double> self = KernelDiagonal(kernel, from, SquaredNorms(from));
    const std::vector<double> errors = SelfErrors(kernel, from, unit);
    for (int64_t i = 0; i < from.rows(); ++i) {
      if (std::isfinite(self[i]) && !(self[i] > kZeroRoundings * errors[i])) continue;
      is_finite = is_finite && std::isfinite(self[i]);
      places.push_back(i);
      roots.push_back(std::sqrt(self[i]));
      squares.push_back(self[i]);
    }
    rows = Matrix<double>::Uninit(count(), from.cols());
    for (int64_t a = 0; a < count(); ++a) {
      std::copy_n(from.row(places[a]), from.cols(), rows.row(a));
    }
    norms = SquaredNorms(std::as_const(rows).view());
  }
  int64_t count() const { return static_cast<int64_t>(places.size()); }

  bool is_finite = true;
  // Indices of these rows in `from`.
  std::vector<int64_t> places;
  Matrix<double> rows;
  std::vector<double> norms;
  std::vector<double> roots;
  std::vector<double> squares;
};

absl::Status NotFinite(const KernelProgram& kernel) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kValueNotFinite, "kernel",
      absl::StrCat("K(x, y) of a landmark with a landmark or another row is not finite; ",
                   ValueRemedy(kernel)));
}

class Growing {
 public:
  Growing(const CountTask& task, const TileControl& control)
      : task_(task),
        control_(control),
        candidates_(task.kernel, task.candidates, task.unit),
        deciding_(task.kernel, task.deciding, task.unit),
        factor_(Matrix<double>::Uninit(candidates_.count(), candidates_.count())),
        explained_(Matrix<double>::Uninit(deciding_.count(), candidates_.count())),
        shares_(static_cast<size_t>(deciding_.count()), 1.0) {}

  absl::StatusOr<LandmarkGrowth> Run() {
    if (!candidates_.is_finite || !deciding_.is_finite) return NotFinite(task_.kernel);
    const double value_error =
        candidates_.count() == 0
            ? 0
            : ValueErrorOf(task_.kernel, std::as_const(candidates_.rows).view(),
                           candidates_.squares);
    const int64_t all = task_.candidates.rows();
    LandmarkGrowth growth{.deciding_rows = deciding_.count(),
                          .rank = ResidualRank(deciding_.count())};
    for (int64_t begin = 0; begin < all; begin += kGrowthBlock) {
      const double done = static_cast<double>(begin) / static_cast<double>(all);
      PHIMAP_RETURN_IF_ERROR(control_(done * done));
      growth.landmarks = std::min(all, begin + kGrowthBlock);
      const double tolerance =
          std::max(static_cast<double>(growth.landmarks) * task_.unit, 4 * value_error);
      PHIMAP_RETURN_IF_ERROR(AddUpTo(growth.landmarks, tolerance));
      PHIMAP_RETURN_IF_ERROR(Look(growth));
      if (growth.share <= task_.goal) return growth;
      if (largest_ <= tolerance) {
        growth.end = LandmarkGrowth::End::kRank;
        return growth;
      }
    }
    growth.end = LandmarkGrowth::End::kCandidates;
    return growth;
  }

 private:
  ConstMatrixView<double> Factor(int64_t begin, int64_t count) const {
    return factor_.view().Block(begin, begin, count, count);
  }

  // Computes normalised kernel values K(x, y)/(√K(x, x)·√K(y, y)). The x are rows [first, first +
  // n) of `x`, and the y are candidates [begin, begin + m).
  void Values(const NormalRows& x, int64_t first, int64_t begin, MatrixView<double> out) const {
    const auto norms_of = [](const std::vector<double>& norms, int64_t from, int64_t count) {
      return std::vector<double>(norms.begin() + from, norms.begin() + from + count);
    };
    KernelBlock(task_.kernel, x.rows.view().Rows(first, out.rows()),
                norms_of(x.norms, first, out.rows()),
                candidates_.rows.view().Rows(begin, out.cols()),
                norms_of(candidates_.norms, begin, out.cols()), out);
    for (int64_t i = 0; i < out.rows(); ++i) {
      for (int64_t j = 0; j < out.cols(); ++j) {
        out(i, j) /= x.roots[first + i] * candidates_.roots[begin + j];
      }
    }
  }

  // Considers the candidates before `end` that were not considered before.
  absl::Status AddUpTo(int64_t end, double tolerance) {
    const int64_t first = next_;
    while (next_ < candidates_.count() && candidates_.places[next_] < end) ++next_;
    const int64_t n = next_ - first;
    if (n == 0) return absl::OkStatus();
    const int64_t r = added_;
    // Rows of the factor for these candidates: their kernel values with the landmarks added before,
    // times L⁻ᵀ.
    Matrix<double> before = Matrix<double>::Uninit(n, r);
    if (r > 0) {
      Values(candidates_, first, 0, before.view());
      SolveLowerTriangleFromRight(Factor(0, r), before.view());
    }
    Matrix<double> schur = Matrix<double>::Uninit(n, n);
    Values(candidates_, first, first, schur.view());
    for (int64_t i = 0; i < n; ++i) schur(i, i) = 1;
    if (r > 0) SymmetricRankUpdate(-1, std::as_const(before).view(), 1, schur.view());
    PHIMAP_RETURN_IF_ERROR(AddIndependent(first, tolerance, before, schur));
    return Explain(r);
  }

  // Factors the block. Skips candidates whose residual is within the tolerance, and moves the
  // others to the end of the candidates added before.
  absl::Status AddIndependent(int64_t first, double tolerance, const Matrix<double>& before,
                              const Matrix<double>& schur) {
    const int64_t r = before.cols();
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < schur.rows(); ++i) {
      double* const row = factor_.row(added_);
      double rest = schur(i, i);
      for (size_t a = 0; a < kept.size(); ++a) {
        double value = schur(i, kept[a]);
        const double* const other = factor_.row(r + static_cast<int64_t>(a)) + r;
        for (size_t t = 0; t < a; ++t) value -= row[r + static_cast<int64_t>(t)] * other[t];
        row[r + static_cast<int64_t>(a)] = value / other[a];
        rest -= row[r + static_cast<int64_t>(a)] * row[r + static_cast<int64_t>(a)];
      }
      if (!std::isfinite(rest)) return NotFinite(task_.kernel);
      if (!(rest > tolerance)) continue;
      std::copy_n(before.row(i), r, row);
      row[added_] = std::sqrt(rest);
      kept.push_back(i);
      Keep(first + i);
    }
    return absl::OkStatus();
  }

  // Moves candidate `from` to the end of the added candidates.
  void Keep(int64_t from) {
    if (from != added_) {
      std::copy_n(candidates_.rows.row(from), candidates_.rows.cols(),
                  candidates_.rows.row(added_));
    }
    candidates_.norms[added_] = candidates_.norms[from];
    candidates_.roots[added_] = candidates_.roots[from];
    ++added_;
  }

  // Subtracts from the residuals of the deciding rows the part that candidates r … added_ − 1
  // explain.
  absl::Status Explain(int64_t r) {
    const int64_t q = added_ - r;
    if (q == 0) return absl::OkStatus();
    const auto explain = [&](int64_t t) {
      const int64_t begin = t * kDecidingTile;
      const int64_t count = std::min(kDecidingTile, deciding_.count() - begin);
      const MatrixView<double> out = explained_.view().Block(begin, r, count, q);
      Values(deciding_, begin, r, out);
      if (r > 0) {
        MultiplyTransposed(-1, std::as_const(explained_).view().Block(begin, 0, count, r),
                           factor_view().Block(r, 0, q, r), 1, out);
      }
      SolveLowerTriangleFromRight(Factor(r, q), out);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t j = 0; j < q; ++j) shares_[begin + i] -= out(i, j) * out(i, j);
      }
    };
    const int64_t tiles = (deciding_.count() + kDecidingTile - 1) / kDecidingTile;
    return ForEachTile(control_.threads(), tiles, NeverStop, explain);
  }

  ConstMatrixView<double> factor_view() const { return factor_.view(); }

  absl::Status Look(LandmarkGrowth& growth) {
    std::vector<double> sorted = shares_;
    for (double& share : sorted) {
      if (!std::isfinite(share)) return NotFinite(task_.kernel);
      share = std::max(0.0, share);
    }
    std::sort(sorted.begin(), sorted.end());
    if (sorted.empty()) return absl::OkStatus();
    largest_ = sorted.back();
    growth.share = sorted[static_cast<size_t>(std::min(growth.rank, growth.deciding_rows)) - 1];
    return absl::OkStatus();
  }

  const CountTask& task_;
  const TileControl& control_;
  // The first `added_` rows are the added candidates. `next_` is the next candidate to consider.
  NormalRows candidates_;
  const NormalRows deciding_;
  int64_t added_ = 0;
  int64_t next_ = 0;
  // `factor_` is the lower triangle of L, the Cholesky factor of the normalised Gram matrix of the
  // added candidates S. `explained_` is K(H, S)·L⁻ᵀ, where H are the deciding rows; the kernel
  // values K(H, S) are normalised too.
  Matrix<double> factor_;
  Matrix<double> explained_;
  // The shares ρ(x)/K(x, x) of the deciding rows x, and their maximum at the last Look(). ρ(x) is
  // the residual of row x (landmark_growth.h).
  std::vector<double> shares_;
  double largest_ = 0;
};

}  // namespace

int64_t ResidualRank(int64_t deciding_rows) {
  // ConfidentRank counts from the other end: the k-th largest number is an upper bound on the
  // (1 − α)-quantile.
  return deciding_rows + 1 -
         ConfidentRank(deciding_rows, 1 - kGrowthQuantile, 1 - kGrowthConfidence);
}

absl::StatusOr<LandmarkGrowth> GrowLandmarks(const CountTask& task, const TileControl& control) {
  return Growing(task, control).Run();
}

Work WorkOfGrowth(const CountShape& shape) {
  const auto m = static_cast<double>(shape.candidates);
  const auto h = static_cast<double>(shape.deciding);
  Work work = WorkOfKernelBlock(m, m / 2 + kGrowthBlock / 2.0 + h,
                                static_cast<double>(shape.columns), shape.value);
  work.product_flops += m * m * (m / 3 + h);
  return work;
}

int64_t BytesOfGrowth(const CountShape& shape) {
  const int64_t m = shape.candidates;
  const int64_t h = shape.deciding;
  // Four copies of the rows: before the input stage, after it, rounded, and without those whose
  // K(x, x) is 0.
  return static_cast<int64_t>(sizeof(double)) * (m * (m + h) + 4 * (m + h) * (shape.columns + 1));
}

}  // namespace phimap
