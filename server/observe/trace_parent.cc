#include "server/observe/trace_parent.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace phimap {

namespace {

// Length of a header of version 00: "VV-TRACE-PARENT-FF".
constexpr size_t kLength = 2 + 1 + 32 + 1 + 16 + 1 + 2;

// Returns the value of a digit, or -1. The standard refuses capital letters.
int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Reads two digits for each of `bytes`, and drops them from `text`.
bool Read(absl::string_view& text, absl::Span<uint8_t> bytes) {
  for (uint8_t& byte : bytes) {
    const int high = DigitOf(text[0]);
    const int low = DigitOf(text[1]);
    if (high < 0 || low < 0) return false;
    byte = static_cast<uint8_t>(16 * high + low);
    text.remove_prefix(2);
  }
  return true;
}

bool ReadHyphen(absl::string_view& text) {
  const bool found = text[0] == '-';
  text.remove_prefix(1);
  return found;
}

template <size_t size>
bool IsZero(const std::array<uint8_t, size>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

template <size_t size>
std::string Hex(const std::array<uint8_t, size>& bytes) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace

std::optional<TraceParent> TraceParent::Parse(absl::string_view text) {
  if (text.size() < kLength) return std::nullopt;
  std::array<uint8_t, 1> version;
  std::array<uint8_t, 1> flags;
  TraceParent parsed;
  const bool read = Read(text, absl::MakeSpan(version)) && ReadHyphen(text) &&
                    Read(text, absl::MakeSpan(parsed.trace_id)) && ReadHyphen(text) &&
                    Read(text, absl::MakeSpan(parsed.parent_id)) && ReadHyphen(text) &&
                    Read(text, absl::MakeSpan(flags));
  if (!read || version[0] == 0xff) return std::nullopt;
  // Later versions may append fields.
  if (!text.empty() && (version[0] == 0 || text[0] != '-')) return std::nullopt;
  if (IsZero(parsed.trace_id) || IsZero(parsed.parent_id)) return std::nullopt;
  parsed.flags = flags[0] & (kSampled | kRandom);
  return parsed;
}

std::string TraceParent::TraceId() const { return Hex(trace_id); }

std::string TraceParent::ToString() const {
  return absl::StrCat("00-", TraceId(), "-", Hex(parent_id), "-",
                      Hex(std::array<uint8_t, 1>{flags}));
}

}  // namespace phimap
