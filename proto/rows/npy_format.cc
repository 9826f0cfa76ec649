#include "proto/rows/npy_format.h"

#include <cmath>
#include <cstring>
#include <type_traits>
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

namespace phimap {
namespace {

struct NpyTypeEntry {
  NpyType type;
  absl::string_view descr;
  int64_t size_bytes;
  bool float32;
};

constexpr NpyTypeEntry kNpyTypes[] = {
    {NpyType::kFloat16, "'<f2'", 2, true},  {NpyType::kFloat32, "'<f4'", 4, true},
    {NpyType::kFloat64, "'<f8'", 8, false}, {NpyType::kBool, "'|b1'", 1, true},
    {NpyType::kInt8, "'|i1'", 1, true},     {NpyType::kInt16, "'<i2'", 2, true},
    {NpyType::kInt32, "'<i4'", 4, false},   {NpyType::kInt64, "'<i8'", 8, false},
    {NpyType::kUint8, "'|u1'", 1, true},    {NpyType::kUint16, "'<u2'", 2, true},
    {NpyType::kUint32, "'<u4'", 4, false},  {NpyType::kUint64, "'<u8'", 8, false},
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

bool SentAsFloat32(NpyType type) { return EntryOf(type).float32; }

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

absl::StatusOr<NpyStart> ReadNpyStart(absl::string_view bytes) {
  if (bytes.size() < 8 || !absl::StartsWith(bytes, kMagic)) {
    return BadHeader("this is not a .npy file (its first bytes are not \\x93NUMPY)");
  }
  const int major = static_cast<unsigned char>(bytes[6]);
  const int minor = static_cast<unsigned char>(bytes[7]);
  if ((major != 1 && major != 2) || minor != 0) {
    return BadHeader(absl::StrCat("expected .npy format 1.0 or 2.0, got ", major, ".", minor));
  }
  const size_t width = major == 1 ? 2 : 4;
  NpyStart read{8 + width, 0};
  for (size_t i = 0; i < width && 8 + i < bytes.size(); ++i) {
    read.dictionary |= size_t{static_cast<unsigned char>(bytes[8 + i])} << (8 * i);
  }
  if (bytes.size() < read.start || read.dictionary > kMaxHeaderSizeBytes) {
    return BadHeader(
        absl::StrCat("its header is cut off, or longer than ", kMaxHeaderSizeBytes, " bytes"));
  }
  return read;
}

std::string NpyHeaderBytes(bool float32, int64_t rows, int32_t columns) {
  constexpr size_t kPrefixSizeBytes = 10;
  const char* descr = float32 ? "<f4" : "<f8";
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

}  // namespace phimap
