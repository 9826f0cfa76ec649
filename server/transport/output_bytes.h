// Bytes on their way to a client.
#ifndef PHIMAP_SERVER_TRANSPORT_OUTPUT_BYTES_H_
#define PHIMAP_SERVER_TRANSPORT_OUTPUT_BYTES_H_

#include "absl/strings/string_view.h"

namespace phimap {

// Sent from where they lie, and destroyed when the last of them has left for the socket: what must
// be kept until then, a share of a memory budget for one, is a member of the derived class.
class OutputBytes {
 public:
  virtual ~OutputBytes() = default;
  // Stays the same.
  virtual absl::string_view bytes() const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_OUTPUT_BYTES_H_
