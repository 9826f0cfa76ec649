#include "server/kernel_client/kernel_examples.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/digest/sha256.h"
#include "core/plan/example_block.h"
#include "core/status/check.h"
#include "phimap/v1/examples.pb.h"

namespace phimap {
namespace {

template <typename T>
void AppendNumber(T number, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AppendDense(const ExamplesView& rows, v1::DenseRows& to) {
  std::string& bytes = *to.mutable_float64_le();
  size_t at = bytes.size();
  const auto row_bytes = static_cast<size_t>(rows.columns()) * sizeof(double);
  bytes.resize(at + static_cast<size_t>(rows.rows()) * row_bytes);
  to.set_rows(to.rows() + static_cast<int>(rows.rows()));
  to.set_columns(static_cast<int>(rows.columns()));
  const RowsView* const dense = rows.dense();
  if (dense != nullptr && dense->type == FloatType::kFloat64) {
    std::memcpy(bytes.data() + at, dense->data,
                static_cast<size_t>(dense->rows * dense->RowBytes()));
    return;
  }
  std::vector<double> row(static_cast<size_t>(rows.columns()));
  for (int64_t i = 0; i < rows.rows(); ++i, at += row_bytes) {
    rows.CopyRow(i, row.data());
    std::memcpy(bytes.data() + at, row.data(), row_bytes);
  }
}

void AppendEntry(int32_t column, double value, v1::SparseRows& to) {
  AppendNumber(column, *to.mutable_column_indices_le());
  AppendNumber(value, *to.mutable_float64_le());
}

void AppendSparse(const ExamplesView& rows, v1::SparseRows& to) {
  std::string& offsets = *to.mutable_row_offsets_le();
  if (offsets.empty()) AppendNumber(int64_t{0}, offsets);
  to.mutable_float64_le();  // set even if no row has an entry
  to.set_rows(to.rows() + static_cast<int>(rows.rows()));
  to.set_columns(static_cast<int>(rows.columns()));
  const SparseRowsView* const sparse = rows.sparse();
  std::vector<double> row(sparse == nullptr ? static_cast<size_t>(rows.columns()) : 0);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    if (sparse != nullptr) {
      for (int64_t e = sparse->offset(i); e < sparse->offset(i + 1); ++e) {
        AppendEntry(sparse->column(e), sparse->value(e), to);
      }
    } else {
      rows.CopyRow(i, row.data());
      for (size_t j = 0; j < row.size(); ++j) {
        if (row[j] != 0) AppendEntry(static_cast<int32_t>(j), row[j], to);
      }
    }
    AppendNumber(static_cast<int64_t>(to.float64_le().size() / sizeof(double)), offsets);
  }
}

}  // namespace

KernelExamples::KernelExamples(std::unique_ptr<const v1::Examples> message, int64_t count)
    : message_(std::move(message)), count_(count) {
  const std::string bytes = message_->SerializeAsString();
  bytes_ = static_cast<int64_t>(bytes.size());
  Sha256 hash;
  hash.Update(bytes);
  digest_ = hash.Hex();
}

KernelExamples::~KernelExamples() = default;

std::shared_ptr<const KernelExamples> KernelExamples::Of(const RemoteFeatures& block,
                                                         int64_t columns) {
  ExampleBlock examples(KindOf(block.kind), columns);
  for (const std::string& example : block.examples) examples.AddBytes(example);
  return Of(examples.view());
}

std::shared_ptr<const KernelExamples> KernelExamples::Of(const ExamplesView& examples) {
  auto message = std::make_unique<v1::Examples>();
  AppendExamples(examples, examples.kind(), *message);
  return std::make_shared<const KernelExamples>(std::move(message), examples.rows());
}

void AppendExamples(const ExamplesView& examples, ExampleKind as, v1::Examples& to) {
  PHIMAP_CHECK(IsString(as) == IsString(examples.kind()));
  switch (as) {
    case ExampleKind::kDense:
      return AppendDense(examples, *to.mutable_dense());
    case ExampleKind::kSparse:
      return AppendSparse(examples, *to.mutable_sparse());
    case ExampleKind::kBytes:
      for (int64_t i = 0; i < examples.rows(); ++i) {
        to.mutable_bytes()->add_values((*examples.strings())[i]);
      }
      return;
    case ExampleKind::kText:
      PHIMAP_CHECK(examples.kind() == ExampleKind::kText);
      for (int64_t i = 0; i < examples.rows(); ++i) {
        to.mutable_text()->add_values((*examples.strings())[i]);
      }
  }
}

int64_t AppendedBytes(const ExamplesView& examples, ExampleKind as) {
  constexpr int64_t kNumber = sizeof(double);
  constexpr int64_t kEntry = sizeof(double) + sizeof(int32_t);
  // Bytes per string besides its content: a tag and a length.
  constexpr int64_t kFrame = 5;
  const int64_t rows = examples.rows();
  if (IsString(as)) return examples.bytes() + kFrame * rows;
  const int64_t numbers = rows * examples.columns();
  if (as == ExampleKind::kDense) return kNumber * numbers;
  const int64_t entries = examples.sparse() != nullptr ? examples.sparse()->entries() : numbers;
  return kEntry * entries + kNumber * (rows + 1);
}

}  // namespace phimap
