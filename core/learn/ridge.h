// Ridge regression from the moments of rows: a linear model of classes or of a number that is
// learned in one pass, so that the number of rows is bounded by time alone.
//
// Let Φ be the features of the n training rows, and t their targets less t̄, the mean. The weights
// minimise ‖t − Φw‖² + alpha·‖w‖², or the weighted form of it, and the intercept is t̄:
//
//     w = (G + alpha·I)⁻¹ Φᵀt,   G = ΦᵀΦ.
//
// The features are not centred. So w is also the mean of the Gaussian process of the features'
// kernel F·F with the noise alpha, of targets less their mean, and its variance at a row is that of
// core/head/head_variance.h, with the scale (tᵀt − wᵀΦᵀt)/(n·alpha). Where all rows are landmarks
// of F2, both are those of the kernel itself. What an intercept would absorb should be in the span
// of the features: standardise the columns for linear(), or add weight(constant=1) to a kernel.
//
// Classes: the target of class y is 1 for its rows and −1 for others, with a score for each class,
// or one score for two classes. A class without rows has the score −1 everywhere, and since the
// scores of c classes add up to 2 − c, no row is predicted to be in it.
//
// Alpha: `auto` takes from AlphaGrid the alpha with the least squared error of the targets of
// validation rows, whose moments give it for classes as well as for numbers: no validation row is
// kept. Of several, the largest alpha. Each alpha costs a Cholesky factor, d³/3 flops. All of them
// together take about as long as one eigendecomposition of G, after which an alpha costs d² (1.5
// and 1.6 s of one core at d = 2,048, 9.8 and 13 s at 4,096), take a third of its memory, and can
// be stopped between alphas.
//
// Accuracy: float64 throughout. The computed w solves (G + E + alpha·I)w = Φᵀt with ‖E‖₂ of about
//           (d + kGramRows + n/kGramRows)·2⁻⁵³·tr(G).
#ifndef PHIMAP_CORE_LEARN_RIDGE_H_
#define PHIMAP_CORE_LEARN_RIDGE_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/head/head.h"
#include "core/learn/class_weight.h"
#include "core/learn/learner.h"
#include "core/learn/ridge_moments.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"
#include "core/linalg/work.h"

namespace phimap {

// 1·10^k and 3·10^k for k = −4 … 4, times the power of ten that is nearest to the mean squared
// length of the training features, which is 1 for kernels with K(x, x) = 1. Rising.
std::vector<double> AlphaGrid(double mean_squared_length);

struct RidgeOptions {
  // nullopt stands for `auto`.
  std::optional<double> alpha = std::nullopt;
  ClassWeight class_weight = {};
};

struct RidgeFit {
  struct Trial {
    double alpha = 0;
    // Mean over the validation rows, with their weights, of the squared error of all targets.
    double error = 0;
  };

  double alpha = 0;
  ScoreWeights scores;
  // The variance of a number, if it was asked for.
  HeadVariance variance;
  // Every alpha that was tried, falling; empty if alpha was given.
  std::vector<Trial> trials;
};

// Learns from rows that come in blocks, each once. Not thread-safe.
class RidgeTraining {
 public:
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  enum class Part { kTrain, kValidate };

  RidgeTraining(RidgeOptions options, HeadTask task, int64_t features,
                int64_t limit_bytes = kUnlimited);

  // Bytes of two parts and of Finish for `classes` classes (0 for numbers).
  static double Bytes(double features, double classes, bool class_weights);

  // Adds rows to a part, as RidgeMoments::Add. Weights of classes need a Gram matrix of each class,
  // because a balanced weight is known when all rows are: RESOURCE_EXHAUSTED (BUILD_MEMORY_FULL),
  // with the bytes, if a label makes a class for which `limit_bytes` is not enough.
  template <typename T>
  absl::Status Add(Part part, ConstMatrixView<T> rows, const RowLabels& known,
                   const TileControl& control);
  int64_t rows(Part part) const { return (part == Part::kTrain ? train_ : validate_).rows(); }

  struct Finish {
    // For classes: their number, and the final number of each label (empty: the label itself).
    int32_t class_count = 0;
    absl::Span<const int32_t> class_numbers = {};
    // Whether the validation rows join the training rows once alpha is chosen.
    bool learn_from_validation = true;
    // Whether to compute RidgeFit::variance, for d³/3 flops more. For numbers only.
    bool variance = false;
  };
  // Solves the problem. Call it once, after all rows were added.
  // Errors: INVALID_ARGUMENT: no training row, or no validation row for `auto` (ROWS_TOO_FEW);
  //         class_weight for numbers (PARAMETER_NOT_APPLICABLE) or with a wrong number of weights
  //         (LENGTH_MISMATCH); an alpha that is lost in rounding beside G, with the least that is
  //         not (FIELD_OUT_OF_RANGE, field "alpha"). Those of the checkpoint, which is called
  //         between factorizations.
  absl::StatusOr<RidgeFit> Solve(const Finish& finish, Checkpoint checkpoint);

 private:
  absl::StatusOr<std::vector<double>> WeightsOfClasses() const;
  absl::Status ChooseAlpha(RidgeFit& fit, Checkpoint checkpoint);
  absl::Status CheckMemory(absl::Span<const int32_t> labels) const;

  const RidgeOptions options_;
  const HeadTask task_;
  const int64_t limit_bytes_;
  RidgeMoments train_;
  RidgeMoments validate_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_RIDGE_H_
