// NumPy .npy files: a reader of rows of numbers, and a writer of features.
#ifndef PHIMAP_CLIENT_FILES_NPY_FILE_H_
#define PHIMAP_CLIENT_FILES_NPY_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/row_source.h"
#include "client/files/file_format.h"
#include "client/files/input_file.h"
#include "client/files/output_file.h"
#include "proto/rows/npy_format.h"

namespace phimap::cli {

inline client::FloatType SentType(NpyType type) {
  return SentAsFloat32(type) ? client::FloatType::kFloat32 : client::FloatType::kFloat64;
}

// Reads format versions 1.0 and 2.0, block by block, as float32 if that holds every value of the
// file's type, else as float64. Errors are kInvalidArgument: for a value that is not finite or an
// integer that float64 does not hold exactly, with its row and column counted from 0 as in NumPy;
// for a file that is shorter or longer than its header states; and for Fortran order in a pipe or a
// compressed file, which can only be read from start to end. Memory: a block of rows, and 16 MiB
// for Fortran order.
//
// Thread-safety: as RowSource.
class NpyReader : public client::RowSource {
 public:
  // Reads the header.
  static absl::StatusOr<std::unique_ptr<NpyReader>> Open(std::unique_ptr<InputFile> file);

  int32_t columns() const override { return header_.columns; }
  // Type of the blocks.
  client::FloatType type() const { return SentType(header_.type); }
  const NpyHeader& header() const { return header_; }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override;
  // Reads the next rows, at most `max_rows`.
  absl::StatusOr<client::RowBlock> NextRows(int32_t max_rows);
  std::optional<int64_t> row_count() const override { return header_.rows; }
  bool CanRewind() const override { return file_->CanRewind(); }
  absl::Status Rewind() override;
  void Interrupt() override { file_->Interrupt(); }
  std::optional<double> share_read() const override { return file_->share_read(); }

 private:
  explicit NpyReader(std::unique_ptr<InputFile> file) : file_(std::move(file)) {}

  absl::Status ReadHeader();
  // Reads until `buffer` is full or the file ends. Returns the number of bytes.
  absl::StatusOr<size_t> ReadUpTo(char* buffer, size_t size);
  // Returns the next `rows` rows, row by row, with the values as they are stored.
  absl::StatusOr<std::string> ReadRows(int64_t rows);
  absl::StatusOr<std::string> ReadRowsByColumn(int64_t rows);
  // Reads the stripe of rows that begins with next_row_.
  absl::Status ReadStripe();
  absl::Status CutOff(size_t bytes) const;
  absl::Status Inexact(const std::string& stored, int64_t place) const;
  absl::Status CheckFinite(const client::RowBlock& block) const;
  absl::Status CheckAtEnd();
  absl::Status Error(absl::string_view message) const;

  const std::unique_ptr<InputFile> file_;
  NpyHeader header_;
  int64_t header_size_bytes_ = 0;
  int64_t next_row_ = 0;
  // A stripe of rows in Fortran order, column by column, and its position.
  std::string stripe_;
  int64_t stripe_begin_ = 0;
  int64_t stripe_rows_ = 0;
};

// Writes a two-dimensional array, little-endian f4 or f8, row by row.
//
// The header contains the number of rows. If the number is not known in advance, Finish rewrites
// the header. This needs a seekable file, so Open then refuses a pipe.
class NpyWriter : public RowWriter {
 public:
  static absl::StatusOr<std::unique_ptr<NpyWriter>> Open(std::unique_ptr<OutputFile> file,
                                                         std::optional<int64_t> row_count);
  // Continues a file that has `header` and already has `rows` rows.
  static std::unique_ptr<NpyWriter> Continue(std::unique_ptr<OutputFile> file,
                                             std::optional<int64_t> row_count,
                                             const NpyHeader& header, int64_t rows);

  absl::Status Append(const client::RowBlock& block) override;
  // kInternal if the number of rows differs from the `row_count` that was given to Open.
  absl::Status Finish() override;

 private:
  NpyWriter(std::unique_ptr<OutputFile> file, std::optional<int64_t> row_count)
      : file_(std::move(file)), row_count_(row_count) {}

  const std::unique_ptr<OutputFile> file_;
  const std::optional<int64_t> row_count_;
  client::FloatType type_ = client::FloatType::kFloat32;
  int32_t columns_ = 0;
  int64_t rows_ = 0;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_NPY_FILE_H_
