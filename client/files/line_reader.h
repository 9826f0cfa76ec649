// A text file line by line.
#ifndef PHIMAP_CLIENT_FILES_LINE_READER_H_
#define PHIMAP_CLIENT_FILES_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/files/input_file.h"

namespace phimap::cli {

// Reads lines that end with LF or CRLF. The line end is not part of the line, and the last line may
// lack it. Skips a byte order mark at the start. A line has at most 16 MiB. Not thread-safe.
class LineReader {
 public:
  // REQUIRES: `file` outlives the reader.
  explicit LineReader(InputFile& file);

  // Reads the next line; returns false at the end. Error messages contain the number of the line.
  absl::StatusOr<bool> Next(std::string& line);
  // Number of the line that was read last, from 1.
  int64_t number() const { return number_; }
  // Starts again at the first line.
  absl::Status Rewind();
  // Returns INVALID_ARGUMENT about the line that was read last.
  absl::Status Error(absl::string_view message) const;

 private:
  InputFile& file_;
  std::vector<char> buffer_;
  size_t position_ = 0;
  size_t size_ = 0;
  int64_t number_ = 0;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_LINE_READER_H_
