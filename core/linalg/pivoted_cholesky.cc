#include "core/linalg/pivoted_cholesky.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kBlock = 64;
// Of what lies behind a block, rows that one thread updates at a time.
constexpr int64_t kUpdateRows = 512;

absl::Status NotPsd(std::string what) {
  return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_POSITIVE_SEMIDEFINITE", "kernel",
                   absl::StrCat("not positive semidefinite on the landmarks: ", what,
                                "; F2 and F3 need a positive semidefinite kernel, F1 takes any"));
}

// One factorization in progress. Rows and columns 0 .. next_−1 are done; `order_` names the
// original index of each row.
class Factorization {
 public:
  Factorization(MatrixView<double> m, double tolerance, double unit)
      : m_(m), n_(m.rows()), tolerance_(tolerance), order_(n_), squares_(n_) {
    std::iota(order_.begin(), order_.end(), 0);
    double largest = 0;
    for (int64_t i = 0; i < n_; ++i) largest = std::max(largest, m_(i, i));
    slack_ = 10.0 * static_cast<double>(n_) * unit * largest;
  }

  absl::StatusOr<PivotedCholesky> Run(const TileControl& control) {
    for (int64_t i = 0; i < n_; ++i) {
      if (!std::isfinite(m_(i, i))) {
        return MakeError(absl::StatusCode::kInvalidArgument, "NOT_FINITE", "kernel",
                         absl::StrCat("K(x, x) of landmark ", i, " is ", m_(i, i)),
                         {{"landmark", absl::StrCat(i)}});
      }
    }
    while (next_ < n_ && !stopped_) {
      const double left = 1.0 - static_cast<double>(next_) / static_cast<double>(n_);
      PHIMAP_RETURN_IF_ERROR(control(1.0 - left * left * left));
      PHIMAP_RETURN_IF_ERROR(FactorBlock(control.threads()));
    }
    return Finish();
  }

 private:
  // Left-looking inside of the block, then one update of everything behind it.
  absl::Status FactorBlock(int threads) {
    const int64_t begin = next_;
    const int64_t end = std::min(n_, begin + kBlock);
    std::fill(squares_.begin(), squares_.end(), 0.0);
    for (; next_ < end; ++next_) {
      PHIMAP_ASSIGN_OR_RETURN(const int64_t pivot, ChoosePivot(begin));
      const double schur = m_(pivot, pivot) - squares_[pivot];
      if (!(schur > tolerance_)) {
        stopped_ = true;
        break;
      }
      Swap(next_, pivot);
      Eliminate(begin, schur);
    }
    const int64_t tiles = (n_ - next_ + kUpdateRows - 1) / kUpdateRows;
    return ForEachTile(threads, tiles, NeverStop, [&](int64_t t) { Update(begin, t); });
  }

  // Takes the block's columns off tile t of the rows behind it.
  void Update(int64_t begin, int64_t t) {
    const int64_t first = next_ + t * kUpdateRows;
    const int64_t count = std::min(kUpdateRows, n_ - first);
    const ConstMatrixView<double> rows = m_.Block(first, begin, count, next_ - begin);
    MultiplyTransposed(-1, rows, m_.Block(next_, begin, first - next_, next_ - begin), 1,
                       m_.Block(first, next_, count, first - next_));
    SymmetricRankUpdate(-1, rows, 1, m_.Block(first, first, count, count));
  }

  // Also accumulates the squares that the last column of the block took off each diagonal.
  absl::StatusOr<int64_t> ChoosePivot(int64_t begin) {
    int64_t best = next_;
    double best_schur = -INFINITY;
    for (int64_t i = next_; i < n_; ++i) {
      if (next_ > begin) squares_[i] += m_(i, next_ - 1) * m_(i, next_ - 1);
      const double schur = m_(i, i) - squares_[i];
      if (!(schur >= -slack_)) {
        return NotPsd(absl::StrCat("after ", next_, " pivots the Schur diagonal of landmark ",
                                   order_[i], " is ", schur, ", expected at least ", -slack_));
      }
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

  // Column next_ of the factor.
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

  absl::StatusOr<PivotedCholesky> Finish() {
    PivotedCholesky result;
    for (int64_t i = next_; i < n_; ++i) {
      result.largest_residual = std::max(result.largest_residual, m_(i, i));
      result.residual_trace += std::max(0.0, m_(i, i));
      for (int64_t j = next_; j <= i; ++j) {
        if (!(std::abs(m_(i, j)) <= tolerance_ + slack_)) {
          return NotPsd(absl::StrCat("after ", next_, " pivots the Schur complement of landmarks ",
                                     order_[i], " and ", order_[j], " is ", m_(i, j),
                                     " while its diagonal is at most ", tolerance_));
        }
      }
    }
    result.pivots.assign(order_.begin(), order_.begin() + next_);
    result.diagonal = std::move(diagonal_);
    return result;
  }

  MatrixView<double> m_;
  const int64_t n_;
  const double tolerance_;
  double slack_ = 0;
  std::vector<int64_t> order_;
  // For each row: squares of its entries in the block's finished columns.
  std::vector<double> squares_;
  std::vector<double> diagonal_;
  int64_t next_ = 0;
  bool stopped_ = false;
};

}  // namespace

absl::StatusOr<PivotedCholesky> FactorPivoted(MatrixView<double> m, double tolerance,
                                              const TileControl& control, double unit) {
  PHIMAP_CHECK(m.rows() == m.cols() && tolerance >= 0 && unit > 0);
  return Factorization(m, tolerance, unit).Run(control);
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
