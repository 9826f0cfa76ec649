#include "core/learn/ridge_moments.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/statusor.h"
#include "core/learn/learner.h"
#include "core/linalg/blas.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Rows of a Gram matrix that a tile of an update computes.
constexpr int64_t kGramTile = 256;

void AddScaled(double factor, const std::vector<double>& from, std::vector<double>& to) {
  for (size_t k = 0; k < from.size(); ++k) to[k] += factor * from[k];
}

void AddLowerTriangle(double factor, const Matrix<double>& from, MatrixView<double> to) {
  for (int64_t i = 0; i < from.rows(); ++i) {
    for (int64_t j = 0; j <= i; ++j) to(i, j) += factor * from(i, j);
  }
}

}  // namespace

RidgeMoments::RidgeMoments(HeadTask task, int64_t features, bool gram_of_each_class)
    : task_(task), features_(features), gram_of_each_class_(gram_of_each_class) {
  if (task == HeadTask::kNumbers) SumsOf(0);
}

double RidgeMoments::Bytes(double features, double classes, bool gram_of_each_class) {
  const double grams = gram_of_each_class ? classes : 1;
  return 8 * features * (grams * (features + kGramRows) + std::max(classes, 2.0));
}

RowSums& RidgeMoments::SumsOf(int32_t y) {
  while (static_cast<int32_t>(sums_.size()) <= y) {
    sums_.emplace_back().features.resize(static_cast<size_t>(features_));
    if (task_ == HeadTask::kNumbers) sums_.back().products.resize(static_cast<size_t>(features_));
  }
  return sums_[y];
}

absl::StatusOr<RidgeMoments::Gram*> RidgeMoments::GramFor(int32_t y, const TileControl& control) {
  const size_t index = gram_of_each_class_ ? static_cast<size_t>(y) : 0;
  if (grams_.size() <= index) grams_.resize(index + 1);
  Gram& gram = grams_[index];
  if (gram.sum.empty()) gram.sum = Matrix<double>(features_, features_);
  if (gram.gathered.empty()) gram.gathered = Matrix<double>::Uninit(kGramRows, features_);
  if (gram.gathered_rows == kGramRows) PHIMAP_RETURN_IF_ERROR(gram.Flush(control));
  return &gram;
}

absl::Status RidgeMoments::Gram::Flush(const TileControl& control) {
  const ConstMatrixView<double> rows = gathered.view().Rows(0, std::exchange(gathered_rows, 0));
  if (rows.rows() == 0) return absl::OkStatus();
  return ForEachRange(sum.rows(), kGramTile, control, [&](int64_t begin, int64_t count) {
    const ConstMatrixView<double> columns = rows.Block(0, begin, rows.rows(), count);
    MultiplyFirstTransposed(1, columns, rows.Block(0, 0, rows.rows(), begin), 1,
                            sum.view().Block(begin, 0, count, begin));
    SymmetricRankUpdateTransposed(1, columns, 1, sum.view().Block(begin, begin, count, count));
  });
}

template <typename T>
absl::Status RidgeMoments::Add(ConstMatrixView<T> rows, const RowLabels& known,
                               const TileControl& control) {
  const bool numbers = task_ == HeadTask::kNumbers;
  PHIMAP_CHECK(rows.cols() == features_);
  PHIMAP_CHECK(static_cast<int64_t>(numbers ? known.targets.size() : known.labels.size()) ==
               rows.rows());
  PHIMAP_RETURN_IF_ERROR(CheckTargetsFinite(known.targets));
  PHIMAP_RETURN_IF_ERROR(CheckRowWeights(known.weights));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const double weight = known.weights.empty() ? 1 : known.weights[i];
    if (weight == 0) continue;
    const int32_t y = numbers ? 0 : known.labels[i];
    PHIMAP_ASSIGN_OR_RETURN(Gram* const gram, GramFor(y, control));
    const T* row = rows.row(i);
    const double root = std::sqrt(weight);
    double* gathered = gram->gathered.row(gram->gathered_rows++);
    for (int64_t k = 0; k < features_; ++k) gathered[k] = root * static_cast<double>(row[k]);
    RowSums& sums = SumsOf(y);
    if (numbers && sums.rows == 0) shift_ = known.targets[i];
    ++sums.rows;
    sums.weight += weight;
    double* features = sums.features.data();
    for (int64_t k = 0; k < features_; ++k) features[k] += weight * static_cast<double>(row[k]);
    if (!numbers) continue;
    const double weighted = weight * (known.targets[i] - shift_);
    sums.targets += weighted;
    sums.squares += weighted * (known.targets[i] - shift_);
    double* products = sums.products.data();
    for (int64_t k = 0; k < features_; ++k) products[k] += weighted * static_cast<double>(row[k]);
  }
  return absl::OkStatus();
}

template absl::Status RidgeMoments::Add(ConstMatrixView<float>, const RowLabels&,
                                        const TileControl&);
template absl::Status RidgeMoments::Add(ConstMatrixView<double>, const RowLabels&,
                                        const TileControl&);

absl::Status RidgeMoments::Flush(const TileControl& control) {
  for (Gram& gram : grams_) PHIMAP_RETURN_IF_ERROR(gram.Flush(control));
  return absl::OkStatus();
}

void RidgeMoments::Merge(const RidgeMoments& other) {
  if (other.rows() == 0) return;
  if (rows() == 0) shift_ = other.shift_;
  const double moved = other.shift_ - shift_;
  for (size_t y = 0; y < other.sums_.size(); ++y) {
    const RowSums& from = other.sums_[y];
    RowSums& to = SumsOf(static_cast<int32_t>(y));
    to.rows += from.rows;
    to.weight += from.weight;
    AddScaled(1, from.features, to.features);
    if (task_ != HeadTask::kNumbers) continue;
    // The targets of `from` less this shift are its own less `moved` more.
    to.targets += from.targets + moved * from.weight;
    to.squares += from.squares + moved * (2 * from.targets + moved * from.weight);
    AddScaled(1, from.products, to.products);
    AddScaled(moved, from.features, to.products);
  }
  if (grams_.size() < other.grams_.size()) grams_.resize(other.grams_.size());
  for (size_t g = 0; g < other.grams_.size(); ++g) {
    PHIMAP_CHECK(grams_[g].gathered_rows == 0 && other.grams_[g].gathered_rows == 0);
    if (other.grams_[g].sum.empty()) continue;
    if (grams_[g].sum.empty()) grams_[g].sum = Matrix<double>(features_, features_);
    AddLowerTriangle(1, other.grams_[g].sum, grams_[g].sum.view());
  }
}

void RidgeMoments::Renumber(absl::Span<const int32_t> numbers, int32_t class_count) {
  std::vector<RowSums> sums = std::move(sums_);
  std::vector<Gram> grams = std::move(grams_);
  sums_.clear();
  grams_.clear();
  SumsOf(class_count - 1);
  for (size_t y = 0; y < sums.size(); ++y) sums_[numbers[y]] = std::move(sums[y]);
  if (!gram_of_each_class_) {
    grams_ = std::move(grams);
    return;
  }
  grams_.resize(static_cast<size_t>(class_count));
  for (size_t y = 0; y < grams.size(); ++y) grams_[numbers[y]] = std::move(grams[y]);
}

int64_t RidgeMoments::rows() const {
  int64_t rows = 0;
  for (const RowSums& sums : sums_) rows += sums.rows;
  return rows;
}

MatrixView<double> RidgeMoments::WeightedGram(absl::Span<const double> weights,
                                              Matrix<double>& scratch) {
  if (!gram_of_each_class_ && !grams_.empty()) {
    PHIMAP_CHECK(std::all_of(weights.begin(), weights.end(), [](double w) { return w == 1; }));
    return grams_[0].sum.view();
  }
  scratch = Matrix<double>(features_, features_);
  for (size_t y = 0; y < grams_.size(); ++y) {
    if (!grams_[y].sum.empty()) AddLowerTriangle(weights[y], grams_[y].sum, scratch.view());
  }
  return scratch.view();
}

}  // namespace phimap
