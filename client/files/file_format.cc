#include "client/files/file_format.h"

#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/files/copy_writer.h"
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

absl::string_view NameOf(OutputFormat format) {
  switch (format) {
    case OutputFormat::kCsv:
      return "csv";
    case OutputFormat::kNpy:
      return "npy";
    case OutputFormat::kCopy:
      break;
  }
  return "copy";
}

absl::StatusOr<OutputFormat> OutputFormatOf(const std::string& path, absl::string_view named,
                                            FileFormat input) {
  for (const OutputFormat format : {OutputFormat::kCsv, OutputFormat::kNpy, OutputFormat::kCopy}) {
    const bool by_name = named == NameOf(format);
    const bool by_extension =
        named.empty() && absl::EndsWithIgnoreCase(path, absl::StrCat(".", NameOf(format)));
    if (by_name || by_extension) return format;
  }
  if (!named.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--output-format: expected csv, npy or copy, got '", named, "'"));
  }
  const std::string extension = std::filesystem::path(path).extension().string();
  struct stat info;
  const bool special = stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  if (path == "-" || special || extension.size() <= 1) {
    return input == FileFormat::kNpy ? OutputFormat::kNpy : OutputFormat::kCsv;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--output=", path,
                   ": features are written as .csv or .npy, or as .copy for PostgreSQL, not "
                   "as ",
                   extension, "; rename the file, or use --output-format=csv, npy or copy"));
}

absl::StatusOr<std::unique_ptr<RowWriter>> OpenWriter(
    const std::string& path, OutputFormat format, std::optional<int64_t> row_count,
    std::shared_ptr<PassthroughCells> passthrough) {
  if (format == OutputFormat::kNpy && passthrough != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--passthrough: ", path,
                     " is npy, which holds only numbers; expected a CSV output: rename the file, "
                     "or use --output-format=csv"));
  }
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, OutputFile::Open(path));
  switch (format) {
    case OutputFormat::kCsv:
      return std::make_unique<CsvWriter>(std::move(file), std::move(passthrough));
    case OutputFormat::kCopy:
      return std::make_unique<CopyWriter>(std::move(file), std::move(passthrough));
    case OutputFormat::kNpy:
      break;
  }
  return NpyWriter::Open(std::move(file), row_count);
}

}  // namespace phimap::cli
