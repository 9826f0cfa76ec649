// Logistic regression in φ-space by stochastic gradient descent, with the four strategies of the
// Cornell lecture.
#ifndef PHIMAP_CORE_LEARN_KERNEL_SGD_H_
#define PHIMAP_CORE_LEARN_KERNEL_SGD_H_

#include <memory>
#include <utility>

#include "core/kernel/kernel_program.h"
#include "core/learn/learner.h"
#include "core/learn/row_map.h"

namespace phimap {

// Most rows whose Gram matrix is stored: 2 GiB.
inline constexpr int64_t kMaxGramRows = 16384;
// Most numbers of stored features: 2 GiB.
inline constexpr int64_t kMaxStoredFeatures = int64_t{1} << 28;

// Ways to obtain inner products; the four of the Cornell lecture, which give equal models. With n
// rows, T steps, features that are D numbers and cost c_φ, and a kernel that costs c_K:
//
//   text               time             memory   keeps
//   features           T·c_φ + T·D      D        w, mapping each row when it is drawn
//   stored_features    n·c_φ + T·D      n·D      w and the features of every row
//   kernel             T·n·c_K          n        a coefficient a row, K(x_i, ·) when i is drawn
//   gram               n²·c_K + T·n     n²       a coefficient a row and the Gram matrix
//
// The first two need explicit features; with those of a mapping that approximates the kernel they
// are the lecture's two further ways.
enum class SgdStrategy { kFeatures, kStoredFeatures, kKernel, kGram };

struct KernelSgdOptions {
  SgdStrategy strategy = SgdStrategy::kGram;
  double rate = 0.1;
  int64_t epochs = 20;
};

// For each class against the rest, with labels y = ±1, w begins at 0 and takes T = epochs·n steps
//
//    w ← w − rate · ℓ'(w·φ(x_i); y_i) φ(x_i),     ℓ'(s; y) = −y/(1 + e^{ys}),
//
// i drawn uniformly by StreamId::kSgdRows, the same for every class. Two classes are one such
// problem. The scores are w·φ(x). There is no intercept and no regularisation, as in the lecture.
//
// The strategies keep either w, with explicit features, or the coefficients u of w = Σ u_i φ(x_i),
// with the kernel. They arrive at the same w: for the same seed, scores differ by round-off alone.
// A model on u keeps the rows whose coefficient is not 0.
//
// Errors: FAILED_PRECONDITION (ROWS_TOO_MANY) if strategy gram has more than kMaxGramRows rows, or
// stored_features more than kMaxStoredFeatures numbers. The other two strategies have no such
// limit.
class KernelSgd : public Learner {
 public:
  // Constructor for the strategies kernel and gram.
  KernelSgd(const KernelSgdOptions& options, KernelProgram kernel)
      : options_(options), kernel_(std::move(kernel)) {}
  // Constructor for the strategies features and stored_features.
  KernelSgd(const KernelSgdOptions& options, std::shared_ptr<const RowMap> map)
      : options_(options), map_(std::move(map)) {}

  absl::StatusOr<std::unique_ptr<const Model>> Train(const TrainingSet& examples, uint64_t seed,
                                                     Checkpoint checkpoint) const override;

 private:
  absl::StatusOr<std::unique_ptr<const Model>> TrainWeights(const TrainingSet& examples,
                                                            uint64_t seed,
                                                            Checkpoint checkpoint) const;
  absl::StatusOr<std::unique_ptr<const Model>> TrainCoefficients(const TrainingSet& examples,
                                                                 uint64_t seed,
                                                                 Checkpoint checkpoint) const;

  const KernelSgdOptions options_;
  const KernelProgram kernel_;
  const std::shared_ptr<const RowMap> map_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_KERNEL_SGD_H_
