#include "core/mapping/builder_parts/landmark_factor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_work.h"
#include "core/kernel/value_error.h"
#include "core/linalg/triangular_inverse.h"
#include "core/mapping/builder_parts/plan_pair.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Assumed error of a remote kernel's values, in units of their round-off. How the service computes
// them is unknown.
constexpr double kRemoteRoundings = 16;
// Times the tolerance of float64: what is larger is no rounding.
constexpr double kFarFromRounding = 1000;

// Returns the assumed errors of a remote kernel's values K(x, x), so that a slightly negative value
// counts as 0.
std::vector<double> RemoteSelfErrors(const std::vector<double>& self, double unit) {
  double largest = 0;
  for (const double k : self) largest = std::max(largest, k);
  return std::vector<double>(self.size(), unit * largest);
}

// Checks that no landmark overflows in the serving type. Must run before any kernel value is
// computed, because K(x, x) of a row that overflowed could be 0.
absl::Status CheckRounded(const LandmarkTask& task, const Matrix<double>& rows) {
  for (int64_t i = 0; i < rows.size(); ++i) {
    if (std::isfinite(rows.data()[i])) continue;
    return NotRepresentable(task.serving_type,
                            absl::StrCat("column ", i % rows.cols(), " of landmark ",
                                         i / rows.cols(), " is ", rows.data()[i]));
  }
  return absl::OkStatus();
}

double GramWork(const LandmarkTask& task) {
  if (task.remote != nullptr) return 0;
  const int64_t p = task.landmarks.cols();
  return WorkOfKernelBlock(1, TiledTriangle(task.count()), static_cast<double>(p),
                           WorkOfValue(task.kernel, p))
      .weight();
}

Matrix<double> RowsAt(const Matrix<double>& rows, const std::vector<int64_t>& places) {
  Matrix<double> out = Matrix<double>::Uninit(static_cast<int64_t>(places.size()), rows.cols());
  for (size_t i = 0; i < places.size(); ++i) {
    std::copy_n(rows.row(places[i]), rows.cols(), out.row(static_cast<int64_t>(i)));
  }
  return out;
}

// One factorization of landmarks: computes the Gram matrix, drops landmarks whose K(x, x) is 0,
// estimates the error of the values, and factors.
class Factoring {
 public:
  explicit Factoring(const LandmarkTask& task)
      : task_(task),
        d_(task.count()),
        shares_(SharesOfFactor(task)),
        unit_(std::ldexp(1.0, task.serving_type == FloatType::kFloat32 ? -24 : -53)) {}

  absl::StatusOr<LandmarkFactor> Run(const TileControl& control) {
    PHIMAP_RETURN_IF_ERROR(ComputeGram(control));
    PHIMAP_RETURN_IF_ERROR(CheckFinite());
    PHIMAP_RETURN_IF_ERROR(LeaveZerosOut());
    const double unit = task_.remote != nullptr ? task_.remote->unit : 0x1p-53;
    const double value_error = ValueError();
    result_.tolerance = std::max(static_cast<double>(d_) * std::max(unit_, unit), 4 * value_error);
    result_.float64_tolerance = std::max(static_cast<double>(d_) * unit, 4 * value_error);
    if (!(result_.tolerance < 1)) return NothingLeft(value_error);
    Normalise();
    const auto n = static_cast<int64_t>(kept_.size());
    PHIMAP_ASSIGN_OR_RETURN(
        result_.cholesky,
        FactorPivoted(
            gram_.Block(0, 0, n, n),
            {.tolerance = result_.tolerance,
             .value_error = value_error,
             .is_proven = task_.remote == nullptr && task_.kernel.IsProvenPositiveSemidefinite()},
            {control.threads_ref(), [&](double f) {
               return control(shares_.gram + (shares_.factor - shares_.gram) * f);
             }}));
    const std::vector<int64_t> order = OrderOf(result_.cholesky);
    TakeResult();
    PHIMAP_RETURN_IF_ERROR(TakeTail(order, value_error, control));
    return std::move(result_);
  }

 private:
  absl::Status ComputeGram(const TileControl& control) {
    if (task_.remote == nullptr) {
      PHIMAP_ASSIGN_OR_RETURN(rows_, ServedLandmarks(task_));
    }
    // The factorization reads columns. SpreadStride keeps the elements of a column out of the same
    // cache set.
    storage_ = Matrix<double>::Uninit(d_, SpreadStride<double>(d_));
    gram_ = storage_.view().Block(0, 0, d_, d_);
    if (task_.remote != nullptr) {
      for (int64_t i = 0; i < d_; ++i) {
        std::copy_n(task_.remote->gram.row(i), i + 1, gram_.row(i));
      }
      return absl::OkStatus();
    }
    program_ = KernelProgram::Compile(task_.kernel);
    return KernelGram(program_, std::as_const(rows_).view(), gram_,
                      {control.threads_ref(), [&](double f) { return control(shares_.gram * f); }});
  }

  absl::Status CheckFinite() const {
    for (int64_t i = 0; i < d_; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        if (std::isfinite(gram_(i, j))) continue;
        return MakeError(
            absl::StatusCode::kInvalidArgument, reason::kValueNotFinite, "kernel",
            absl::StrCat("K(x, y) of landmarks ", i, " and ", j, " is ", gram_(i, j), "; ",
                         task_.remote == nullptr ? ValueRemedy(program_) : "rescale the kernel"),
            {{"landmark", absl::StrCat(i)}});
      }
    }
    return absl::OkStatus();
  }

  absl::Status LeaveZerosOut() {
    std::vector<double> self(static_cast<size_t>(d_));
    for (int64_t i = 0; i < d_; ++i) self[i] = gram_(i, i);
    const std::vector<double> errors =
        task_.remote != nullptr ? RemoteSelfErrors(self, task_.remote->unit)
                                : SelfErrors(program_, std::as_const(rows_).view(), unit_);
    for (int64_t i = 0; i < d_; ++i) {
      result_.trace += std::max(0.0, self[i]);
      // Any positive K(x, x) of a remote kernel is accepted, however small, because its error is
      // unknown. A slightly negative one is treated as rounding of 0.
      const double least = task_.remote != nullptr ? 0 : kZeroRoundings * errors[i];
      if (self[i] > least) {
        kept_.push_back(i);
        self_.push_back(self[i]);
      } else if (self[i] < -kZeroRoundings * errors[i]) {
        return MakeError(absl::StatusCode::kFailedPrecondition,
                         reason::kKernelNotPositiveSemidefinite, "kernel",
                         absl::StrCat("the kernel is not positive semidefinite on the landmarks: "
                                      "K(x, x) of landmark ",
                                      i, " is ", self[i],
                                      "; F2 and F3 need a positive semidefinite kernel, F1 takes "
                                      "any"));
      }
    }
    result_.zero_landmarks = d_ - static_cast<int64_t>(kept_.size());
    if (!kept_.empty()) return absl::OkStatus();
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kKernelZero, "kernel",
                     "K(x, x) is 0 on every landmark, so there is no direction to project on");
  }

  double ValueError() const {
    if (task_.remote != nullptr) return kRemoteRoundings * task_.remote->unit;
    return ValueErrorOf(program_, RowsAt(rows_, kept_).view(), self_);
  }

  absl::Status NothingLeft(double value_error) const {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, reason::kKernelPrecisionTooLow, "kernel",
        absl::StrCat("the error of K(x, y) in float64 is up to ", value_error,
                     "·√(K(x, x)·K(y, y)), too large to decide the rank of the landmarks; expected "
                     "less than 0.25: standardize the inputs or rescale the kernel"),
        {{"limit", "0.25"}, {"actual", absl::StrCat(value_error)}});
  }

  // Normalises the Gram matrix: divides each K(x, y) by √K(x, x)·√K(y, y). First moves the kept
  // landmarks to the front. If all K(x, x) are 1, as for rbf, no value changes.
  void Normalise() {
    std::vector<double> roots;
    for (const double self : self_) roots.push_back(std::sqrt(self));
    const bool is_normal =
        std::all_of(roots.begin(), roots.end(), [](double root) { return root == 1; });
    if (is_normal && static_cast<int64_t>(kept_.size()) == d_) return;
    for (size_t a = 0; a < kept_.size(); ++a) {
      const auto i = static_cast<int64_t>(a);
      for (int64_t j = 0; j < i; ++j) {
        gram_(i, j) = gram_(kept_[a], kept_[j]) / roots[a] / roots[j];
      }
      gram_(i, i) = 1;
    }
  }

  // The kept landmarks in the order of the rows of the factored matrix.
  static std::vector<int64_t> OrderOf(const PivotedCholesky& cholesky) {
    std::vector<int64_t> order = cholesky.pivots;
    order.insert(order.end(), cholesky.dropped.begin(), cholesky.dropped.end());
    return order;
  }

  // Whether a landmark is left after the tail that is no repetition of a pivot, as the kernel sees
  // it: repetitions leave only rounding whatever the rank of the kernel is. The rows of the factor
  // are the landmarks' coordinates, so the rows of x and of a pivot that it repeats are equal.
  bool DropsNewRows(const PivotedCholesky& tail, ConstMatrixView<double> schur) const {
    const int64_t r = result_.rank();
    const int64_t q = tail.rank();
    const double most = kFarFromRounding * result_.float64_tolerance;
    // Coordinate j of the landmark whose rows of the factor and of its tail are these.
    const auto coordinate = [&](int64_t row, int64_t tail_row, int64_t j) {
      return j < r ? gram_(row, j) : schur(tail_row, j - r);
    };
    const auto repeats = [&](int64_t dropped, int64_t pivot) {
      const int64_t i = pivot - r;
      const int64_t row = i < 0 ? pivot : r + tail.pivots[i];
      double apart = 0;
      for (int64_t j = 0; j < r + q && apart <= most; ++j) {
        const double of_pivot = j <= pivot ? coordinate(row, i, j) : 0;
        const double gap = coordinate(r + tail.dropped[dropped], q + dropped, j) - of_pivot;
        apart += gap * gap;
      }
      return apart <= most;
    };
    for (int64_t k = 0; k < std::ssize(tail.dropped); ++k) {
      int64_t pivot = 0;
      while (pivot < r + q && !repeats(k, pivot)) ++pivot;
      if (pivot == r + q) return true;
    }
    return false;
  }

  // Factors the Schur complement, which the factorization has left behind the pivots. What it has
  // of negative directions is below the tolerance of the version, so it is not searched for a proof
  // of indefiniteness.
  absl::Status TakeTail(const std::vector<int64_t>& order, double value_error,
                        const TileControl& control) {
    const auto report = [&](double) { return control(shares_.factor); };
    PHIMAP_RETURN_IF_ERROR(report(1));
    if (!(result_.cholesky.largest_residual() > result_.float64_tolerance)) {
      return absl::OkStatus();
    }
    const int64_t r = result_.rank();
    const int64_t left = static_cast<int64_t>(order.size()) - r;
    const MatrixView<double> schur = gram_.Block(r, r, left, left);
    PHIMAP_ASSIGN_OR_RETURN(
        const PivotedCholesky found,
        FactorPivoted(
            schur,
            {.tolerance = result_.float64_tolerance, .value_error = value_error, .is_proven = true},
            {control.threads_ref(), report}));
    if (found.rank() == 0) return absl::OkStatus();
    FactorTail& tail = result_.tail;
    const int64_t q = found.rank();
    tail.ends_sharply = found.diagonal.back() > kFarFromRounding * result_.float64_tolerance &&
                        DropsNewRows(found, schur);
    tail.rows = Matrix<double>(q, r + q);
    for (int64_t i = 0; i < q; ++i) {
      const int64_t place = found.pivots[i];
      const int64_t kept = order[r + place];
      const double root = std::sqrt(self_[kept]);
      for (int64_t j = 0; j < r; ++j) tail.rows(i, j) = root * gram_(r + place, j);
      for (int64_t j = 0; j <= i; ++j) tail.rows(i, r + j) = root * schur(i, j);
      tail.landmarks.push_back(kept_[kept]);
    }
    tail.pivots = Matrix<double>::Uninit(q, rows_.cols());
    if (!rows_.empty()) tail.pivots = RowsAt(rows_, tail.landmarks);
    return absl::OkStatus();
  }

  void TakeResult() {
    PivotedCholesky& cholesky = result_.cholesky;
    for (int64_t k = 0; k < static_cast<int64_t>(cholesky.dropped.size()); ++k) {
      result_.residual_trace += cholesky.residuals[k] * self_[cholesky.dropped[k]];
      cholesky.dropped[k] = kept_[cholesky.dropped[k]];
    }
    const int64_t r = cholesky.rank();
    result_.factor = Matrix<double>(r, r);
    for (int64_t i = 0; i < r; ++i) {
      std::copy_n(gram_.row(i), i + 1, result_.factor.row(i));
      result_.self.push_back(self_[cholesky.pivots[i]]);
      cholesky.pivots[i] = kept_[cholesky.pivots[i]];
    }
    result_.pivots = Matrix<double>::Uninit(r, rows_.cols());
    if (!rows_.empty()) result_.pivots = RowsAt(rows_, cholesky.pivots);
  }

  const LandmarkTask& task_;
  const int64_t d_;
  const FactorShares shares_;
  // Unit round-off of the serving type.
  const double unit_;
  Matrix<double> rows_;
  KernelProgram program_;
  Matrix<double> storage_;
  MatrixView<double> gram_;
  // Landmarks whose K(x, x) is not 0, and their K(x, x).
  std::vector<int64_t> kept_;
  std::vector<double> self_;
  LandmarkFactor result_;
};

}  // namespace

absl::StatusOr<Matrix<double>> ServedLandmarks(const LandmarkTask& task) {
  Matrix<double> rows = RoundedTo(task.serving_type, task.landmarks);
  PHIMAP_RETURN_IF_ERROR(CheckRounded(task, rows));
  return rows;
}

FactorShares SharesOfFactor(const LandmarkTask& task) {
  const int64_t d = task.count();
  const double gram = GramWork(task);
  const double factor = WorkOfFactorPivoted(d, d).weight();
  const double all = gram + factor + WorkOfTransposedInverse(d).weight();
  return {gram / all, (gram + factor) / all};
}

absl::StatusOr<LandmarkFactor> FactorLandmarks(const LandmarkTask& task,
                                               const TileControl& control) {
  return Factoring(task).Run(control);
}

Matrix<double> CoordinatesOf(const LandmarkFactor& landmarks, Matrix<double> values) {
  const int64_t r = landmarks.rank();
  const int64_t q = landmarks.tail.rank();
  const MatrixView<double> of_pivots = values.view().Rows(0, r);
  SolveLowerTriangle(landmarks.factor.view(), of_pivots);
  if (q > 0) {
    const ConstMatrixView<double> rows = landmarks.tail.rows.view();
    const MatrixView<double> of_tail = values.view().Rows(r, q);
    Multiply(-1, rows.Block(0, 0, q, r), of_pivots, 1, of_tail);
    SolveLowerTriangle(rows.Block(0, r, q, q), of_tail);
  }
  return Transposed(values.view());
}

void ScaleWeights(const LandmarkFactor& landmarks, MatrixView<double> w) {
  for (int64_t i = 0; i < w.rows(); ++i) {
    const double root = std::sqrt(landmarks.self[i]);
    if (root == 1) continue;
    for (int64_t j = 0; j < w.cols(); ++j) w(i, j) /= root;
  }
}

void Denormalise(LandmarkFactor& landmarks) {
  for (int64_t i = 0; i < landmarks.rank(); ++i) {
    const double root = std::sqrt(landmarks.self[i]);
    if (root == 1) continue;
    for (int64_t j = 0; j <= i; ++j) landmarks.factor(i, j) *= root;
  }
}

}  // namespace phimap
