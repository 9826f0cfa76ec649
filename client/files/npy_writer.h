// Features as a NumPy .npy file.
#ifndef PHIMAP_CLIENT_FILES_NPY_WRITER_H_
#define PHIMAP_CLIENT_FILES_NPY_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/files/npy_reader.h"
#include "client/files/output_file.h"
#include "client/files/row_writer.h"

namespace phimap::cli {

// A multiple of 64, as the format asks; room for the longest shape.
inline constexpr int64_t kNpyHeaderSizeBytes = 128;

// The header of a version 1.0 file.
std::string NpyHeaderBytes(client::FloatType type, int64_t rows, int32_t columns);

// A two-dimensional array, little-endian f4 or f8, row by row.
//
// The header holds the number of rows. If it is not known before the rows are, the header is
// written again by Finish, which needs a file that can go back: Open refuses a pipe then.
class NpyWriter : public RowWriter {
 public:
  static absl::StatusOr<std::unique_ptr<NpyWriter>> Open(std::unique_ptr<OutputFile> file,
                                                         std::optional<int64_t> row_count);
  // Continues a file that holds a header and so many rows, after these.
  static std::unique_ptr<NpyWriter> Continue(std::unique_ptr<OutputFile> file,
                                             std::optional<int64_t> row_count,
                                             const NpyHeader& header, int64_t rows);

  absl::Status Append(const client::RowBlock& block) override;
  // kInternal if the number of rows or columns differs from what Open was given.
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

#endif  // PHIMAP_CLIENT_FILES_NPY_WRITER_H_
