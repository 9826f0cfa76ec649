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

#endif  // PHIMAP_CLIENT_FILES_NPY_WRITER_H_
