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

namespace phimap::cli {

enum class NpyType {
  kFloat16,
  kFloat32,
  kFloat64,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64
};

// Parses a descr, for instance '<f4' with its quotes. Any other type is kInvalidArgument; the
// message gives the NumPy call that converts it.
absl::StatusOr<NpyType> ParseNpyType(absl::string_view descr);

int64_t StoredSizeBytes(NpyType type);

// Returns the smaller of float32 and float64 that holds every value of the type. For integers of 64
// bits returns float64, which holds them exactly only up to 2^53.
client::FloatType SentType(NpyType type);

// Converts the values of `stored` to type SentType, in `sent`. Returns the position of the first
// value that cannot be converted exactly, in which case `sent` is unspecified.
std::optional<int64_t> CastExactly(NpyType type, const std::string& stored, std::string& sent);

// Returns value number `place`, counted from 0, as text. REQUIRES: `type` is an integer type.
std::string IntegerText(NpyType type, const std::string& stored, int64_t place);

// Content of an array's header.
struct NpyHeader {
  NpyType type = NpyType::kFloat32;
  // Whether the values are stored column by column (Fortran order) instead of row by row.
  bool by_column = false;
  int64_t rows = 0;
  int32_t columns = 0;
};

// Parses the dictionary of a header, for instance {'descr': '<f4', 'fortran_order': False, 'shape':
// (3, 2), }. kInvalidArgument unless the array is two-dimensional and holds little-endian numbers;
// the message gives the NumPy call that converts it. Pure.
absl::StatusOr<NpyHeader> ParseNpyDictionary(absl::string_view text);

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

// Size of the header: a multiple of 64, as the format requires, with space for the longest shape.
inline constexpr int64_t kNpyHeaderSizeBytes = 128;

// Returns the header of a version 1.0 file.
std::string NpyHeaderBytes(client::FloatType type, int64_t rows, int32_t columns);

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
