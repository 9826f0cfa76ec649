#include "client/files/npy_values.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"

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

}  // namespace phimap::cli
