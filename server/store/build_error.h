// Converts a build's final error to columns of a row and back: code, message, and the
// machine-readable detail.
#ifndef PHIMAP_SERVER_STORE_BUILD_ERROR_H_
#define PHIMAP_SERVER_STORE_BUILD_ERROR_H_

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace phimap {

// Returns DetailOf(status) as text, or nullopt if the status has no detail. Strings of any content
// are preserved.
std::optional<std::string> EncodeErrorDetail(const absl::Status& status);

// Returns the status with this code and full message, and with the encoded detail attached. A
// `detail` that EncodeErrorDetail cannot have returned is dropped, because the rest of a build's
// record is useful without it.
absl::Status DecodeError(absl::StatusCode code, const std::string& message,
                         const std::optional<std::string>& detail);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_BUILD_ERROR_H_
