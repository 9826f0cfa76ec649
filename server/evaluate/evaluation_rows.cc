#include "server/evaluate/evaluation_rows.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
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

// Makes an error count its row from the start of the block; the engine counts from the start of the
// slice, which is row `first` of the block.
absl::Status WithRowOffset(const absl::Status& status, int64_t first) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  int64_t row = 0;
  if (!detail.has_value() || first == 0) return status;
  const auto found = detail->metadata.find("row");
  if (found == detail->metadata.end() || !absl::SimpleAtoi(found->second, &row)) return status;
  std::map<std::string, std::string> metadata = detail->metadata;
  metadata["row"] = absl::StrCat(first + row);
  const std::string field = absl::StrCat("rows[", first + row, "]");
  const size_t prefix = detail->field.empty() ? 0 : detail->field.size() + 2;
  return MakeError(status.code(), detail->reason, field, status.message().substr(prefix),
                   std::move(metadata), detail->retry_delay_ms);
}

}  // namespace

EvaluationRows::EvaluationRows(VersionHandle version, Keep keep)
    : version_(std::move(version)), keep_(keep) {}

int64_t EvaluationRows::columns() const {
  return keep_ == Keep::kRows ? version_.engine().input_columns()
                              : version_.engine().output_columns();
}

int64_t EvaluationRows::row_bytes() const {
  return static_cast<int64_t>(sizeof(double)) * (columns() + 2);
}

absl::Status EvaluationRows::Map(const ExamplesView& slice, MatrixView<double> out) {
  if (keep_ == Keep::kRows) {
    for (int64_t i = 0; i < slice.rows(); ++i) slice.CopyRow(i, out.row(i));
    return absl::OkStatus();
  }
  const Engine& engine = version_.engine();
  PHIMAP_RETURN_IF_ERROR(engine.serving_type() == FloatType::kFloat32
                             ? MapAs<float>(engine, slice, scratch_, out)
                             : MapAs<double>(engine, slice, scratch_, out));
  const Residual* const residual = version_.residual();
  const bool has_self = residual != nullptr &&
                        (!residual->is_remote() || slice.columns() == engine.input_columns() + 1);
  if (!has_self) return absl::OkStatus();
  const auto begin = self_kernel_.size();
  self_kernel_.resize(begin + slice.rows());
  rounding_.resize(begin + slice.rows());
  residual->Lengths(slice, self_kernel_.data() + begin, rounding_.data() + begin);
  if (!residual->is_remote()) return absl::OkStatus();
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
        absl::StatusCode::kInvalidArgument, "COLUMNS_MISMATCH", "columns",
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
