#include "client/files/npy_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

constexpr size_t kPrefixSizeBytes = 10;

}  // namespace

std::string NpyHeaderBytes(client::FloatType type, int64_t rows, int32_t columns) {
  const char* descr = type == client::FloatType::kFloat32 ? "<f4" : "<f8";
  std::string header("\x93NUMPY\x01\x00", 8);
  header.push_back(static_cast<char>(kNpyHeaderSizeBytes - kPrefixSizeBytes));
  header.push_back('\0');
  absl::StrAppend(&header, "{'descr': '", descr, "', 'fortran_order': False, 'shape': (", rows,
                  ", ", columns, "), }");
  PHIMAP_CHECK(header.size() < static_cast<size_t>(kNpyHeaderSizeBytes));
  header.resize(kNpyHeaderSizeBytes - 1, ' ');
  header.push_back('\n');
  return header;
}

absl::StatusOr<std::unique_ptr<NpyWriter>> NpyWriter::Open(std::unique_ptr<OutputFile> file,
                                                           std::optional<int64_t> row_count) {
  if (!row_count.has_value() && !file->seekable()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write npy to ", file->name(),
                     ": the header states the number of rows, which is known only at the end, and "
                     "a pipe cannot go back; write to a file, or use --output-format=csv"));
  }
  return std::unique_ptr<NpyWriter>(new NpyWriter(std::move(file), row_count));
}

std::unique_ptr<NpyWriter> NpyWriter::Continue(std::unique_ptr<OutputFile> file,
                                               std::optional<int64_t> row_count,
                                               const NpyHeader& header, int64_t rows) {
  std::unique_ptr<NpyWriter> writer(new NpyWriter(std::move(file), row_count));
  writer->type_ = SentType(header.type);
  writer->columns_ = header.columns;
  writer->rows_ = rows;
  return writer;
}

absl::Status NpyWriter::Append(const client::RowBlock& block) {
  if (columns_ == 0) {
    type_ = block.type;
    columns_ = block.columns;
    PHIMAP_RETURN_IF_ERROR(file_->Append(NpyHeaderBytes(type_, row_count_.value_or(0), columns_)));
  }
  rows_ += block.rows;
  return file_->Append(block.values_le);
}

absl::Status NpyWriter::Finish() {
  if (row_count_.has_value() && rows_ != *row_count_) {
    return absl::InternalError(
        absl::StrCat("expected ", *row_count_, " rows of features, got ", rows_));
  }
  if (!row_count_.has_value() && columns_ > 0) {
    PHIMAP_RETURN_IF_ERROR(file_->WriteAtStart(NpyHeaderBytes(type_, rows_, columns_)));
  }
  return file_->Commit();
}

}  // namespace phimap::cli
