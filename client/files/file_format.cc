#include "client/files/file_format.h"

#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/files/csv_writer.h"
#include "client/files/npy_file.h"
#include "client/files/output_file.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

namespace {

struct Extension {
  absl::string_view ending;
  FileFormat format;
};

constexpr Extension kExtensions[] = {
    {".csv", FileFormat::kCsv},           {".npy", FileFormat::kNpy},
    {".svmlight", FileFormat::kSvmlight}, {".libsvm", FileFormat::kSvmlight},
    {".svm", FileFormat::kSvmlight},      {".txt", FileFormat::kText}};

}  // namespace

absl::StatusOr<FileFormat> FormatOf(absl::string_view path, absl::string_view named,
                                    absl::string_view option) {
  if (named == "csv") return FileFormat::kCsv;
  if (named == "npy") return FileFormat::kNpy;
  if (named == "svmlight") return FileFormat::kSvmlight;
  if (named == "text") return FileFormat::kText;
  if (!named.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": expected csv, npy, svmlight or text, got '", named, "'"));
  }
  for (const Extension& extension : kExtensions) {
    if (absl::EndsWithIgnoreCase(path, extension.ending)) return extension.format;
  }
  return absl::InvalidArgumentError(absl::StrCat("the format of '", path,
                                                 "' cannot be told from its name; use ", option,
                                                 "=csv or ", option, "=npy"));
}

absl::StatusOr<FileFormat> OutputFormatOf(const std::string& path, absl::string_view named,
                                          FileFormat input) {
  const bool dense_input = input == FileFormat::kCsv || input == FileFormat::kNpy;
  const FileFormat by_input = dense_input ? input : FileFormat::kCsv;
  if (!named.empty()) return FormatOf(path, named, "--output-format");
  const absl::StatusOr<FileFormat> format = FormatOf(path, "", "--output-format");
  if (format.ok() && (*format == FileFormat::kCsv || *format == FileFormat::kNpy)) return format;
  const std::string extension = std::filesystem::path(path).extension().string();
  struct stat info;
  const bool special = stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  if (path == "-" || special || extension.size() <= 1) return by_input;
  return absl::InvalidArgumentError(
      absl::StrCat("--output=", path, ": features are written as .csv or .npy, not as ", extension,
                   "; rename the file, or use --output-format=csv or --output-format=npy"));
}

absl::StatusOr<std::unique_ptr<RowWriter>> OpenWriter(
    const std::string& path, FileFormat format, std::optional<int64_t> row_count,
    std::shared_ptr<PassthroughCells> passthrough) {
  if (format == FileFormat::kSvmlight || format == FileFormat::kText) {
    return absl::InvalidArgumentError(
        absl::StrCat("--output: features are dense rows; expected csv or npy for ", path));
  }
  if (format == FileFormat::kNpy && passthrough != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--passthrough: ", path,
                     " is npy, which holds only numbers; expected a CSV output: rename the file, "
                     "or use --output-format=csv"));
  }
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::Open(path));
  if (format == FileFormat::kCsv) {
    return std::make_unique<CsvWriter>(std::move(file), std::move(passthrough));
  }
  return NpyWriter::Open(std::move(file), row_count);
}

}  // namespace phimap::cli
