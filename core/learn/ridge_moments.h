// The sums over rows from which ridge regression is solved (ridge.h). For rows of d features they
// take d² numbers, however many rows there are.
//
// Rows are gathered into blocks of kGramRows, whose products BLAS computes in float64. A product of
// two float32 features is exact there, so features of either type lose nothing on the way. The bits
// of the sums depend only on the rows and their order, not on the parts in which they are added.
//
// Accuracy: an entry of G = Σ w·φφᵀ over n rows errs by at most (kGramRows + 4 + n/kGramRows)·2⁻⁵³
//           · √(G_ii·G_jj), to first order: the terms of a block, two roundings of √w in each
//           factor, and the sums of the blocks.
#ifndef PHIMAP_CORE_LEARN_RIDGE_MOMENTS_H_
#define PHIMAP_CORE_LEARN_RIDGE_MOMENTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/head/head.h"
#include "core/linalg/matrix.h"
#include "core/linalg/tiles.h"

namespace phimap {

// Rows that are added to a Gram matrix at a time.
inline constexpr int64_t kGramRows = 256;

// What is known of rows besides their features, as in TrainingSet: a label for each row, or a
// target, and a weight unless all are 1.
struct RowLabels {
  absl::Span<const int32_t> labels = {};
  absl::Span<const double> targets = {};
  absl::Span<const double> weights = {};
};

// Sums over the rows of a class, or over all rows of numbers. Rows of weight 0 do not count.
struct RowSums {
  int64_t rows = 0;
  double weight = 0;             // Σ w
  std::vector<double> features;  // Σ w·φ
  // For numbers. y is the target less RidgeMoments::shift().
  double targets = 0;            // Σ w·y
  double squares = 0;            // Σ w·y²
  std::vector<double> products;  // Σ w·y·φ
};

// Not thread-safe.
class RidgeMoments {
 public:
  // If `gram_of_each_class`, weights of classes may be chosen when all rows are known.
  RidgeMoments(HeadTask task, int64_t features, bool gram_of_each_class);

  // Bytes of the moments of `classes` classes (0 for numbers).
  static double Bytes(double features, double classes, bool gram_of_each_class);

  // Adds rows, n×features, of T float or double. A label is any number from 0; classes that have
  // none yet are made. The work that `control` may stop and share is that of whole blocks. After an
  // error of `control` the moments are not usable.
  // Errors: INVALID_ARGUMENT (VALUE_NOT_FINITE, field "targets"; FIELD_OUT_OF_RANGE, field
  //         "weights") with the row, before any row is added.
  // Cost:   d²/2 multiplications a row. REQUIRES: features are finite; as many labels or targets,
  //         and weights if there are any, as rows.
  template <typename T>
  absl::Status Add(ConstMatrixView<T> rows, const RowLabels& known, const TileControl& control);
  // Adds the rows that are gathered but do not fill a block. Call it before the functions below.
  absl::Status Flush(const TileControl& control);

  // Adds the sums of other rows. REQUIRES: both were made with the same arguments.
  void Merge(const RidgeMoments& other);
  // Gives class y the number numbers[y]; there are `class_count` classes after that, and one that
  // none is given has no rows. REQUIRES: numbers are different, from 0 to class_count − 1.
  void Renumber(absl::Span<const int32_t> numbers, int32_t class_count);

  int64_t features() const { return features_; }
  int64_t rows() const;
  int32_t class_count() const {
    return task_ == HeadTask::kNumbers ? 0 : static_cast<int32_t>(sums_.size());
  }
  // The sums of each class, or of all rows of numbers.
  const std::vector<RowSums>& sums() const { return sums_; }
  // A target of the rows, which is subtracted from all targets: sums of squares far from 0 would
  // lose the digits of their differences.
  double shift() const { return shift_; }
  // Returns Σ_y weights[y]·G_y; only the lower triangle is defined. The view is into these moments,
  // or into `scratch` where matrices have to be added. REQUIRES: a weight for each class, or one
  // for numbers; all are 1 unless there is a Gram matrix of each class.
  MatrixView<double> WeightedGram(absl::Span<const double> weights, Matrix<double>& scratch);

 private:
  // Σ φφᵀ, and the rows that are not added yet.
  struct Gram {
    Matrix<double> sum;  // lower triangle
    Matrix<double> gathered;
    int64_t gathered_rows = 0;

    absl::Status Flush(const TileControl& control);
  };
  RowSums& SumsOf(int32_t y);
  // Returns the matrix with a free row for a row of class y.
  absl::StatusOr<Gram*> GramFor(int32_t y, const TileControl& control);

  HeadTask task_;
  int64_t features_;
  bool gram_of_each_class_;
  double shift_ = 0;
  std::vector<RowSums> sums_;
  std::vector<Gram> grams_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_LEARN_RIDGE_MOMENTS_H_
