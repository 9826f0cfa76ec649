// Formats of files, and the writers of rows in them.
#ifndef PHIMAP_CLIENT_FILES_FILE_FORMAT_H_
#define PHIMAP_CLIENT_FILES_FILE_FORMAT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/row_source.h"

namespace phimap::cli {

class PassthroughCells;

// Writes blocks of rows of one width and type in one format. The file appears only when Finish
// succeeds, and is then complete.
//
// Thread-safety: one thread at a time.
class RowWriter {
 public:
  virtual ~RowWriter() = default;
  // REQUIRES: the block is not empty and has the width and type of the first block.
  virtual absl::Status Append(const client::RowBlock& block) = 0;
  // Call once, last.
  virtual absl::Status Finish() = 0;
};

// Formats of rows that are read.
enum class FileFormat { kCsv, kNpy, kSvmlight, kText };

// Formats of rows that are written.
enum class OutputFormat { kCsv, kNpy, kCopy };
absl::string_view NameOf(OutputFormat format);

// Returns the format of `path`: `named` ("csv", "npy", "svmlight" or "text") if it is given, else
// the format of the extension, in upper or lower case. "-" and unknown extensions are
// kInvalidArgument; the message says which `option` to give. Pure.
absl::StatusOr<FileFormat> FormatOf(absl::string_view path, absl::string_view named,
                                    absl::string_view option);

// Returns the format of features written to `path`. This is `named` ("csv", "npy" or "copy") if it
// is given, or else the format of the extension. For "-", devices, pipes and names without an
// extension, it is the format of the input rows, or csv if that is not a format of dense rows.
// kInvalidArgument for an unknown extension (o.parquet, o.npy.gz) and for a format that cannot hold
// features (o.svmlight). Looks at the file that `path` leads to and changes nothing.
absl::StatusOr<OutputFormat> OutputFormatOf(const std::string& path, absl::string_view named,
                                            FileFormat input);

// Opens a writer of dense rows. For `row_count` see NpyWriter, for `passthrough` see CsvWriter and
// CopyWriter. kInvalidArgument for npy with passthrough cells.
absl::StatusOr<std::unique_ptr<RowWriter>> OpenWriter(
    const std::string& path, OutputFormat format, std::optional<int64_t> row_count,
    std::shared_ptr<PassthroughCells> passthrough = nullptr);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_FILE_FORMAT_H_
