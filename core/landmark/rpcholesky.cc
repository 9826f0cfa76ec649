#include "core/landmark/rpcholesky.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_work.h"
#include "core/kernel/value_error.h"
#include "core/linalg/blas.h"
#include "core/linalg/pivoted_cholesky.h"
#include "core/linalg/tiles.h"
#include "core/plan/rows.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kTileRows = 1024;

// Returns the number of proposals per block. A larger block makes matrix products wider and faster.
// But each proposal is checked against all others of its block, and more of them are rejected,
// because proposals explain parts of each other.
int64_t BlockSize(int64_t landmarks) { return std::clamp<int64_t>(landmarks / 4, 16, 256); }

// Unit round-off of float64.
constexpr double kUnit = 0x1p-53;

absl::Status NotPsd(int64_t row, double left, const DefinitenessWitness& witness) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kKernelNotPositiveSemidefinite, "kernel",
      absl::StrCat("the kernel is not positive semidefinite on the pool: the residual of row ", row,
                   " is ", left, ", and a vector z with Σ|z|√K(x, x) = ", std::sqrt(witness.scale),
                   " has zᵀKz = ", witness.value,
                   "; policy rpcholesky needs a positive semidefinite kernel, policy uniform "
                   "accepts any kernel"));
}

// A selection of d rows in progress. `factor_` holds the N×d matrix F. Its first chosen() columns
// are final: the product F·Fᵀ of these columns approximates K.
class Selection {
 public:
  explicit Selection(const RandomPivotTask& task)
      : task_(task),
        n_(task.pool.rows()),
        d_(task.landmarks),
        norms_(SquaredNorms(task.pool)),
        random_(RandomStream(task.seed, StreamId::kRandomPivots)) {}

  absl::StatusOr<RandomPivots> Run(Checkpoint checkpoint) {
    PHIMAP_RETURN_IF_ERROR(Begin());
    while (chosen() < d_) {
      const double total = Accumulate();
      if (!(total > 0)) break;
      Propose(total);
      Decide();
      PHIMAP_RETURN_IF_ERROR(AddColumns(checkpoint));
    }
    for (const double left : residual_) result_.residual_trace += left;
    Fill();
    return std::move(result_);
  }

 private:
  int64_t chosen() const { return static_cast<int64_t>(result_.rows.size()); }

  absl::Status Begin() {
    self_ = KernelDiagonal(task_.kernel, task_.pool, norms_);
    for (int64_t i = 0; i < n_; ++i) {
      if (!std::isfinite(self_[i])) {
        return MakeError(absl::StatusCode::kInvalidArgument, reason::kValueNotFinite, "kernel",
                         absl::StrCat("K(x, x) of a row of the pool is ", self_[i]));
      }
    }
    PHIMAP_RETURN_IF_ERROR(LeaveZerosOut());
    residual_ = self_;
    factor_ = Matrix<double>::Uninit(n_, d_);
    sums_.resize(static_cast<size_t>(n_));
    return absl::OkStatus();
  }

  // Sets K(x, x) to 0 for rows where it is only rounding. Computes the error of the kernel values
  // of the other rows.
  absl::Status LeaveZerosOut() {
    const std::vector<double> errors = SelfErrors(task_.kernel, task_.pool);
    std::vector<int64_t> kept;
    std::vector<double> self;
    for (int64_t i = 0; i < n_; ++i) {
      if (self_[i] < -kZeroRoundings * errors[i]) {
        return NotPsd(i, self_[i], {.value = self_[i], .scale = -self_[i]});
      }
      if (self_[i] <= kZeroRoundings * errors[i]) {
        self_[i] = 0;
        continue;
      }
      result_.trace += self_[i];
      kept.push_back(i);
      self.push_back(self_[i]);
    }
    if (kept.empty()) return absl::OkStatus();
    value_error_ = ValueErrorOf(task_.kernel, Gather(task_.pool, kept).view(), self);
    // Up to d squares, together at most K(x, x), are subtracted from K(x, x). A residual below
    // their round-off, or below the error of the values, counts as 0.
    noise_ = 4 * std::max(static_cast<double>(d_) * kUnit, value_error_);
    return absl::OkStatus();
  }

  // Computes cumulative sums of the residuals, from which rows are drawn. Returns the total.
  double Accumulate() {
    double sum = 0;
    for (int64_t i = 0; i < n_; ++i) sums_[i] = sum += residual_[i];
    return sum;
  }

  // Draws a block of proposals. The probability of a row is its residual divided by `total`. Then
  // computes the proposals' kernel matrix, minus the part that the rows chosen before explain.
  void Propose(double total) {
    const int64_t block = BlockSize(d_);
    proposals_.resize(static_cast<size_t>(block));
    for (int64_t& row : proposals_) {
      const double target = random_.UniformOpen01() * total;
      // The first row whose cumulative sum exceeds the target has a residual above 0.
      row = std::upper_bound(sums_.begin(), sums_.end(), target) - sums_.begin();
      // The product u·total may have been rounded up to the total.
      if (row == n_) row = std::lower_bound(sums_.begin(), sums_.end(), total) - sums_.begin();
    }
    const Matrix<double> x = Gather(task_.pool, proposals_);
    const std::vector<double> norms = SquaredNorms(x.view());
    left_ = Matrix<double>::Uninit(block, block);
    KernelBlock(task_.kernel, x.view(), norms, x.view(), norms, left_.view());
    const Matrix<double> f = Gather(DoneColumns(), proposals_);
    MultiplyTransposed(-1, f.view(), f.view(), 1, left_.view());
  }

  // Accepts or rejects the proposals in order. A proposal was drawn with a probability proportional
  // to its residual before the block (residual_). The correct probability is proportional to its
  // new residual, given the rows just accepted. So each proposal is accepted with probability (new
  // residual)/residual_.
  void Decide() {
    const int64_t block = left_.rows();
    accepted_.clear();
    for (int64_t j = 0; j < block; ++j) {
      const double u = random_.UniformOpen01();
      const double left = left_(j, j);
      if (chosen() + static_cast<int64_t>(accepted_.size()) == d_) continue;
      if (!(left > noise_ * self_[proposals_[j]])) {
        // The rows just accepted explain this row or, if there are none, its residual is only
        // round-off.
        if (accepted_.empty()) residual_[proposals_[j]] = 0;
        continue;
      }
      if (!(u * residual_[proposals_[j]] < left)) continue;
      accepted_.push_back(j);
      EliminateProposal(j, std::sqrt(left));
    }
  }

  // Replaces column j of left_ by that column of its Cholesky factor, and updates the columns after
  // it.
  void EliminateProposal(int64_t j, double root) {
    const int64_t block = left_.rows();
    left_(j, j) = root;
    for (int64_t i = j + 1; i < block; ++i) left_(i, j) /= root;
    column_.resize(static_cast<size_t>(block));
    for (int64_t i = j + 1; i < block; ++i) column_[i] = left_(i, j);
    for (int64_t i = j + 1; i < block; ++i) {
      const double l = column_[i];
      double* row = left_.row(i);
      for (int64_t k = j + 1; k <= i; ++k) row[k] -= l * column_[k];
    }
  }

  // Adds the columns of F for the accepted rows S, which are (K(·, S) − F·F(S)ᵀ)·L^{-T}. F(S) are
  // the rows of F for S, and L is the Cholesky factor of the residual kernel matrix of S. Then
  // updates the residuals.
  absl::Status AddColumns(Checkpoint checkpoint) {
    const int64_t before = chosen();
    const int64_t added = static_cast<int64_t>(accepted_.size());
    if (added == 0) return checkpoint(Share(before));
    std::vector<int64_t> rows;
    Matrix<double> triangle(added, added);
    for (int64_t i = 0; i < added; ++i) {
      rows.push_back(proposals_[accepted_[i]]);
      for (int64_t j = 0; j <= i; ++j) triangle(i, j) = left_(accepted_[i], accepted_[j]);
    }
    const Matrix<double> x = Gather(task_.pool, rows);
    const std::vector<double> norms = SquaredNorms(x.view());
    const Matrix<double> done = Gather(DoneColumns(), rows);
    const auto tile = [&](int64_t t) {
      const int64_t begin = t * kTileRows;
      const int64_t count = std::min(kTileRows, n_ - begin);
      const std::vector<double> tile_norms(norms_.begin() + begin, norms_.begin() + begin + count);
      const MatrixView<double> fresh = factor_.view().Block(begin, before, count, added);
      KernelBlock(task_.kernel, task_.pool.Rows(begin, count), tile_norms, x.view(), norms, fresh);
      if (before > 0) {
        MultiplyTransposed(-1, factor_.view().Block(begin, 0, count, before), done.view(), 1,
                           fresh);
      }
      SolveLowerTriangleFromRight(std::as_const(triangle).view(), fresh);
      TakeOff(begin, fresh);
    };
    const auto progress = [&](double f) {
      return checkpoint(Share(static_cast<double>(before) + f * static_cast<double>(added)));
    };
    // Reports here, because other threads may take every tile, and then ForEachTile reports
    // nothing.
    PHIMAP_RETURN_IF_ERROR(progress(0));
    PHIMAP_RETURN_IF_ERROR(
        ForEachTile(task_.threads(), (n_ + kTileRows - 1) / kTileRows, progress, tile));
    for (const int64_t row : rows) residual_[row] = 0;
    result_.rows.insert(result_.rows.end(), rows.begin(), rows.end());
    return Check();
  }

  void TakeOff(int64_t begin, ConstMatrixView<double> fresh) {
    for (int64_t i = 0; i < fresh.rows(); ++i) {
      if (residual_[begin + i] == 0) continue;
      residual_[begin + i] -= SquaredNorm(fresh.row(i), fresh.cols());
    }
  }

  absl::Status Check() {
    int64_t worst = -1;
    double least = -value_error_;
    for (int64_t i = 0; i < n_; ++i) {
      if (self_[i] > 0 && residual_[i] / self_[i] < least) {
        worst = i;
        least = residual_[i] / self_[i];
      }
      if (std::isnan(residual_[i])) {
        return MakeError(absl::StatusCode::kInvalidArgument, reason::kValueNotFinite, "kernel",
                         absl::StrCat("a kernel value of row ", i, " of the pool is not finite"));
      }
    }
    if (worst >= 0 && !task_.is_proven) PHIMAP_RETURN_IF_ERROR(Disprove(worst));
    for (int64_t i = 0; i < n_; ++i) {
      if (residual_[i] <= noise_ * self_[i]) residual_[i] = 0;
    }
    return absl::OkStatus();
  }

  // Decides whether a negative residual shows that the kernel is indefinite. Elimination amplifies
  // the errors of values, so a residual can be negative even for a positive semidefinite kernel.
  // The test is on the vector z for which zᵀKz is the residual.
  absl::Status Disprove(int64_t row) {
    std::vector<int64_t> rows = result_.rows;
    const Matrix<double> triangle = Gather(DoneColumns(), rows);
    std::vector<double> z(DoneColumns().row(row), DoneColumns().row(row) + chosen());
    SolveLowerTriangleTransposed(triangle.view(), MatrixView<double>(z.data(), chosen(), 1));
    for (double& entry : z) entry = -entry;
    z.push_back(1);
    rows.push_back(row);
    const Matrix<double> x = Gather(task_.pool, rows);
    Matrix<double> gram = Matrix<double>::Uninit(x.rows(), x.rows());
    PHIMAP_RETURN_IF_ERROR(KernelGram(task_.kernel, x.view(), gram.view(), NeverStop));
    const DefinitenessWitness witness =
        WitnessOf(z, [&](int64_t i, int64_t j) { return gram(i, j); });
    return witness.Proves(value_error_) ? NotPsd(row, residual_[row], witness) : absl::OkStatus();
  }

  // Returns the share of the work that is done after `columns` columns. The work grows with their
  // square.
  double Share(double columns) const {
    const double share = columns / static_cast<double>(d_);
    return share * share;
  }

  // Draws the missing landmarks uniformly from the rows not chosen. Used if all residuals are 0.
  void Fill() {
    if (chosen() == d_) return;
    std::vector<char> taken(static_cast<size_t>(n_));
    for (const int64_t row : result_.rows) taken[row] = 1;
    for (const int64_t row :
         FirstOfPermutation(n_, n_, RandomStream(task_.seed, StreamId::kRandomPivotFill))) {
      if (chosen() == d_) return;
      if (!taken[row]) result_.rows.push_back(row);
    }
  }

  ConstMatrixView<double> DoneColumns() const { return factor_.view().Block(0, 0, n_, chosen()); }

  static Matrix<double> Gather(ConstMatrixView<double> from, const std::vector<int64_t>& rows) {
    Matrix<double> to = Matrix<double>::Uninit(static_cast<int64_t>(rows.size()), from.cols());
    for (size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(from.row(rows[i]), from.cols(), to.row(static_cast<int64_t>(i)));
    }
    return to;
  }

  const RandomPivotTask& task_;
  const int64_t n_;
  const int64_t d_;
  const std::vector<double> norms_;
  RandomCursor random_;
  // Tolerances. `value_error_` is the error of a value K(x, y) divided by √(K(x, x)·K(y, y)). A
  // residual counts as 0 up to `noise_`·K(x, x).
  double value_error_ = kUnit;
  double noise_ = 0;
  // K(x, x) of each row (0 if it is only rounding), and its residual (0 for a chosen row).
  std::vector<double> self_;
  std::vector<double> residual_;
  std::vector<double> sums_;
  Matrix<double> factor_;
  // Proposals of the current block.
  std::vector<int64_t> proposals_;
  Matrix<double> left_;
  std::vector<double> column_;
  std::vector<int64_t> accepted_;  // indices into proposals_
  RandomPivots result_;
};

}  // namespace

absl::StatusOr<RandomPivots> ChooseRandomPivots(const RandomPivotTask& task,
                                                Checkpoint checkpoint) {
  PHIMAP_CHECK(1 <= task.landmarks && task.landmarks <= task.pool.rows());
  return Selection(task).Run(checkpoint);
}

int64_t RandomPivotBytes(int64_t pool_rows, int64_t landmarks, int64_t columns) {
  const int64_t block = BlockSize(landmarks);
  const int64_t numbers = pool_rows * (landmarks + 4) +        // F; norms, K(x, x), residuals, sums
                          2 * block * (landmarks + columns) +  // gathered rows
                          3 * block * block;
  return numbers * static_cast<int64_t>(sizeof(double));
}

Work WorkOfRandomPivots(int64_t pool_rows, int64_t landmarks, int64_t columns,
                        const ValueWork& value) {
  const double n = static_cast<double>(pool_rows);
  const double d = static_cast<double>(landmarks);
  const double p = static_cast<double>(columns);
  const double block = static_cast<double>(BlockSize(landmarks));
  // Counts the columns of F and, for each block of proposals (2d proposals in total), its own
  // kernel matrix, the part of it that F explains, and its elimination.
  Work work = WorkOfKernelBlock(n, d, p, value);
  work.product_flops += n * d * d + 2 * d * block * (2 * p * value.products + d);
  work.elements += 2 * d * block * value.elements;
  work.factor_flops += 2 * d * block * block / 3;
  return work;
}

}  // namespace phimap
