#include "client/cli/file_format.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/csv_reader.h"
#include "client/cli/csv_writer.h"
#include "client/cli/input_file.h"
#include "client/cli/npy_reader.h"
#include "client/cli/npy_writer.h"
#include "client/cli/output_file.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

absl::StatusOr<FileFormat> FormatOf(absl::string_view path, absl::string_view named,
                                    absl::string_view option) {
  if (named == "csv") return FileFormat::kCsv;
  if (named == "npy") return FileFormat::kNpy;
  if (!named.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": expected csv or npy, got '", named, "'"));
  }
  if (absl::EndsWithIgnoreCase(path, ".csv")) return FileFormat::kCsv;
  if (absl::EndsWithIgnoreCase(path, ".npy")) return FileFormat::kNpy;
  return absl::InvalidArgumentError(absl::StrCat("the format of '", path,
                                                 "' is not known from its name; say ", option,
                                                 "=csv or ", option, "=npy"));
}

absl::StatusOr<std::unique_ptr<client::RowSource>> OpenRows(const std::string& path,
                                                            FileFormat format,
                                                            const std::string& label) {
  if (format == FileFormat::kNpy && !label.empty()) {
    return absl::InvalidArgumentError(
        "--label names a column of a CSV file; the columns of npy have no names");
  }
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, InputFile::Open(path));
  if (format == FileFormat::kCsv) return CsvReader::Open(std::move(file), label);
  return NpyReader::Open(std::move(file));
}

absl::StatusOr<std::unique_ptr<RowWriter>> OpenWriter(const std::string& path, FileFormat format,
                                                      std::optional<int64_t> row_count) {
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::Open(path));
  if (format == FileFormat::kCsv) return std::make_unique<CsvWriter>(std::move(file));
  return NpyWriter::Open(std::move(file), row_count);
}

}  // namespace phimap::cli
