// SHA-256, the name of every artifact.
#ifndef PHIMAP_SERVER_STORE_SHA256_H_
#define PHIMAP_SERVER_STORE_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"

namespace phimap {

// SHA-256 of `bytes` as 64 lower-case hexadecimal digits. Pure, thread-safe.
std::string Sha256Hex(absl::string_view bytes);

// Whether `text` has the form that Sha256Hex returns. Nothing else may become part of a path.
bool IsSha256Hex(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_SHA256_H_
