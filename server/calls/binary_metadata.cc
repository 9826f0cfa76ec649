#include "server/calls/binary_metadata.h"

#include <algorithm>

#include "absl/strings/escaping.h"

namespace phimap {

std::string EncodeBinaryMetadata(absl::string_view bytes) {
  std::string encoded = absl::Base64Escape(bytes);
  encoded.erase(std::min(encoded.size(), encoded.find('=')));
  return encoded;
}

}  // namespace phimap
