// SHA-256. The name of every artifact is its SHA-256.
#ifndef PHIMAP_SERVER_STORE_SHA256_H_
#define PHIMAP_SERVER_STORE_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"

namespace phimap {

// Returns the SHA-256 of `bytes` as 64 lower-case hexadecimal digits. Pure, thread-safe.
std::string Sha256Hex(absl::string_view bytes);

// Whether `text` has the form that Sha256Hex returns. No other text may become part of a path.
bool IsSha256Hex(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SHA256_H_
