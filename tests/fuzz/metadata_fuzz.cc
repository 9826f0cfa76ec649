// Checks the parser of grpc-timeout, and the encoders of "-bin" metadata and of grpc-message.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/escaping.h"
#include "core/status/check.h"
#include "server/rpc/metadata.h"

namespace phimap {
namespace {

void CheckTimeout(absl::string_view input) {
  const std::optional<absl::Duration> timeout = ParseGrpcTimeout(input);
  if (!timeout.has_value()) return;
  PHIMAP_CHECK(input.size() >= 2 && input.size() <= 9);
  PHIMAP_CHECK(*timeout >= absl::ZeroDuration() && *timeout <= absl::Hours(99'999'999));
}

void CheckBinary(absl::string_view input) {
  const std::string encoded = EncodeBinaryMetadata(input);
  PHIMAP_CHECK(encoded.find('=') == encoded.npos);
  std::string decoded;
  PHIMAP_CHECK(absl::Base64Unescape(encoded, &decoded));
  PHIMAP_CHECK(decoded == input);
}

int Digit(char digit) { return digit <= '9' ? digit - '0' : digit - 'A' + 10; }

void CheckPercent(absl::string_view input) {
  const std::string encoded = PercentEncode(input);
  std::string decoded;
  for (size_t i = 0; i < encoded.size(); ++i) {
    PHIMAP_CHECK(encoded[i] >= ' ' && encoded[i] <= '~');
    if (encoded[i] != '%') {
      decoded += encoded[i];
      continue;
    }
    PHIMAP_CHECK(i + 2 < encoded.size());
    decoded += static_cast<char>(Digit(encoded[i + 1]) * 16 + Digit(encoded[i + 2]));
    i += 2;
  }
  PHIMAP_CHECK(decoded == input);
  PHIMAP_CHECK(encoded.empty() || (encoded.front() != ' ' && encoded.back() != ' '));
}

}  // namespace
}  // namespace phimap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  phimap::CheckTimeout(input);
  phimap::CheckBinary(input);
  phimap::CheckPercent(input);
  return 0;
}
