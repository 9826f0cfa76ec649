// Splits CSV (RFC 4180) into records of cells, without interpreting the cells.
#ifndef PHIMAP_PROTO_ROWS_CSV_TOKENIZER_H_
#define PHIMAP_PROTO_ROWS_CSV_TOKENIZER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/rows/byte_source.h"

namespace phimap {

// One record, with quotes removed from its cells.
class CsvRecord {
 public:
  int size() const { return static_cast<int>(ends_.size()); }
  absl::string_view cell(int i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return absl::string_view(text_).substr(begin, ends_[i] - begin);
  }
  // Line of the file that the record begins on, from 1.
  int64_t line() const { return line_; }
  // Whether the record is a line without any character.
  bool blank() const { return ends_.size() == 1 && text_.empty() && !quoted_; }

 private:
  friend class CsvTokenizer;
  std::string text_;  // All cells, one after the other.
  std::vector<size_t> ends_;
  int64_t line_ = 0;
  bool quoted_ = false;
};

// Reads records: cells separated by a delimiter, lines ended by LF or CRLF. A cell in "…" may
// contain delimiters, line ends, and quotes as "". Skips a byte order mark at the start. A record
// has at most 16 MiB, so that a missing closing quote does not swallow a large file.
//
// Not thread-safe.
class CsvTokenizer {
 public:
  static constexpr size_t kBufferSizeBytes = 256 << 10;

  // REQUIRES: `source` outlives the tokenizer.
  explicit CsvTokenizer(ByteSource& source, char delimiter = ',',
                        size_t buffer_size_bytes = kBufferSizeBytes);

  // Reads the next record; returns false at the end. Error messages contain the number of the line.
  absl::StatusOr<bool> Next(CsvRecord& record);
  // Starts again, with a source that is at its first byte.
  void Restart();

 private:
  enum class State { kCellStart, kPlain, kQuoted, kQuoteInQuoted };
  enum class Step { kMore, kRecordEnd };

  // Returns the next byte, or -1 at the end.
  absl::StatusOr<int> NextByte();
  absl::Status Fill();
  absl::Status SkipByteOrderMark();
  // Reads the buffered part of an unquoted cell, up to the first character that ends it.
  void TakePlain(CsvRecord& record);
  absl::StatusOr<Step> Take(char c, CsvRecord& record);
  absl::StatusOr<Step> TakeUnquoted(char c, CsvRecord& record);
  absl::StatusOr<Step> EndLine(CsvRecord& record);
  absl::StatusOr<bool> EndFile(CsvRecord& record);
  absl::Status ErrorAt(int64_t line, absl::string_view message) const;

  ByteSource& source_;
  const char delimiter_;
  std::vector<char> buffer_;
  size_t position_ = 0;
  size_t size_ = 0;
  bool started_ = false;
  int64_t line_ = 1;
  int64_t quote_line_ = 0;
  State state_ = State::kCellStart;
};

}  // namespace phimap

#endif  // PHIMAP_PROTO_ROWS_CSV_TOKENIZER_H_
