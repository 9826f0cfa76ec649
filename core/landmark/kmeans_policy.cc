// policy=kmeans: centres of the pool's clusters (Zhang, Tsang, Kwok 2008).
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/kernel/kernel_block.h"
#include "core/landmark/d2_seeding.h"
#include "core/landmark/landmark_policy.h"
#include "core/linalg/blas.h"
#include "core/linalg/tiles.h"
#include "core/plan/plan.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kAssignedRows = 256;
// Lloyd's iteration stops after kMostPasses passes, or when a pass decreases the sum of distances
// by less than the share kLeastGain. Further passes would hardly change the kernel error.
constexpr int kMostPasses = 25;
constexpr double kLeastGain = 1e-3;
// Share of the reported progress at which the initial centres (seeds) have been chosen.
constexpr double kSeedShare = 0.4;

// The nearest centre of each row, and its squared distance from the row.
struct Assignment {
  std::vector<int64_t> centre;
  std::vector<double> distance;

  double total() const {
    double sum = 0;
    for (const double d : distance) sum += d;
    return sum;
  }
};

absl::StatusOr<Assignment> Assign(ConstMatrixView<double> pool, const std::vector<double>& norms,
                                  const Matrix<double>& centres, const TileControl& control) {
  Assignment out{std::vector<int64_t>(static_cast<size_t>(pool.rows())),
                 std::vector<double>(static_cast<size_t>(pool.rows()))};
  const std::vector<double> centre_norms = SquaredNorms(centres.view());
  PHIMAP_RETURN_IF_ERROR(
      ForEachRange(pool.rows(), kAssignedRows, control, [&](int64_t begin, int64_t count) {
        Matrix<double> products = Matrix<double>::Uninit(count, centres.rows());
        MultiplyTransposed(1, pool.Rows(begin, count), centres.view(), 0, products.view());
        for (int64_t i = 0; i < count; ++i) {
          int64_t nearest = 0;
          double least = HUGE_VAL;
          for (int64_t j = 0; j < centres.rows(); ++j) {
            const double distance = centre_norms[j] - 2 * products(i, j);
            if (distance < least) {
              least = distance;
              nearest = j;
            }
          }
          out.centre[begin + i] = nearest;
          out.distance[begin + i] = std::max(0.0, norms[begin + i] + least);
        }
      }));
  return out;
}

// Gives each centre without rows the row that is farthest from its own centre. No row is moved
// twice.
void FillEmptyClusters(int64_t centres, Assignment& assigned) {
  std::vector<int64_t> sizes(static_cast<size_t>(centres));
  for (const int64_t centre : assigned.centre) ++sizes[centre];
  for (int64_t j = 0; j < centres; ++j) {
    if (sizes[j] > 0) continue;
    int64_t farthest = -1;
    for (size_t i = 0; i < assigned.centre.size(); ++i) {
      if (sizes[assigned.centre[i]] < 2) continue;
      if (farthest < 0 || assigned.distance[i] > assigned.distance[farthest]) {
        farthest = static_cast<int64_t>(i);
      }
    }
    // Some cluster has two rows, because there are at least as many rows as centres.
    --sizes[assigned.centre[farthest]];
    ++sizes[j];
    assigned.centre[farthest] = j;
    assigned.distance[farthest] = 0;
  }
}

// Returns the mean of each centre's rows. Uses running means, because a sum over many large rows
// could overflow.
Matrix<double> MeansOf(ConstMatrixView<double> rows, const Assignment& assigned, int64_t centres) {
  Matrix<double> means(centres, rows.cols());
  std::vector<double> counts(static_cast<size_t>(centres));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const int64_t centre = assigned.centre[i];
    const double share = 1 / ++counts[centre];
    for (int64_t k = 0; k < rows.cols(); ++k) {
      means(centre, k) += (rows(i, k) - means(centre, k)) * share;
    }
  }
  return means;
}

absl::StatusOr<Assignment> Cluster(const LandmarkChoiceTask& task, ConstMatrixView<double> pool,
                                   Checkpoint checkpoint) {
  PHIMAP_ASSIGN_OR_RETURN(
      const std::vector<int64_t> seeds,
      D2Seeds({.pool = pool, .seeds = task.landmarks, .seed = task.seed, .threads = task.threads},
              [&](double f) { return checkpoint(kSeedShare * f); }));
  Matrix<double> centres = Matrix<double>::Uninit(task.landmarks, pool.cols());
  for (int64_t j = 0; j < task.landmarks; ++j) {
    std::copy_n(pool.row(seeds[j]), pool.cols(), centres.row(j));
  }
  const std::vector<double> norms = SquaredNorms(pool);
  Assignment assigned;
  double before = HUGE_VAL;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const auto report = [&](double f) {
      return checkpoint(kSeedShare + (1 - kSeedShare) * (pass + f) / kMostPasses);
    };
    PHIMAP_ASSIGN_OR_RETURN(assigned, Assign(pool, norms, centres, {task.threads, report}));
    FillEmptyClusters(task.landmarks, assigned);
    const double total = assigned.total();
    if (!(total < (1 - kLeastGain) * before)) break;
    before = total;
    centres = MeansOf(pool, assigned, task.landmarks);
  }
  return assigned;
}

// Chooses means of rows before the input stage. The input stage is affine, so it maps these means
// to the means of the rows after the stage.
absl::StatusOr<LandmarkChoice> ChooseCentres(const LandmarkChoiceTask& task,
                                             Checkpoint checkpoint) {
  const Matrix<double> pool = PoolForDistances(task);
  PHIMAP_ASSIGN_OR_RETURN(const Assignment assigned, Cluster(task, pool.view(), checkpoint));
  const Matrix<double> rows = task.reservoir.Gather(task.pool);
  return LandmarkChoice{MeansOf(rows.view(), assigned, task.landmarks), std::nullopt};
}

Work WorkOfClustering(const LandmarkPoolShape& shape) {
  const double pairs = static_cast<double>(shape.rows * shape.landmarks);
  Work work = WorkOfD2Seeds(shape);
  work.product_flops += kMostPasses * 2 * pairs * static_cast<double>(shape.seen_columns);
  work.elements += kMostPasses * pairs / 2;
  return work;
}

int64_t BytesOfClustering(const LandmarkPoolShape& shape) {
  return BytesOfD2Seeds(shape) + 24 * shape.landmarks * shape.columns + 24 * shape.rows;
}

}  // namespace

extern const LandmarkPolicy kKMeansPolicy;
constinit const LandmarkPolicy kKMeansPolicy = {
    .name = "kmeans",
    .line =
        "centres of k-means clusters on Euclidean distances of the scaled columns, not rows of the "
        "stream; on letter and spam, standardised, a smaller root mean square of K(x, y) − "
        "F(x)·F(y) over unseen rows than other policies; no margin theorem",
    .no_strings = "kmeans computes means of rows of numbers",
    .no_remote = "kmeans computes means of rows, for which a remote kernel has no values",
    .no_jumps = "kmeans places centres, which equal no row",
    .copies_pool = true,
    .no_count_rule = "kmeans places all centres together",
    .theorem =
        "none: the theorems about margins speak of uniform landmarks, and these are centres "
        "of clusters and no rows of the stream (Zhang, Tsang, Kwok 2008)",
    .work = WorkOfClustering,
    .bytes = BytesOfClustering,
    .choose = ChooseCentres,
};

}  // namespace phimap
