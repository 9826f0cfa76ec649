#include "server/kernel/kernel_examples.h"

#include <cstring>
#include <utility>
#include <vector>

#include "exchange/sha256.h"
#include "phimap/v1/examples.pb.h"

namespace phimap {
namespace {

// Room for `rows` more.
char* Extend(int64_t rows, int64_t columns, v1::Examples& examples) {
  v1::DenseRows& dense = *examples.mutable_dense();
  std::string& bytes = *dense.mutable_float64_le();
  const size_t before = bytes.size();
  bytes.resize(before + static_cast<size_t>(rows * columns) * sizeof(double));
  dense.set_rows(dense.rows() + static_cast<int>(rows));
  dense.set_columns(static_cast<int>(columns));
  return bytes.data() + before;
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

std::shared_ptr<const KernelExamples> KernelExamples::Of(const ExternalFeatures& block,
                                                         int64_t columns) {
  auto message = std::make_unique<v1::Examples>();
  for (const std::string& example : block.examples) {
    switch (block.kind) {
      case ExternalFeatures::ExampleKind::kDense:
        std::memcpy(Extend(1, columns, *message), example.data(), example.size());
        break;
      case ExternalFeatures::ExampleKind::kBytes:
        message->mutable_bytes()->add_values(example);
        break;
      default:
        message->mutable_text()->add_values(example);
    }
  }
  return std::make_shared<const KernelExamples>(std::move(message),
                                                static_cast<int64_t>(block.examples.size()));
}

std::shared_ptr<const KernelExamples> KernelExamples::Of(ConstMatrixView<double> rows) {
  auto message = std::make_unique<v1::Examples>();
  AppendRows(rows, *message);
  return std::make_shared<const KernelExamples>(std::move(message), rows.rows());
}

void AppendRows(ConstMatrixView<double> rows, v1::Examples& examples) {
  char* to = Extend(rows.rows(), rows.cols(), examples);
  const size_t row_bytes = static_cast<size_t>(rows.cols()) * sizeof(double);
  for (int64_t i = 0; i < rows.rows(); ++i, to += row_bytes) {
    std::memcpy(to, rows.row(i), row_bytes);
  }
}

void AppendRows(const ExamplesView& rows, v1::Examples& examples) {
  const int64_t columns = rows.columns();
  char* const to = Extend(rows.rows(), columns, examples);
  const RowsView* const dense = rows.dense();
  if (dense != nullptr && dense->type == FloatType::kFloat64) {
    std::memcpy(to, dense->data, static_cast<size_t>(dense->rows * dense->RowBytes()));
    return;
  }
  std::vector<double> row(static_cast<size_t>(columns));
  const size_t row_bytes = row.size() * sizeof(double);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    rows.CopyRow(i, row.data());
    std::memcpy(to + static_cast<size_t>(i) * row_bytes, row.data(), row_bytes);
  }
}

}  // namespace phimap
