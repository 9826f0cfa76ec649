// Rows of numbers from a NumPy .npy file.
#ifndef PHIMAP_CLIENT_CLI_NPY_READER_H_
#define PHIMAP_CLIENT_CLI_NPY_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/input_file.h"
#include "client/cpp/row_source.h"

namespace phimap::cli {

// What the header of an array says.
struct NpyHeader {
  client::FloatType type = client::FloatType::kFloat32;
  int64_t rows = 0;
  int32_t columns = 0;
};

// Parses the dictionary of a header, for instance {'descr': '<f4', 'fortran_order': False, 'shape':
// (3, 2), }. An array that is not two-dimensional, little-endian, row by row (C order) and of f4 or
// f8 is kInvalidArgument, with the NumPy call that makes it so. Pure.
absl::StatusOr<NpyHeader> ParseNpyDictionary(absl::string_view text);

// Reads format versions 1.0 and 2.0, block by block. A value that is not finite is kInvalidArgument
// with its row and column, counted from 0 as in NumPy; so is a file that is shorter or longer than
// its header says.
//
// Thread-safety: as RowSource.
class NpyReader : public client::RowSource {
 public:
  // Reads the header.
  static absl::StatusOr<std::unique_ptr<NpyReader>> Open(std::unique_ptr<InputFile> file);

  int32_t columns() const override { return header_.columns; }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override;
  // The same, of rows alone.
  absl::StatusOr<client::RowBlock> NextRows(int32_t max_rows);
  std::optional<int64_t> row_count() const override { return header_.rows; }
  bool CanRewind() const override { return file_->CanRewind(); }
  absl::Status Rewind() override;
  void Interrupt() override { file_->Interrupt(); }

 private:
  explicit NpyReader(std::unique_ptr<InputFile> file) : file_(std::move(file)) {}

  absl::Status ReadHeader();
  // Reads until `buffer` is full or the file ends; how many bytes were read.
  absl::StatusOr<size_t> ReadUpTo(char* buffer, size_t size);
  absl::Status CheckFinite(const client::RowBlock& block) const;
  absl::Status CheckAtEnd();
  absl::Status Error(absl::string_view message) const;

  const std::unique_ptr<InputFile> file_;
  NpyHeader header_;
  int64_t next_row_ = 0;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_NPY_READER_H_
