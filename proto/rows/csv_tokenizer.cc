#include "proto/rows/csv_tokenizer.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr size_t kMaxRecordSizeBytes = 16 << 20;
constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";

}  // namespace

CsvTokenizer::CsvTokenizer(ByteSource& source, char delimiter, size_t buffer_size_bytes)
    : source_(source), delimiter_(delimiter), buffer_(buffer_size_bytes) {}

void CsvTokenizer::Restart() {
  position_ = size_ = 0;
  started_ = false;
  line_ = 1;
  state_ = State::kCellStart;
}

absl::Status CsvTokenizer::Fill() {
  PHIMAP_ASSIGN_OR_RETURN(size_, source_.Read(buffer_.data(), buffer_.size()));
  position_ = 0;
  return absl::OkStatus();
}

absl::Status CsvTokenizer::SkipByteOrderMark() {
  started_ = true;
  // A pipe may deliver the byte order mark byte by byte.
  size_t held = 0;
  do {
    PHIMAP_ASSIGN_OR_RETURN(const size_t size,
                            source_.Read(buffer_.data() + held, buffer_.size() - held));
    held += size;
    if (size == 0) break;
  } while (held < 3 && std::memcmp(buffer_.data(), kByteOrderMark, held) == 0);
  size_ = held;
  position_ = held >= 3 && std::memcmp(buffer_.data(), kByteOrderMark, 3) == 0 ? 3 : 0;
  return absl::OkStatus();
}

absl::StatusOr<int> CsvTokenizer::NextByte() {
  if (position_ == size_) {
    PHIMAP_RETURN_IF_ERROR(started_ ? Fill() : SkipByteOrderMark());
    if (position_ == size_) return -1;
  }
  return static_cast<unsigned char>(buffer_[position_++]);
}

absl::StatusOr<bool> CsvTokenizer::Next(CsvRecord& record) {
  record.text_.clear();
  record.ends_.clear();
  record.quoted_ = false;
  record.line_ = line_;
  state_ = State::kCellStart;
  while (true) {
    TakePlain(record);
    PHIMAP_ASSIGN_OR_RETURN(const int byte, NextByte());
    if (byte < 0) return EndFile(record);
    PHIMAP_ASSIGN_OR_RETURN(const Step step, Take(static_cast<char>(byte), record));
    if (step == Step::kRecordEnd) return true;
    if (record.text_.size() > kMaxRecordSizeBytes) {
      return state_ == State::kQuoted ? ErrorAt(quote_line_, "a quoted cell is never closed")
                                      : ErrorAt(record.line_, "a record is longer than 16 MiB");
    }
  }
}

// Fast path for unquoted cells, which are nearly all of a file: appends a run of characters at
// once.
void CsvTokenizer::TakePlain(CsvRecord& record) {
  if (state_ != State::kCellStart && state_ != State::kPlain) return;
  const char* const end = buffer_.data() + size_;
  const char* begin = buffer_.data() + position_;
  while (true) {
    const char* next = begin;
    while (next != end && *next != delimiter_ && *next != '\n' && *next != '\r' && *next != '"') {
      ++next;
    }
    record.text_.append(begin, next);
    if (next != begin) state_ = State::kPlain;
    begin = next;
    if (begin == end || *begin != delimiter_) break;
    record.ends_.push_back(record.text_.size());
    state_ = State::kCellStart;
    ++begin;
  }
  position_ = begin - buffer_.data();
}

absl::StatusOr<CsvTokenizer::Step> CsvTokenizer::Take(char c, CsvRecord& record) {
  if (state_ == State::kQuoted) {
    if (c == '"') {
      state_ = State::kQuoteInQuoted;
    } else {
      if (c == '\n') ++line_;
      record.text_.push_back(c);
    }
    return Step::kMore;
  }
  if (state_ == State::kQuoteInQuoted && c == '"') {
    record.text_.push_back('"');
    state_ = State::kQuoted;
    return Step::kMore;
  }
  return TakeUnquoted(c, record);
}

absl::StatusOr<CsvTokenizer::Step> CsvTokenizer::TakeUnquoted(char c, CsvRecord& record) {
  if (c == delimiter_) {
    record.ends_.push_back(record.text_.size());
    state_ = State::kCellStart;
    return Step::kMore;
  }
  if (c == '\n') return EndLine(record);
  if (c == '\r') {
    PHIMAP_ASSIGN_OR_RETURN(const int next, NextByte());
    if (next == '\n') return EndLine(record);
    return ErrorAt(line_, "a carriage return that does not end the line");
  }
  if (state_ == State::kQuoteInQuoted) {
    return ErrorAt(line_,
                   "text after the closing quote of a cell; a quote inside a quoted cell "
                   "is written twice");
  }
  if (c == '"') {
    if (state_ == State::kPlain) {
      return ErrorAt(line_, "a quote inside a cell that is not quoted");
    }
    state_ = State::kQuoted;
    record.quoted_ = true;
    quote_line_ = line_;
    return Step::kMore;
  }
  record.text_.push_back(c);
  state_ = State::kPlain;
  return Step::kMore;
}

absl::StatusOr<CsvTokenizer::Step> CsvTokenizer::EndLine(CsvRecord& record) {
  record.ends_.push_back(record.text_.size());
  ++line_;
  return Step::kRecordEnd;
}

absl::StatusOr<bool> CsvTokenizer::EndFile(CsvRecord& record) {
  if (state_ == State::kQuoted) return ErrorAt(quote_line_, "a quoted cell is never closed");
  const bool nothing = state_ == State::kCellStart && record.ends_.empty();
  if (nothing) return false;
  record.ends_.push_back(record.text_.size());
  return true;
}

absl::Status CsvTokenizer::ErrorAt(int64_t line, absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(source_.name(), ", line ", line, ": ", message));
}

}  // namespace phimap
