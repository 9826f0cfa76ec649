#include "core/linalg/pivoted_cholesky.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {

DefinitenessWitness WitnessOf(const std::vector<double>& z,
                              absl::FunctionRef<double(int64_t, int64_t)> entry) {
  long double value = 0;
  long double root = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(z.size()); ++i) {
    const double self = entry(i, i);
    root += std::abs(static_cast<long double>(z[i])) * std::sqrt(std::abs(self));
    long double row = static_cast<long double>(z[i]) * self;
    for (int64_t j = 0; j < i; ++j) row += 2 * static_cast<long double>(z[j]) * entry(i, j);
    value += row * z[i];
  }
  return {static_cast<double>(value), static_cast<double>(root * root)};
}

namespace {

constexpr int64_t kBlock = 64;
// Number of rows below a block that one thread updates at a time.
constexpr int64_t kUpdateRows = 512;

absl::Status NotPsd(std::string what, const DefinitenessWitness& witness) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kKernelNotPositiveSemidefinite, "kernel",
      absl::StrCat("the kernel is not positive semidefinite on the landmarks: ", what,
                   "; a vector z with Σ|z|√K(x, x) = ", std::sqrt(witness.scale),
                   " has zᵀKz = ", witness.value,
                   "; F2 and F3 need a positive semidefinite kernel, but F1 takes any kernel"));
}

// A copy of the original matrix in the upper triangle, which the factorization does not change.
class Original {
 public:
  explicit Original(MatrixView<double> m) : m_(m), diagonal_(static_cast<size_t>(m.rows())) {
    for (int64_t i = 0; i < m_.rows(); ++i) {
      diagonal_[i] = m_(i, i);
      for (int64_t j = 0; j < i; ++j) m_(j, i) = m_(i, j);
    }
  }
  double operator()(int64_t i, int64_t j) const {
    return i == j ? diagonal_[i] : m_(std::min(i, j), std::max(i, j));
  }

 private:
  MatrixView<double> m_;
  std::vector<double> diagonal_;
};

// One factorization in progress. Rows and columns 0 .. next_−1 are done; `order_` holds the
// original index of each row.
class Factorization {
 public:
  Factorization(MatrixView<double> m, const FactorLimits& limits)
      : m_(m), n_(m.rows()), limits_(limits), order_(n_), squares_(n_) {
    std::iota(order_.begin(), order_.end(), 0);
    if (!limits.is_proven) original_.emplace(m);
  }

  absl::StatusOr<PivotedCholesky> Run(const TileControl& control) {
    for (int64_t i = 0; i < n_; ++i) {
      if (!std::isfinite(m_(i, i))) return NotFinite(i);
    }
    while (next_ < n_ && !stopped_) {
      const double left = 1.0 - static_cast<double>(next_) / static_cast<double>(n_);
      PHIMAP_RETURN_IF_ERROR(control(1.0 - left * left * left));
      PHIMAP_RETURN_IF_ERROR(FactorBlock(control.threads()));
      PHIMAP_RETURN_IF_ERROR(CheckDiagonal());
    }
    PHIMAP_RETURN_IF_ERROR(CheckLargestEntry());
    return Finish();
  }

 private:
  absl::Status NotFinite(int64_t i) const {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kValueNotFinite, "kernel",
                     absl::StrCat("a kernel value of landmark ", order_[i], " is not finite"),
                     {{"landmark", absl::StrCat(order_[i])}});
  }

  // Factors one block of columns: left-looking within the block, then one update of the rows below
  // the block.
  absl::Status FactorBlock(int threads) {
    const int64_t begin = next_;
    const int64_t end = std::min(n_, begin + kBlock);
    std::fill(squares_.begin(), squares_.end(), 0.0);
    for (; next_ < end; ++next_) {
      const int64_t pivot = ChoosePivot(begin);
      const double schur = m_(pivot, pivot) - squares_[pivot];
      if (std::isnan(schur)) return NotFinite(pivot);
      if (!(schur > limits_.tolerance)) {
        stopped_ = true;
        break;
      }
      Swap(next_, pivot);
      Eliminate(begin, schur);
    }
    const int64_t tiles = (n_ - next_ + kUpdateRows - 1) / kUpdateRows;
    return ForEachTile(threads, tiles, NeverStop, [&](int64_t t) { Update(begin, t); });
  }

  // Subtracts the contribution of the block's columns from tile t of the rows below the block.
  void Update(int64_t begin, int64_t t) {
    const int64_t first = next_ + t * kUpdateRows;
    const int64_t count = std::min(kUpdateRows, n_ - first);
    const ConstMatrixView<double> rows = m_.Block(first, begin, count, next_ - begin);
    MultiplyTransposed(-1, rows, m_.Block(next_, begin, first - next_, next_ - begin), 1,
                       m_.Block(first, next_, count, first - next_));
    SymmetricRankUpdate(-1, rows, 1, m_.Block(first, first, count, count));
  }

  // Chooses the next pivot. Also accumulates the squares that the last column of the block
  // subtracted from each diagonal element.
  int64_t ChoosePivot(int64_t begin) {
    int64_t best = next_;
    double best_schur = -INFINITY;
    for (int64_t i = next_; i < n_; ++i) {
      if (next_ > begin) squares_[i] += m_(i, next_ - 1) * m_(i, next_ - 1);
      const double schur = m_(i, i) - squares_[i];
      if (schur > best_schur || (schur == best_schur && order_[i] < order_[best])) {
        best = i;
        best_schur = schur;
      }
    }
    return best;
  }

  // Exchanges rows and columns a < b of the lower triangle.
  void Swap(int64_t a, int64_t b) {
    if (a == b) return;
    std::swap(order_[a], order_[b]);
    std::swap(squares_[a], squares_[b]);
    std::swap(m_(a, a), m_(b, b));
    std::swap_ranges(m_.row(a), m_.row(a) + a, m_.row(b));
    for (int64_t i = a + 1; i < b; ++i) std::swap(m_(i, a), m_(b, i));
    for (int64_t i = b + 1; i < n_; ++i) std::swap(m_(i, a), m_(i, b));
  }

  // Computes column next_ of the factor.
  void Eliminate(int64_t begin, double schur) {
    const int64_t j = next_;
    const double root = std::sqrt(schur);
    diagonal_.push_back(schur);
    m_(j, j) = root;
    const int64_t below = n_ - j - 1;
    if (below == 0) return;
    MultiplyVector(-1, m_.Block(j + 1, begin, below, j - begin), m_.row(j) + begin, 1,
                   &m_(j + 1, j), m_.stride());
    for (int64_t i = j + 1; i < n_; ++i) m_(i, j) /= root;
  }

  // Checks, between blocks, the row whose Schur diagonal is smallest relative to its own entry.
  absl::Status CheckDiagonal() {
    if (limits_.is_proven) return absl::OkStatus();
    int64_t worst = -1;
    double least = 0;
    for (int64_t i = next_; i < n_; ++i) {
      const double self = (*original_)(order_[i], order_[i]);
      const double share = m_(i, i) / std::abs(self);
      if (!(share < -limits_.value_error && share < least)) continue;
      worst = i;
      least = share;
    }
    if (worst < 0) return absl::OkStatus();
    std::vector<double> z(static_cast<size_t>(next_) + 1);
    AddEliminated(worst, 1, z);
    z.back() = 1;
    std::vector<int64_t> rows(order_.begin(), order_.begin() + next_);
    rows.push_back(order_[worst]);
    const DefinitenessWitness witness = Witness(z, rows);
    if (!witness.Proves(limits_.value_error)) return absl::OkStatus();
    return NotPsd(absl::StrCat("after ", next_, " elimination steps, ", m_(worst, worst),
                               " remains", " on the diagonal of landmark ", order_[worst]),
                  witness);
  }

  // Looks for a proof of indefiniteness: an off-diagonal entry that exceeds the mean of its two
  // diagonal entries by more than rounding explains.
  absl::Status CheckLargestEntry() {
    if (limits_.is_proven) return absl::OkStatus();
    int64_t a = -1;
    int64_t b = -1;
    double most = 0;
    for (int64_t i = next_; i < n_; ++i) {
      for (int64_t j = next_; j < i; ++j) {
        const double over = std::abs(m_(i, j)) - (m_(i, i) + m_(j, j)) / 2;
        if (!(over > most)) continue;
        a = i;
        b = j;
        most = over;
      }
    }
    if (a < 0) return absl::OkStatus();
    const double sign = m_(a, b) > 0 ? -1 : 1;
    std::vector<double> z(static_cast<size_t>(next_) + 2);
    AddEliminated(a, 1, z);
    AddEliminated(b, sign, z);
    z[next_] = 1;
    z[next_ + 1] = sign;
    std::vector<int64_t> rows(order_.begin(), order_.begin() + next_);
    rows.insert(rows.end(), {order_[a], order_[b]});
    const DefinitenessWitness witness = Witness(z, rows);
    if (!witness.Proves(limits_.value_error)) return absl::OkStatus();
    return NotPsd(absl::StrCat("after ", next_, " elimination steps, ", m_(a, b), " remains",
                               " between landmarks ", order_[a], " and ", order_[b],
                               ", whose own entries are ", m_(a, a), " and ", m_(b, b)),
                  witness);
  }

  // Extends the unit vector of row i to a vector z for which zᵀMz is the Schur complement. To do
  // so, subtracts `factor` times L_r^{-T} times row i of the computed columns of L.
  void AddEliminated(int64_t i, double factor, std::vector<double>& z) const {
    std::vector<double> solved(m_.row(i), m_.row(i) + next_);
    SolveLowerTriangleTransposed(m_.Block(0, 0, next_, next_),
                                 MatrixView<double>(solved.data(), next_, 1, 1));
    for (int64_t k = 0; k < next_; ++k) z[k] -= factor * solved[k];
  }

  DefinitenessWitness Witness(const std::vector<double>& z,
                              const std::vector<int64_t>& rows) const {
    return WitnessOf(z, [&](int64_t i, int64_t j) { return (*original_)(rows[i], rows[j]); });
  }

  PivotedCholesky Finish() {
    PivotedCholesky result;
    result.pivots.assign(order_.begin(), order_.begin() + next_);
    result.dropped.assign(order_.begin() + next_, order_.end());
    for (int64_t i = next_; i < n_; ++i) result.residuals.push_back(std::max(0.0, m_(i, i)));
    result.diagonal = std::move(diagonal_);
    return result;
  }

  MatrixView<double> m_;
  const int64_t n_;
  const FactorLimits limits_;
  // Empty if definiteness is proven.
  std::optional<Original> original_;
  std::vector<int64_t> order_;
  // For each row: the sum of the squares of its entries in the finished columns of the current
  // block.
  std::vector<double> squares_;
  std::vector<double> diagonal_;
  int64_t next_ = 0;
  bool stopped_ = false;
};

}  // namespace

double PivotedCholesky::largest_residual() const {
  return residuals.empty() ? 0 : *std::max_element(residuals.begin(), residuals.end());
}

absl::StatusOr<PivotedCholesky> FactorPivoted(MatrixView<double> m, const FactorLimits& limits,
                                              const TileControl& control) {
  PHIMAP_CHECK(m.rows() == m.cols() && limits.tolerance >= 0 && limits.value_error > 0);
  return Factorization(m, limits).Run(control);
}

Work WorkOfFactorPivoted(int64_t n, int64_t rank) {
  Work work;
  for (int64_t begin = 0; begin < rank; begin += kBlock) {
    const int64_t end = std::min(rank, begin + kBlock);
    for (int64_t j = begin; j < end; ++j) {
      const double below = static_cast<double>(n - j - 1);
      work.factor_flops += 2 * below * static_cast<double>(j - begin);
      work.elements += static_cast<double>(n - j);  // the search for the pivot
    }
    const double left = static_cast<double>(n - end);
    work.factor_flops += left * (left + 1) * static_cast<double>(end - begin);
  }
  return work;
}

}  // namespace phimap
