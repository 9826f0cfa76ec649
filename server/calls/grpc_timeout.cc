#include "server/calls/grpc_timeout.h"

#include <cstdint>

#include "absl/strings/ascii.h"

namespace phimap {
namespace {

constexpr size_t kMaxDigits = 8;

std::optional<absl::Duration> UnitOf(char letter) {
  switch (letter) {
    case 'H':
      return absl::Hours(1);
    case 'M':
      return absl::Minutes(1);
    case 'S':
      return absl::Seconds(1);
    case 'm':
      return absl::Milliseconds(1);
    case 'u':
      return absl::Microseconds(1);
    case 'n':
      return absl::Nanoseconds(1);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<absl::Duration> ParseGrpcTimeout(absl::string_view value) {
  if (value.size() < 2 || value.size() > kMaxDigits + 1) return std::nullopt;
  const std::optional<absl::Duration> unit = UnitOf(value.back());
  if (!unit.has_value()) return std::nullopt;
  value.remove_suffix(1);
  int64_t count = 0;
  for (char digit : value) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(digit))) return std::nullopt;
    count = count * 10 + (digit - '0');
  }
  return count * *unit;
}

}  // namespace phimap
