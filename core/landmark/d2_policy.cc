// policy=d2: rows of the pool by greedy D² seeding.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/kernel/kernel_block.h"
#include "core/landmark/d2_seeding.h"
#include "core/landmark/landmark_policy.h"
#include "core/linalg/blas.h"
#include "core/linalg/tiles.h"
#include "core/plan/plan.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kPoolTile = 512;

int64_t CandidateCount(int64_t seeds) {
  return 2 + static_cast<int64_t>(std::floor(std::log(static_cast<double>(seeds))));
}

// Chooses the seeds of one pool, one at a time.
class Seeding {
 public:
  explicit Seeding(const D2SeedingTask& task)
      : task_(task),
        random_(task.seed, StreamId::kD2Seeds),
        norms_(SquaredNorms(task.pool)),
        nearest_(static_cast<size_t>(task.pool.rows()), HUGE_VAL),
        chosen_(static_cast<size_t>(task.pool.rows()), false) {}

  absl::StatusOr<std::vector<int64_t>> Run(Checkpoint checkpoint) {
    const int64_t rows = task_.pool.rows();
    PHIMAP_RETURN_IF_ERROR(
        Take({static_cast<int64_t>(random_.UniformBelow(drawn_++, static_cast<uint64_t>(rows)))}));
    while (static_cast<int64_t>(seeds_.size()) < task_.seeds) {
      PHIMAP_RETURN_IF_ERROR(
          checkpoint(static_cast<double>(seeds_.size()) / static_cast<double>(task_.seeds)));
      PHIMAP_RETURN_IF_ERROR(Take(total_ > 0 ? DrawCandidates() : DrawUniformly()));
    }
    return std::move(seeds_);
  }

 private:
  // Draws rows with probability proportional to the squared distance from the nearest seed.
  std::vector<int64_t> DrawCandidates() {
    std::vector<double> sums(nearest_.size());
    double sum = 0;
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = sum += nearest_[i];
    std::vector<int64_t> candidates;
    for (int64_t k = 0; k < CandidateCount(task_.seeds); ++k) {
      const double mark = random_.UniformOpen01(drawn_++) * sum;
      const auto found = std::upper_bound(sums.begin(), sums.end(), mark);
      candidates.push_back(std::min<int64_t>(found - sums.begin(), LastOver0()));
    }
    return candidates;
  }

  // Returns the last row that is not a copy of a seed. This row is drawn if the sum is rounded such
  // that the random target lies beyond all rows.
  int64_t LastOver0() const {
    int64_t last = static_cast<int64_t>(nearest_.size()) - 1;
    while (!(nearest_[last] > 0)) --last;
    return last;
  }

  std::vector<int64_t> DrawUniformly() {
    const int64_t left = task_.pool.rows() - static_cast<int64_t>(seeds_.size());
    auto skip = static_cast<int64_t>(random_.UniformBelow(drawn_++, static_cast<uint64_t>(left)));
    int64_t row = 0;
    while (chosen_[row] || skip-- > 0) ++row;
    return {row};
  }

  // Adds the candidate that leaves the smallest sum of distances as a seed; the first one in case
  // of a tie.
  absl::Status Take(const std::vector<int64_t>& candidates) {
    const int64_t rows = task_.pool.rows();
    const auto count = static_cast<int64_t>(candidates.size());
    const int64_t tiles = (rows + kPoolTile - 1) / kPoolTile;
    Matrix<double> distances = Matrix<double>::Uninit(count, rows);
    Matrix<double> sums = Matrix<double>::Uninit(tiles, count);
    PHIMAP_RETURN_IF_ERROR(ForEachTile(task_.threads(), tiles, NeverStop, [&](int64_t t) {
      MeasureTile(candidates, t * kPoolTile, distances, sums.row(t));
    }));
    int64_t best = 0;
    std::vector<double> totals(static_cast<size_t>(count));
    for (int64_t k = 0; k < count; ++k) {
      for (int64_t t = 0; t < tiles; ++t) totals[k] += sums(t, k);
      if (totals[k] < totals[best]) best = k;
    }
    std::copy_n(distances.row(best), rows, nearest_.begin());
    total_ = totals[best];
    chosen_[candidates[best]] = true;
    seeds_.push_back(candidates[best]);
    return absl::OkStatus();
  }

  // Assumes for each candidate that it becomes a seed. Computes the squared distance of each row in
  // one tile from its nearest seed, and the sum of these distances.
  void MeasureTile(const std::vector<int64_t>& candidates, int64_t begin, Matrix<double>& distances,
                   double* sums) const {
    const int64_t rows = std::min(kPoolTile, task_.pool.rows() - begin);
    const int64_t p = task_.pool.cols();
    const auto count = static_cast<int64_t>(candidates.size());
    Matrix<double> from = Matrix<double>::Uninit(count, p);
    for (int64_t k = 0; k < count; ++k) std::copy_n(task_.pool.row(candidates[k]), p, from.row(k));
    Matrix<double> products = Matrix<double>::Uninit(count, rows);
    MultiplyTransposed(1, std::as_const(from).view(), task_.pool.Rows(begin, rows), 0,
                       products.view());
    // A distance up to this share of ‖x‖² + ‖y‖² is only rounding. In that case row x is a copy of
    // row y.
    const double rounding = 4 * static_cast<double>(p + 4) * 0x1p-53;
    for (int64_t k = 0; k < count; ++k) {
      sums[k] = 0;
      double* const out = distances.row(k) + begin;
      for (int64_t i = 0; i < rows; ++i) {
        const double squares = norms_[begin + i] + norms_[candidates[k]];
        const double distance = squares - 2 * products(k, i);
        out[i] = distance > rounding * squares ? std::min(distance, nearest_[begin + i]) : 0;
        sums[k] += out[i];
      }
    }
  }

  const D2SeedingTask& task_;
  const RandomStream random_;
  uint64_t drawn_ = 0;
  const std::vector<double> norms_;
  // Squared distance of each row from its nearest seed, and the sum of these distances.
  std::vector<double> nearest_;
  double total_ = 0;
  std::vector<bool> chosen_;
  std::vector<int64_t> seeds_;
};

absl::StatusOr<LandmarkChoice> ChooseSeeds(const LandmarkChoiceTask& task, Checkpoint checkpoint) {
  const Matrix<double> pool = PoolForDistances(task);
  PHIMAP_ASSIGN_OR_RETURN(std::vector<int64_t> slots, D2Seeds({.pool = pool.view(),
                                                               .seeds = task.landmarks,
                                                               .seed = task.seed,
                                                               .threads = task.threads},
                                                              checkpoint));
  for (int64_t& slot : slots) slot = task.pool[slot];
  return LandmarkChoice{task.reservoir.Gather(slots), std::nullopt};
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> D2Seeds(const D2SeedingTask& task, Checkpoint checkpoint) {
  PHIMAP_CHECK(1 <= task.seeds && task.seeds <= task.pool.rows());
  return Seeding(task).Run(checkpoint);
}

Work WorkOfD2Seeds(const LandmarkPoolShape& shape) {
  const double pairs = static_cast<double>(shape.rows * shape.landmarks);
  const auto candidates = static_cast<double>(CandidateCount(shape.landmarks));
  return {.product_flops = 2 * pairs * candidates * static_cast<double>(shape.seen_columns),
          .elements = pairs * (candidates + 1)};
}

int64_t BytesOfD2Seeds(const LandmarkPoolShape& shape) {
  const int64_t columns = std::max(shape.columns, shape.seen_columns);
  return 8 * shape.rows * (2 * columns + CandidateCount(shape.landmarks) + 4);
}

Matrix<double> PoolForDistances(const LandmarkChoiceTask& task) {
  const Matrix<double> pool = task.reservoir.Gather(task.pool);
  InputStage input = CopyOf(task.input);
  if (task.shifts) CentreOn(pool.view(), input);
  return AfterInputStage(input, pool.view());
}

extern const LandmarkPolicy kD2Policy;
constinit const LandmarkPolicy kD2Policy = {
    .name = "d2",
    .line =
        "rows far from each other, by greedy D² seeding on Euclidean distances of the scaled "
        "columns; on letter and spam, standardised, a smaller root mean square of K(x, y) − "
        "F(x)·F(y) over unseen rows than uniform; no margin theorem",
    .no_strings = "d2 computes distances between rows of numbers",
    .no_remote = "d2 computes distances between rows; a remote kernel need not depend on them",
    .copies_pool = true,
    .theorem =
        "none: the theorems about margins speak of uniform landmarks, and these were chosen "
        "far from each other (greedy D² seeding, Arthur, Vassilvitskii 2007)",
    .work = WorkOfD2Seeds,
    .bytes = BytesOfD2Seeds,
    .choose = ChooseSeeds,
};

}  // namespace phimap
