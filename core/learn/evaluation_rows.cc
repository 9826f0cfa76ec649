#include "core/learn/evaluation_rows.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Number of rows that are mapped between two checkpoints.
constexpr int64_t kSliceRows = 256;

template <typename T>
absl::Status MapAs(const Engine& engine, const ExamplesView& slice, EngineScratch& scratch,
                   MatrixView<double> out) {
  Matrix<T> features = Matrix<T>::Uninit(slice.rows(), engine.output_columns());
  TransformPart part{slice, features.data(), absl::OkStatus()};
  engine.Transform(absl::MakeSpan(&part, 1), scratch);
  PHIMAP_RETURN_IF_ERROR(part.status);
  for (int64_t i = 0; i < slice.rows(); ++i) {
    std::copy_n(features.row(i), features.cols(), out.row(i));
  }
  return absl::OkStatus();
}

}  // namespace

EvaluationRows::EvaluationRows(const Engine& engine, const Residual* residual, Keep keep)
    : engine_(engine), residual_(residual), keep_(keep) {}

int64_t EvaluationRows::columns() const {
  return keep_ == Keep::kRows ? engine_.input_columns() : engine_.output_columns();
}

int64_t EvaluationRows::row_bytes() const {
  return static_cast<int64_t>(sizeof(double)) * (columns() + 2);
}

absl::Status EvaluationRows::Map(const ExamplesView& slice, MatrixView<double> out) {
  if (keep_ == Keep::kRows) {
    for (int64_t i = 0; i < slice.rows(); ++i) slice.CopyRow(i, out.row(i));
    return absl::OkStatus();
  }
  PHIMAP_RETURN_IF_ERROR(engine_.serving_type() == FloatType::kFloat32
                             ? MapAs<float>(engine_, slice, scratch_, out)
                             : MapAs<double>(engine_, slice, scratch_, out));
  const bool has_self = residual_ != nullptr &&
                        (!residual_->is_remote() || slice.columns() == engine_.input_columns() + 1);
  if (!has_self) return absl::OkStatus();
  const auto begin = self_kernel_.size();
  self_kernel_.resize(begin + slice.rows());
  rounding_.resize(begin + slice.rows());
  residual_->Lengths(slice, self_kernel_.data() + begin, rounding_.data() + begin);
  if (!residual_->is_remote()) return absl::OkStatus();
  // A received K(x, x) may be smaller than the squared length of the features. The larger of the
  // two is used, so that this cannot make a margin larger than it is.
  for (int64_t i = 0; i < out.rows(); ++i) {
    double& self = self_kernel_[begin + static_cast<size_t>(i)];
    self = std::max(self, std::inner_product(out.row(i), out.row(i) + out.cols(), out.row(i), 0.0));
  }
  return absl::OkStatus();
}

absl::Status EvaluationRows::Add(const ExamplesView& block, Checkpoint checkpoint) {
  if (!block_columns_.has_value()) block_columns_ = block.columns();
  if (block.columns() != *block_columns_) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kColumnsMismatch, "columns",
        absl::StrCat("expected ", *block_columns_, " as in the first block, got ", block.columns()),
        {{"expected", absl::StrCat(*block_columns_)}, {"actual", absl::StrCat(block.columns())}});
  }
  PHIMAP_RETURN_IF_ERROR(CheckExamples(block));
  Matrix<double> kept = Matrix<double>::Uninit(block.rows(), columns());
  for (int64_t first = 0; first < block.rows(); first += kSliceRows) {
    PHIMAP_RETURN_IF_ERROR(checkpoint());
    const int64_t count = std::min(kSliceRows, block.rows() - first);
    const absl::Status mapped = Map(block.Slice(first, count), kept.view().Rows(first, count));
    if (!mapped.ok()) return WithRowOffset(mapped, first);
  }
  rows_ += block.rows();
  blocks_.push_back(std::move(kept));
  return absl::OkStatus();
}

void EvaluationRows::Drop() {
  blocks_ = std::vector<Matrix<double>>();
  self_kernel_ = std::vector<double>();
  rounding_ = std::vector<double>();
  rows_ = 0;
}

Matrix<double> EvaluationRows::TakeRows() {
  // Pages of a new matrix take no memory until they are written, so each block is freed as soon as
  // it has been copied.
  Matrix<double> all = Matrix<double>::Uninit(rows_, columns());
  int64_t next = 0;
  for (Matrix<double>& block : blocks_) {
    std::copy_n(block.data(), block.size(), all.row(next));
    next += block.rows();
    block = Matrix<double>();
  }
  blocks_.clear();
  rows_ = 0;
  return all;
}

}  // namespace phimap
