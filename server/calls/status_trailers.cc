#include "server/calls/status_trailers.h"

#include "server/calls/binary_metadata.h"
#include "server/calls/percent_encoding.h"
#include "server/calls/status_details.h"

namespace phimap {
namespace {

constexpr size_t kMaxEncodedBytes = 3072;

// Percent-encoding triples the length of characters outside ASCII, so a text that is within its own
// limit may become too long.
std::string EncodedMessage(const std::string& text) {
  std::string encoded = PercentEncode(text);
  for (size_t bytes = text.size(); encoded.size() > kMaxEncodedBytes;) {
    bytes = bytes * 3 / 4;
    encoded = PercentEncode(Shortened(text, bytes));
  }
  return encoded;
}

}  // namespace

StatusTrailers TrailersOf(const absl::Status& status) {
  const StatusDetails shown = DetailsForClient(status);
  return {.code = static_cast<int>(status.code()),
          .message = EncodedMessage(shown.message),
          .details_bin = EncodeBinaryMetadata(shown.details)};
}

}  // namespace phimap
