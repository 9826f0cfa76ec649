// Logistic regression in φ-space by stochastic gradient descent. The four strategies are those of
// the Cornell lecture notes on kernels.
#ifndef PHIMAP_CORE_LEARN_KERNEL_SGD_H_
#define PHIMAP_CORE_LEARN_KERNEL_SGD_H_

#include <memory>
#include <utility>

#include "core/kernel/kernel_program.h"
#include "core/learn/learner.h"
#include "core/learn/row_map.h"

namespace phimap {

// Maximum number of rows for which the Gram matrix is stored. The matrix then takes 2 GiB.
inline constexpr int64_t kMaxGramRows = 16384;
// Maximum number of stored feature values. They then take 2 GiB.
inline constexpr int64_t kMaxStoredFeatures = int64_t{1} << 28;

// Ways to obtain inner products. These are the four ways of the Cornell lecture, and all give the
// same model. The table uses these letters: n is the number of rows, T the number of steps, D the
// number of features, c_φ the cost of computing the features of one row, and c_K the cost of one
// kernel value. Memory is counted in numbers.
//
//   strategy           time             memory   stores
//   features           T·c_φ + T·D      D        w; computes the features of each drawn row
//   stored_features    n·c_φ + T·D      n·D      w and the features of all rows
//   kernel             T·n·c_K          n        one coefficient per row; computes K(x_i, ·) when
//                                                row i is drawn
//   gram               n²·c_K + T·n     n²       one coefficient per row, and the Gram matrix
//
// The first two strategies need explicit features. The lecture lists these two once more with
// features that only approximate the kernel, which makes six strategies; here they are the same
// two.
enum class SgdStrategy { kFeatures, kStoredFeatures, kKernel, kGram };

struct KernelSgdOptions {
  SgdStrategy strategy = SgdStrategy::kGram;
  double rate = 0.1;
  int64_t epochs = 20;
};

// Logistic regression in φ-space. For each class, a weight vector w is trained to separate the
// class from all others, with labels y = ±1. (With two classes, there is only one such problem.)
// Gradient descent begins with w = 0 and takes T = epochs·n steps, where n is the number of rows:
//
//    w ← w − rate · ℓ'(w·φ(x_i); y_i) φ(x_i),     ℓ'(s; y) = −y/(1 + e^{ys})
//
// Here ℓ' is the derivative of the logistic loss at the score s. The row number i is drawn
// uniformly from StreamId::kSgdRows, with the same draws for all classes. The scores of the model
// are w·φ(x). There is no intercept and no regularisation, as in the lecture.
//
// The strategies with explicit features store w itself. The strategies with the kernel store
// coefficients u such that w = Σ u_i φ(x_i), and their models store the rows whose coefficients are
// not 0. For the same seed, the scores of all strategies are equal up to round-off.
//
// Errors: FAILED_PRECONDITION (ROWS_TOO_MANY) if strategy gram has more than kMaxGramRows rows, or
// if strategy stored_features has more than kMaxStoredFeatures feature values. The other two
// strategies have no such limit.
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
