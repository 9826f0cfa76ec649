#include "client/files/whole_rows.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/files/input_file.h"
#include "client/files/npy_writer.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

constexpr size_t kReadSizeBytes = 1 << 20;

// Counts the line ends. Cells of features contain none, so each line end completes the header or a
// row.
absl::StatusOr<WholeRows> FindWholeLines(InputFile& file) {
  WholeRows whole{.rows = -1};
  std::vector<char> buffer(kReadSizeBytes);
  int64_t offset = 0;
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const size_t size, file.Read(buffer.data(), buffer.size()));
    if (size == 0) break;
    const char* const end = buffer.data() + size;
    for (const char* next = buffer.data();
         (next = static_cast<const char*>(std::memchr(next, '\n', end - next))) != nullptr;) {
      ++next;
      ++whole.rows;
      whole.end = offset + (next - buffer.data());
      if (next == end) break;
    }
    offset += static_cast<int64_t>(size);
  }
  whole.rows = std::max<int64_t>(whole.rows, 0);
  return whole;
}

}  // namespace

absl::StatusOr<WholeRows> FindWholeRows(const std::string& path, FileFormat format) {
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<InputFile> file, InputFile::Open(path));
  if (format == FileFormat::kCsv) return FindWholeLines(*file);
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (error || size < kNpyHeaderSizeBytes) return WholeRows{};
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<NpyReader> reader,
                          NpyReader::Open(std::move(file)));
  WholeRows whole{.npy = reader->header()};
  const int64_t row_bytes = whole.npy.columns * StoredSizeBytes(whole.npy.type);
  whole.rows = (size - kNpyHeaderSizeBytes) / row_bytes;
  whole.end = kNpyHeaderSizeBytes + whole.rows * row_bytes;
  return whole;
}

}  // namespace phimap::cli
