#include "client/files/npy_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

struct NpyTypeEntry {
  NpyType type;
  absl::string_view descr;
  int64_t size_bytes;
  client::FloatType sent;
};

constexpr NpyTypeEntry kNpyTypes[] = {
    {NpyType::kFloat16, "'<f2'", 2, client::FloatType::kFloat32},
    {NpyType::kFloat32, "'<f4'", 4, client::FloatType::kFloat32},
    {NpyType::kFloat64, "'<f8'", 8, client::FloatType::kFloat64},
    {NpyType::kBool, "'|b1'", 1, client::FloatType::kFloat32},
    {NpyType::kInt8, "'|i1'", 1, client::FloatType::kFloat32},
    {NpyType::kInt16, "'<i2'", 2, client::FloatType::kFloat32},
    {NpyType::kInt32, "'<i4'", 4, client::FloatType::kFloat64},
    {NpyType::kInt64, "'<i8'", 8, client::FloatType::kFloat64},
    {NpyType::kUint8, "'|u1'", 1, client::FloatType::kFloat32},
    {NpyType::kUint16, "'<u2'", 2, client::FloatType::kFloat32},
    {NpyType::kUint32, "'<u4'", 4, client::FloatType::kFloat64},
    {NpyType::kUint64, "'<u8'", 8, client::FloatType::kFloat64},
};

// The entries are in the order of the enum.
const NpyTypeEntry& EntryOf(NpyType type) {
  const NpyTypeEntry& entry = kNpyTypes[static_cast<int>(type)];
  PHIMAP_CHECK(entry.type == type);
  return entry;
}

// Converts a number of IEEE 754 binary16, which float32 holds exactly.
float FromFloat16(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const float fraction = static_cast<float>(bits & 1023);
  const float sign = bits >> 15 == 0 ? 1.0F : -1.0F;
  if (exponent == 31) return sign * (fraction == 0 ? INFINITY : NAN);
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// Whether float64 holds the integer exactly. A value that was rounded to 2^63 or 2^64 does not
// convert back.
template <typename Stored>
bool IsExact(Stored value) {
  if constexpr (sizeof(Stored) < sizeof(int64_t)) return true;
  const double sent = static_cast<double>(value);
  const double end = std::is_signed_v<Stored> ? 0x1p63 : 0x1p64;
  return sent < end && static_cast<Stored>(sent) == value;
}

template <typename Stored, typename Sent>
std::optional<int64_t> CastIntegers(const std::string& stored, std::string& sent) {
  const int64_t count = stored.size() / sizeof(Stored);
  sent.resize(count * sizeof(Sent));
  for (int64_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, stored.data() + i * sizeof(Stored), sizeof(Stored));
    if (!IsExact(value)) return i;
    const Sent number = static_cast<Sent>(value);
    std::memcpy(sent.data() + i * sizeof(Sent), &number, sizeof(Sent));
  }
  return std::nullopt;
}

void CastFloat16(const std::string& stored, std::string& sent) {
  const int64_t count = stored.size() / sizeof(uint16_t);
  sent.resize(count * sizeof(float));
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, stored.data() + i * sizeof(bits), sizeof(bits));
    const float number = FromFloat16(bits);
    std::memcpy(sent.data() + i * sizeof(number), &number, sizeof(number));
  }
}

}  // namespace

absl::StatusOr<NpyType> ParseNpyType(absl::string_view descr) {
  for (const NpyTypeEntry& entry : kNpyTypes) {
    if (entry.descr == descr) return entry.type;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected floats of 2, 4 or 8 bytes, integers or booleans, little-endian, got ",
                   descr, "; convert with array.astype('<f4') or array.astype('<f8')"));
}

int64_t StoredSizeBytes(NpyType type) { return EntryOf(type).size_bytes; }

client::FloatType SentType(NpyType type) { return EntryOf(type).sent; }

std::optional<int64_t> CastExactly(NpyType type, const std::string& stored, std::string& sent) {
  switch (type) {
    case NpyType::kFloat16:
      CastFloat16(stored, sent);
      return std::nullopt;
    case NpyType::kFloat32:
    case NpyType::kFloat64:
      sent = stored;
      return std::nullopt;
    case NpyType::kBool:
    case NpyType::kUint8:
      return CastIntegers<uint8_t, float>(stored, sent);
    case NpyType::kInt8:
      return CastIntegers<int8_t, float>(stored, sent);
    case NpyType::kInt16:
      return CastIntegers<int16_t, float>(stored, sent);
    case NpyType::kInt32:
      return CastIntegers<int32_t, double>(stored, sent);
    case NpyType::kInt64:
      return CastIntegers<int64_t, double>(stored, sent);
    case NpyType::kUint16:
      return CastIntegers<uint16_t, float>(stored, sent);
    case NpyType::kUint32:
      return CastIntegers<uint32_t, double>(stored, sent);
    case NpyType::kUint64:
      break;
  }
  return CastIntegers<uint64_t, double>(stored, sent);
}

std::string IntegerText(NpyType type, const std::string& stored, int64_t place) {
  uint64_t bits = 0;
  const int64_t size = StoredSizeBytes(type);
  std::memcpy(&bits, stored.data() + place * size, size);
  return type == NpyType::kInt64 ? absl::StrCat(static_cast<int64_t>(bits)) : absl::StrCat(bits);
}

namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
// Largest size of a header. NumPy's own headers have 64 to 128 bytes; a file with a longer one is
// not an array of numbers.
constexpr size_t kMaxHeaderSizeBytes = 64 << 10;
constexpr int64_t kMaxNpyColumns = 65'536;  // The API's limit.
// Size of a stripe, which is a number of consecutive rows of a file in Fortran order. They are read
// together, in one long run for each column.
constexpr int64_t kStripeSizeBytes = 16 << 20;

absl::Status BadHeader(absl::string_view message) { return absl::InvalidArgumentError(message); }

// Returns the text of the value of 'key': from after the colon to the comma that ends it, outside
// of parentheses.
absl::StatusOr<absl::string_view> ValueOf(absl::string_view dictionary, absl::string_view key) {
  const std::string quoted = absl::StrCat("'", key, "'");
  const size_t found = dictionary.find(quoted);
  if (found == absl::string_view::npos) {
    return BadHeader(absl::StrCat("its header has no ", quoted));
  }
  absl::string_view rest = absl::StripAsciiWhitespace(dictionary.substr(found + quoted.size()));
  if (!absl::ConsumePrefix(&rest, ":")) {
    return BadHeader(absl::StrCat("its header has no value for ", quoted));
  }
  rest = absl::StripAsciiWhitespace(rest);
  const size_t close = absl::StartsWith(rest, "(") ? rest.find(')') : 0;
  const size_t end = close == absl::string_view::npos ? close : rest.find_first_of(",}", close);
  if (end == absl::string_view::npos) {
    return BadHeader(absl::StrCat("the value of ", quoted, " in its header has no end"));
  }
  return absl::StripAsciiWhitespace(rest.substr(0, end));
}

absl::Status ParseShape(absl::string_view text, NpyHeader& header) {
  if (!absl::StartsWith(text, "(") || !absl::EndsWith(text, ")")) {
    return BadHeader(absl::StrCat("its shape is not a tuple: ", text));
  }
  std::vector<int64_t> sizes;
  const absl::string_view inner = text.substr(1, text.size() - 2);
  for (absl::string_view part : absl::StrSplit(inner, ',', absl::SkipWhitespace())) {
    int64_t size;
    if (!absl::SimpleAtoi(part, &size) || size < 0) {
      return BadHeader(absl::StrCat("its shape is not made of sizes: ", text));
    }
    sizes.push_back(size);
  }
  if (sizes.size() == 1) {
    return BadHeader(absl::StrCat(
        "expected a 2-D array, rows × columns, got 1-D with ", CountOf(sizes[0], "value"),
        "; array.reshape(1, -1) makes it one row, ", "array.reshape(-1, 1) one column"));
  }
  if (sizes.size() != 2) {
    return BadHeader(absl::StrCat("expected a 2-D array, rows × columns, got ", sizes.size(),
                                  "-D with shape ", text));
  }
  if (sizes[1] < 1 || sizes[1] > kMaxNpyColumns) {
    return BadHeader(absl::StrCat("expected 1 to ", kMaxNpyColumns, " columns, got ", sizes[1]));
  }
  header.rows = sizes[0];
  header.columns = static_cast<int32_t>(sizes[1]);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyDictionary(absl::string_view text) {
  NpyHeader header;
  PHIMAP_ASSIGN_OR_RETURN(const absl::string_view descr, ValueOf(text, "descr"));
  PHIMAP_ASSIGN_OR_RETURN(header.type, ParseNpyType(descr));
  PHIMAP_ASSIGN_OR_RETURN(const absl::string_view order, ValueOf(text, "fortran_order"));
  PHIMAP_ASSIGN_OR_RETURN(const absl::string_view shape, ValueOf(text, "shape"));
  PHIMAP_RETURN_IF_ERROR(ParseShape(shape, header));
  if (order != "False" && order != "True") {
    return BadHeader(absl::StrCat("its fortran_order is neither True nor False: ", order));
  }
  // An array of one row or one column is the same in both orders.
  header.by_column = order == "True" && header.rows > 1 && header.columns > 1;
  return header;
}

absl::StatusOr<std::unique_ptr<NpyReader>> NpyReader::Open(std::unique_ptr<InputFile> file) {
  std::unique_ptr<NpyReader> reader(new NpyReader(std::move(file)));
  PHIMAP_RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

absl::Status NpyReader::ReadHeader() {
  // Magic, version, then the size of the dictionary: 2 bytes in version 1.0, 4 in 2.0.
  unsigned char start[12];
  char* bytes = reinterpret_cast<char*>(start);
  PHIMAP_ASSIGN_OR_RETURN(size_t size, ReadUpTo(bytes, 8));
  if (size < 8 || absl::string_view(bytes, 6) != kMagic) {
    return Error("this is not a .npy file (its first bytes are not \\x93NUMPY)");
  }
  const int major = start[6];
  if ((major != 1 && major != 2) || start[7] != 0) {
    return Error(absl::StrCat("expected .npy format 1.0 or 2.0, got ", major, ".", start[7]));
  }
  const size_t width = major == 1 ? 2 : 4;
  PHIMAP_ASSIGN_OR_RETURN(size, ReadUpTo(bytes + 8, width));
  size_t header_bytes = 0;
  for (size_t i = 0; i < size; ++i) header_bytes |= size_t{start[8 + i]} << (8 * i);
  if (size < width || header_bytes > kMaxHeaderSizeBytes) {
    return Error(
        absl::StrCat("its header is cut off, or longer than ", kMaxHeaderSizeBytes, " bytes"));
  }
  std::string dictionary(header_bytes, '\0');
  PHIMAP_ASSIGN_OR_RETURN(size, ReadUpTo(dictionary.data(), header_bytes));
  if (size < header_bytes) return Error("its header is cut off");
  const absl::StatusOr<NpyHeader> header = ParseNpyDictionary(dictionary);
  if (!header.ok()) return Error(header.status().message());
  header_ = *header;
  header_size_bytes_ = 8 + width + header_bytes;
  next_row_ = 0;
  stripe_begin_ = stripe_rows_ = 0;
  if (!header_.by_column || file_->CanSeek()) return absl::OkStatus();
  return Error(
      "its values are stored column by column (Fortran order), but a compressed file can only be "
      "read from start to end; convert with numpy.ascontiguousarray(array)");
}

absl::StatusOr<size_t> NpyReader::ReadUpTo(char* buffer, size_t size) {
  size_t done = 0;
  while (done < size) {
    PHIMAP_ASSIGN_OR_RETURN(const size_t more, file_->Read(buffer + done, size - done));
    if (more == 0) break;
    done += more;
  }
  return done;
}

absl::StatusOr<client::ExampleBlock> NpyReader::Next(const client::BlockLimits& limits) {
  return NextRows(limits.RowsOf(header_.columns * client::ValueSizeBytes(type())));
}

absl::StatusOr<client::RowBlock> NpyReader::NextRows(int32_t max_rows) {
  const int64_t rows = std::min<int64_t>(max_rows, header_.rows - next_row_);
  if (rows == 0) {
    PHIMAP_RETURN_IF_ERROR(CheckAtEnd());
    return client::RowBlock{};
  }
  client::RowBlock block{
      .type = type(), .rows = static_cast<int32_t>(rows), .columns = header_.columns};
  PHIMAP_ASSIGN_OR_RETURN(std::string stored,
                          header_.by_column ? ReadRowsByColumn(rows) : ReadRows(rows));
  if (header_.type == NpyType::kFloat32 || header_.type == NpyType::kFloat64) {
    block.values_le = std::move(stored);
  } else {
    const std::optional<int64_t> inexact = CastExactly(header_.type, stored, block.values_le);
    if (inexact.has_value()) return Inexact(stored, *inexact);
  }
  PHIMAP_RETURN_IF_ERROR(CheckFinite(block));
  next_row_ += rows;
  return block;
}

absl::StatusOr<std::string> NpyReader::ReadRows(int64_t rows) {
  std::string stored(rows * header_.columns * StoredSizeBytes(header_.type), '\0');
  PHIMAP_ASSIGN_OR_RETURN(const size_t size, ReadUpTo(stored.data(), stored.size()));
  if (size < stored.size()) return CutOff(size);
  return stored;
}

absl::Status NpyReader::CutOff(size_t bytes) const {
  const size_t row_bytes = header_.columns * StoredSizeBytes(header_.type);
  return Error(
      absl::StrCat("its header says ", CountOf(header_.rows, "row"), ", but the file ends in row ",
                   next_row_ + static_cast<int64_t>(bytes / row_bytes), " (counted from 0)"));
}

absl::StatusOr<std::string> NpyReader::ReadRowsByColumn(int64_t rows) {
  const int64_t value_bytes = StoredSizeBytes(header_.type);
  std::string stored(rows * header_.columns * value_bytes, '\0');
  for (int64_t done = 0; done < rows;) {
    const int64_t row = next_row_ + done;
    if (row >= stripe_begin_ + stripe_rows_) {
      stripe_begin_ = row;
      PHIMAP_RETURN_IF_ERROR(ReadStripe());
    }
    const int64_t count = std::min(rows - done, stripe_begin_ + stripe_rows_ - row);
    for (int64_t column = 0; column < header_.columns; ++column) {
      const char* from =
          stripe_.data() + (column * stripe_rows_ + row - stripe_begin_) * value_bytes;
      char* to = stored.data() + (done * header_.columns + column) * value_bytes;
      for (int64_t i = 0; i < count; ++i, from += value_bytes) {
        std::memcpy(to + i * header_.columns * value_bytes, from, value_bytes);
      }
    }
    done += count;
  }
  return stored;
}

absl::Status NpyReader::ReadStripe() {
  const int64_t value_bytes = StoredSizeBytes(header_.type);
  const int64_t row_bytes = header_.columns * value_bytes;
  stripe_rows_ = std::clamp<int64_t>(kStripeSizeBytes / row_bytes, 1, header_.rows - stripe_begin_);
  stripe_.resize(stripe_rows_ * row_bytes);
  const size_t run_bytes = stripe_rows_ * value_bytes;
  for (int64_t column = 0; column < header_.columns; ++column) {
    const int64_t offset =
        header_size_bytes_ + (column * header_.rows + stripe_begin_) * value_bytes;
    PHIMAP_ASSIGN_OR_RETURN(const size_t size,
                            file_->ReadAt(offset, stripe_.data() + column * run_bytes, run_bytes));
    if (size == run_bytes) continue;
    return Error(absl::StrCat("its header says ", CountOf(header_.columns, "column"), " of ",
                              header_.rows, " values, but the file ends in column ", column,
                              " (counted from 0)"));
  }
  return absl::OkStatus();
}

absl::Status NpyReader::Inexact(const std::string& stored, int64_t place) const {
  return Error(
      absl::StrCat("the integer ", IntegerText(header_.type, stored, place), " at array[",
                   next_row_ + place / header_.columns, ", ", place % header_.columns,
                   "] cannot be represented exactly in float64; if rounding is acceptable, "
                   "convert with array.astype('<f8'); if this column holds ids, leave it "
                   "out of the input"));
}

absl::Status NpyReader::CheckFinite(const client::RowBlock& block) const {
  for (int32_t row = 0; row < block.rows; ++row) {
    for (int32_t column = 0; column < block.columns; ++column) {
      const double value = block.At(row, column);
      if (std::isfinite(value)) continue;
      return Error(absl::StrCat("expected finite numbers, got ", value, " at array[",
                                next_row_ + row, ", ", column, "]"));
    }
  }
  return absl::OkStatus();
}

absl::Status NpyReader::CheckAtEnd() {
  char extra;
  const int64_t end =
      header_size_bytes_ + header_.rows * header_.columns * StoredSizeBytes(header_.type);
  PHIMAP_ASSIGN_OR_RETURN(const size_t size, header_.by_column ? file_->ReadAt(end, &extra, 1)
                                                               : file_->Read(&extra, 1));
  if (size == 0) return absl::OkStatus();
  return Error(absl::StrCat("its header says ", CountOf(header_.rows, "row"),
                            ", but more bytes follow them"));
}

absl::Status NpyReader::Rewind() {
  PHIMAP_RETURN_IF_ERROR(file_->Rewind());
  return ReadHeader();
}

absl::Status NpyReader::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(file_->name(), ": ", message));
}

namespace {

constexpr size_t kPrefixSizeBytes = 10;

}  // namespace

std::string NpyHeaderBytes(client::FloatType type, int64_t rows, int32_t columns) {
  const char* descr = type == client::FloatType::kFloat32 ? "<f4" : "<f8";
  std::string header("\x93NUMPY\x01\x00", 8);
  header.push_back(static_cast<char>(kNpyHeaderSizeBytes - kPrefixSizeBytes));
  header.push_back('\0');
  absl::StrAppend(&header, "{'descr': '", descr, "', 'fortran_order': False, 'shape': (", rows,
                  ", ", columns, "), }");
  PHIMAP_CHECK(header.size() < static_cast<size_t>(kNpyHeaderSizeBytes));
  header.resize(kNpyHeaderSizeBytes - 1, ' ');
  header.push_back('\n');
  return header;
}

absl::StatusOr<std::unique_ptr<NpyWriter>> NpyWriter::Open(std::unique_ptr<OutputFile> file,
                                                           std::optional<int64_t> row_count) {
  if (!row_count.has_value() && !file->seekable()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write npy to ", file->name(),
                     ": the header states the number of rows, which is known only at the end, and "
                     "a pipe cannot go back; write to a file, or use --output-format=csv"));
  }
  return std::unique_ptr<NpyWriter>(new NpyWriter(std::move(file), row_count));
}

std::unique_ptr<NpyWriter> NpyWriter::Continue(std::unique_ptr<OutputFile> file,
                                               std::optional<int64_t> row_count,
                                               const NpyHeader& header, int64_t rows) {
  std::unique_ptr<NpyWriter> writer(new NpyWriter(std::move(file), row_count));
  writer->type_ = SentType(header.type);
  writer->columns_ = header.columns;
  writer->rows_ = rows;
  return writer;
}

absl::Status NpyWriter::Append(const client::RowBlock& block) {
  if (columns_ == 0) {
    type_ = block.type;
    columns_ = block.columns;
    PHIMAP_RETURN_IF_ERROR(file_->Append(NpyHeaderBytes(type_, row_count_.value_or(0), columns_)));
  }
  rows_ += block.rows;
  return file_->Append(block.values_le);
}

absl::Status NpyWriter::Finish() {
  if (row_count_.has_value() && rows_ != *row_count_) {
    return absl::InternalError(
        absl::StrCat("expected ", CountOf(*row_count_, "row"), " of features, got ", rows_));
  }
  if (!row_count_.has_value() && columns_ > 0) {
    PHIMAP_RETURN_IF_ERROR(file_->WriteAtStart(NpyHeaderBytes(type_, rows_, columns_)));
  }
  return file_->Commit();
}

}  // namespace phimap::cli
