#include "client/files/npy_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

// Size of a stripe, which is a number of consecutive rows of a file in Fortran order. They are read
// together, in one long run for each column.
constexpr int64_t kStripeSizeBytes = 16 << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<NpyReader>> NpyReader::Open(std::unique_ptr<InputFile> file) {
  std::unique_ptr<NpyReader> reader(new NpyReader(std::move(file)));
  PHIMAP_RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

absl::Status NpyReader::ReadHeader() {
  char start[kNpyStartSizeBytes];
  PHIMAP_ASSIGN_OR_RETURN(size_t size, ReadUpTo(start, 8));
  const size_t width = size == 8 && start[6] == 1 ? 2 : 4;
  PHIMAP_ASSIGN_OR_RETURN(const size_t more, ReadUpTo(start + size, size == 8 ? width : 0));
  const absl::StatusOr<NpyStart> read = ReadNpyStart(absl::string_view(start, size + more));
  if (!read.ok()) return Error(read.status().message());
  std::string dictionary(read->dictionary, '\0');
  PHIMAP_ASSIGN_OR_RETURN(size, ReadUpTo(dictionary.data(), dictionary.size()));
  if (size < dictionary.size()) return Error("its header is cut off");
  const absl::StatusOr<NpyHeader> header = ParseNpyDictionary(dictionary);
  if (!header.ok()) return Error(header.status().message());
  header_ = *header;
  header_size_bytes_ = static_cast<int64_t>(read->start + read->dictionary);
  next_row_ = 0;
  stripe_begin_ = stripe_rows_ = 0;
  if (!header_.by_column || file_->CanSeek()) return absl::OkStatus();
  return Error(
      "its values are stored column by column (Fortran order), but a compressed file can only be "
      "read from start to end; convert with numpy.ascontiguousarray(array)");
}

absl::StatusOr<size_t> NpyReader::ReadUpTo(char* buffer, size_t size) {
  size_t done = 0;
  while (done < size) {
    PHIMAP_ASSIGN_OR_RETURN(const size_t more, file_->Read(buffer + done, size - done));
    if (more == 0) break;
    done += more;
  }
  return done;
}

absl::StatusOr<client::ExampleBlock> NpyReader::Next(const client::BlockLimits& limits) {
  return NextRows(limits.RowsOf(header_.columns * client::ValueSizeBytes(type())));
}

absl::StatusOr<client::RowBlock> NpyReader::NextRows(int32_t max_rows) {
  const int64_t rows = std::min<int64_t>(max_rows, header_.rows - next_row_);
  if (rows == 0) {
    PHIMAP_RETURN_IF_ERROR(CheckAtEnd());
    return client::RowBlock{};
  }
  client::RowBlock block{
      .type = type(), .rows = static_cast<int32_t>(rows), .columns = header_.columns};
  PHIMAP_ASSIGN_OR_RETURN(std::string stored,
                          header_.by_column ? ReadRowsByColumn(rows) : ReadRows(rows));
  if (header_.type == NpyType::kFloat32 || header_.type == NpyType::kFloat64) {
    block.values_le = std::move(stored);
  } else {
    const std::optional<int64_t> inexact = CastExactly(header_.type, stored, block.values_le);
    if (inexact.has_value()) return Inexact(stored, *inexact);
  }
  PHIMAP_RETURN_IF_ERROR(CheckFinite(block));
  next_row_ += rows;
  return block;
}

absl::StatusOr<std::string> NpyReader::ReadRows(int64_t rows) {
  std::string stored(rows * header_.columns * StoredSizeBytes(header_.type), '\0');
  PHIMAP_ASSIGN_OR_RETURN(const size_t size, ReadUpTo(stored.data(), stored.size()));
  if (size < stored.size()) return CutOff(size);
  return stored;
}

absl::Status NpyReader::CutOff(size_t bytes) const {
  const size_t row_bytes = header_.columns * StoredSizeBytes(header_.type);
  return Error(
      absl::StrCat("its header says ", CountOf(header_.rows, "row"), ", but the file ends in row ",
                   next_row_ + static_cast<int64_t>(bytes / row_bytes), " (counted from 0)"));
}

absl::StatusOr<std::string> NpyReader::ReadRowsByColumn(int64_t rows) {
  const int64_t value_bytes = StoredSizeBytes(header_.type);
  std::string stored(rows * header_.columns * value_bytes, '\0');
  for (int64_t done = 0; done < rows;) {
    const int64_t row = next_row_ + done;
    if (row >= stripe_begin_ + stripe_rows_) {
      stripe_begin_ = row;
      PHIMAP_RETURN_IF_ERROR(ReadStripe());
    }
    const int64_t count = std::min(rows - done, stripe_begin_ + stripe_rows_ - row);
    for (int64_t column = 0; column < header_.columns; ++column) {
      const char* from =
          stripe_.data() + (column * stripe_rows_ + row - stripe_begin_) * value_bytes;
      char* to = stored.data() + (done * header_.columns + column) * value_bytes;
      for (int64_t i = 0; i < count; ++i, from += value_bytes) {
        std::memcpy(to + i * header_.columns * value_bytes, from, value_bytes);
      }
    }
    done += count;
  }
  return stored;
}

absl::Status NpyReader::ReadStripe() {
  const int64_t value_bytes = StoredSizeBytes(header_.type);
  const int64_t row_bytes = header_.columns * value_bytes;
  stripe_rows_ = std::clamp<int64_t>(kStripeSizeBytes / row_bytes, 1, header_.rows - stripe_begin_);
  stripe_.resize(stripe_rows_ * row_bytes);
  const size_t run_bytes = stripe_rows_ * value_bytes;
  for (int64_t column = 0; column < header_.columns; ++column) {
    const int64_t offset =
        header_size_bytes_ + (column * header_.rows + stripe_begin_) * value_bytes;
    PHIMAP_ASSIGN_OR_RETURN(const size_t size,
                            file_->ReadAt(offset, stripe_.data() + column * run_bytes, run_bytes));
    if (size == run_bytes) continue;
    return Error(absl::StrCat("its header says ", CountOf(header_.columns, "column"), " of ",
                              header_.rows, " values, but the file ends in column ", column,
                              " (counted from 0)"));
  }
  return absl::OkStatus();
}

absl::Status NpyReader::Inexact(const std::string& stored, int64_t place) const {
  return Error(
      absl::StrCat("the integer ", IntegerText(header_.type, stored, place), " at array[",
                   next_row_ + place / header_.columns, ", ", place % header_.columns,
                   "] cannot be represented exactly in float64; if rounding is acceptable, "
                   "convert with array.astype('<f8'); if this column holds ids, leave it "
                   "out of the input"));
}

absl::Status NpyReader::CheckFinite(const client::RowBlock& block) const {
  for (int32_t row = 0; row < block.rows; ++row) {
    for (int32_t column = 0; column < block.columns; ++column) {
      const double value = block.At(row, column);
      if (std::isfinite(value)) continue;
      return Error(absl::StrCat("expected finite numbers, got ", value, " at array[",
                                next_row_ + row, ", ", column, "]"));
    }
  }
  return absl::OkStatus();
}

absl::Status NpyReader::CheckAtEnd() {
  char extra;
  const int64_t end =
      header_size_bytes_ + header_.rows * header_.columns * StoredSizeBytes(header_.type);
  PHIMAP_ASSIGN_OR_RETURN(const size_t size, header_.by_column ? file_->ReadAt(end, &extra, 1)
                                                               : file_->Read(&extra, 1));
  if (size == 0) return absl::OkStatus();
  return Error(absl::StrCat("its header says ", CountOf(header_.rows, "row"),
                            ", but more bytes follow them"));
}

absl::Status NpyReader::Rewind() {
  PHIMAP_RETURN_IF_ERROR(file_->Rewind());
  return ReadHeader();
}

absl::Status NpyReader::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(file_->name(), ": ", message));
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
    PHIMAP_RETURN_IF_ERROR(file_->Append(
        NpyHeaderBytes(type_ == client::FloatType::kFloat32, row_count_.value_or(0), columns_)));
  }
  rows_ += block.rows;
  return file_->Append(block.values_le);
}

absl::Status NpyWriter::Finish() {
  if (row_count_.has_value() && rows_ != *row_count_) {
    return absl::InternalError(
        absl::StrCat("expected ", CountOf(*row_count_, "row"), " of features, got ", rows_));
  }
  if (!row_count_.has_value() && columns_ > 0) {
    PHIMAP_RETURN_IF_ERROR(
        file_->WriteAtStart(NpyHeaderBytes(type_ == client::FloatType::kFloat32, rows_, columns_)));
  }
  return file_->Commit();
}

}  // namespace phimap::cli
