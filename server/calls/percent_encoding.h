// The encoding of grpc-message: text in a header, whose bytes must be printable ASCII.
#ifndef PHIMAP_SERVER_CALLS_PERCENT_ENCODING_H_
#define PHIMAP_SERVER_CALLS_PERCENT_ENCODING_H_

#include <string>

#include "absl/strings/string_view.h"

namespace phimap {

// Writes every byte from ' ' to '~' except '%' as it is, and any other byte as %XX. A space at
// either end is also written as %20, because HTTP strips spaces from the ends of a header, and some
// libraries reject such a header. The result is at most three times as long as `utf8`. Pure.
std::string PercentEncode(absl::string_view utf8);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_PERCENT_ENCODING_H_
