// The encoding of grpc-message: text in a header, whose bytes must be printable ASCII.
#ifndef PHIMAP_SERVER_CALLS_PERCENT_ENCODING_H_
#define PHIMAP_SERVER_CALLS_PERCENT_ENCODING_H_

#include <string>

#include "absl/strings/string_view.h"

namespace phimap {

// Every byte from ' ' to '~' except '%' is written as it is, any other as %XX. A space at either
// end is %20 too: HTTP takes spaces off the ends of a header, and some libraries refuse such a
// header. The answer is at most three times as long. Pure.
std::string PercentEncode(absl::string_view utf8);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_PERCENT_ENCODING_H_
