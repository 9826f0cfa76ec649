// Format of a file, and writers by format.
#ifndef PHIMAP_CLIENT_FILES_FILE_FORMAT_H_
#define PHIMAP_CLIENT_FILES_FILE_FORMAT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/files/passthrough_cells.h"
#include "client/files/row_writer.h"

namespace phimap::cli {

enum class FileFormat { kCsv, kNpy, kSvmlight, kText };

// The format of `path`: `named` ("csv", "npy", "svmlight" or "text") if it is given, else by the
// extension in any case of letters. "-" has no extension: kInvalidArgument, saying which `option`
// to give; so has another extension. Pure.
absl::StatusOr<FileFormat> FormatOf(absl::string_view path, absl::string_view named,
                                    absl::string_view option);

// The format of features written to `path`: `named` ("csv" or "npy") if it is given, else by the
// extension, else that of the rows they were computed from, or csv where that is no format of dense
// rows. "-", devices, pipes and names without an extension have none. kInvalidArgument for an
// extension of no known format (o.parquet, o.npy.gz) or of one that features have not (o.svmlight).
// Checks the file that `path` leads to and changes nothing.
absl::StatusOr<FileFormat> OutputFormatOf(const std::string& path, absl::string_view named,
                                          FileFormat input);

// A writer of dense rows; `row_count` as for NpyWriter, `passthrough` as for CsvWriter.
// kInvalidArgument for another format, and for npy with cells that are passed through.
absl::StatusOr<std::unique_ptr<RowWriter>> OpenWriter(
    const std::string& path, FileFormat format, std::optional<int64_t> row_count,
    std::shared_ptr<PassthroughCells> passthrough = nullptr);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_FILE_FORMAT_H_
