#include "core/learn/kernel_trials.h"

#include <algorithm>
#include <utility>

#include "core/kernel/kernel_block.h"
#include "core/learn/row_order.h"
#include "core/linalg/blas.h"
#include "core/linalg/pivoted_cholesky.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Directions of φ-space with less than this share of K(x, x) are left out: they may be rounding of
// the kernel's values, which is about p·2⁻⁵³ for p columns.
constexpr double kRankTolerance = 1e-10;

Matrix<double> RowsAt(ConstMatrixView<double> from, const std::vector<int64_t>& order,
                      int64_t count) {
  const int64_t most = std::min(count, static_cast<int64_t>(order.size()));
  Matrix<double> rows = Matrix<double>::Uninit(most, from.cols());
  for (int64_t i = 0; i < most; ++i) std::copy_n(from.row(order[i]), rows.cols(), rows.row(i));
  return rows;
}

}  // namespace

KernelTrials::KernelTrials(const TrainingSet& train, const TrainingSet& validate,
                           const KernelTrialOptions& options)
    : train_(train),
      validate_(validate),
      order_(RowOrder(train.rows.rows(), options.seed).Next()),
      landmarks_(RowsAt(train.rows, order_, options.landmarks)) {}

Matrix<double> KernelTrials::TrainingRows(int64_t count) const {
  return RowsAt(train_.rows, order_, count);
}

// K(x, x) is the same for all rows, so the Gram matrix is its own normalised form but for a number.
absl::StatusOr<KernelTrials::Landmarks> KernelTrials::FactorOf(const KernelProgram& program,
                                                               Checkpoint checkpoint) const {
  Matrix<double> gram(landmarks_.rows(), landmarks_.rows());
  PHIMAP_RETURN_IF_ERROR(KernelGram(program, landmarks_.view(), gram.view(),
                                    [&](double share) { return checkpoint(share / 2); }));
  PHIMAP_ASSIGN_OR_RETURN(
      const PivotedCholesky cholesky,
      FactorPivoted(gram.view(), {.tolerance = kRankTolerance * gram(0, 0), .is_proven = true},
                    [&](double share) { return checkpoint((1 + share) / 2); }));
  const int64_t rank = cholesky.rank();
  Landmarks out{.pivots = Matrix<double>::Uninit(rank, landmarks_.cols()),
                .factor = Matrix<double>(rank, rank)};
  for (int64_t i = 0; i < rank; ++i) {
    std::copy_n(landmarks_.row(cholesky.pivots[i]), landmarks_.cols(), out.pivots.row(i));
    std::copy_n(gram.row(i), i + 1, out.factor.row(i));
  }
  return out;
}

absl::Status KernelTrials::AddBlock(const KernelProgram& program, const Landmarks& landmarks,
                                    RidgeTraining::Part part, int64_t first, int64_t count,
                                    RidgeTraining& training, Checkpoint checkpoint) const {
  const TrainingSet& set = part == RidgeTraining::Part::kTrain ? train_ : validate_;
  const ConstMatrixView<double> rows = set.rows.Rows(first, count);
  Matrix<double> values = Matrix<double>::Uninit(landmarks.pivots.rows(), count);
  KernelBlock(program, landmarks.pivots.view(), SquaredNorms(landmarks.pivots.view()), rows,
              SquaredNorms(rows), values.view());
  SolveLowerTriangle(landmarks.factor.view(), values.view());
  const Matrix<double> features = Transposed(values.view());
  const auto begin = static_cast<size_t>(first);
  const auto length = static_cast<size_t>(count);
  RowLabels known;
  if (!set.labels.empty()) known.labels = set.labels.subspan(begin, length);
  if (!set.targets.empty()) known.targets = set.targets.subspan(begin, length);
  if (!set.weights.empty()) known.weights = set.weights.subspan(begin, length);
  return training.Add(part, features.view(), known, checkpoint);
}

absl::StatusOr<KernelTrials::Fit> KernelTrials::Try(const KernelExpression& kernel,
                                                    Checkpoint checkpoint) const {
  const auto first_part = [&](double share) { return checkpoint(share / 4); };
  const KernelProgram program = KernelProgram::Compile(kernel);
  PHIMAP_ASSIGN_OR_RETURN(Landmarks landmarks, FactorOf(program, first_part));
  RidgeTraining training({}, train_.task(), landmarks.pivots.rows());
  const auto rows = static_cast<double>(train_.rows.rows() + validate_.rows.rows());
  int64_t done = 0;
  for (const RidgeTraining::Part part :
       {RidgeTraining::Part::kTrain, RidgeTraining::Part::kValidate}) {
    const int64_t all =
        part == RidgeTraining::Part::kTrain ? train_.rows.rows() : validate_.rows.rows();
    for (int64_t first = 0; first < all; first += kKernelRows) {
      const int64_t count = std::min(kKernelRows, all - first);
      const double share = 0.25 + 0.5 * static_cast<double>(done) / rows;
      PHIMAP_RETURN_IF_ERROR(checkpoint(share));
      PHIMAP_RETURN_IF_ERROR(AddBlock(program, landmarks, part, first, count, training,
                                      [&](double) { return checkpoint(share); }));
      done += count;
    }
  }
  const auto last = [&](double share) { return checkpoint(0.75 + share / 4); };
  PHIMAP_ASSIGN_OR_RETURN(
      RidgeFit fit,
      training.Solve({.class_count = train_.class_count, .learn_from_validation = false}, last));
  Fit out{.landmarks = std::move(landmarks.pivots), .v = std::move(fit.scores.weights)};
  out.error =
      std::min_element(fit.trials.begin(), fit.trials.end(), [](const auto& a, const auto& b) {
        return a.error < b.error;
      })->error;
  // F(x)·V = k(x)·L⁻ᵀ·V.
  SolveLowerTriangleTransposed(landmarks.factor.view(), out.v.view());
  return out;
}

}  // namespace phimap
