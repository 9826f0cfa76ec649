// Bytes on their way to a client.
#ifndef PHIMAP_SERVER_TRANSPORT_OUTPUT_BYTES_H_
#define PHIMAP_SERVER_TRANSPORT_OUTPUT_BYTES_H_

#include "absl/strings/string_view.h"

namespace phimap {

// Sent from their place, and destroyed after the last of them has gone to the socket: resources
// that must be kept until then, such as a share of a memory budget, are members of the derived
// class.
class OutputBytes {
 public:
  virtual ~OutputBytes() = default;
  // Stays the same.
  virtual absl::string_view bytes() const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_OUTPUT_BYTES_H_
