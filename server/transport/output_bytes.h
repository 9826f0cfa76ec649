// Bytes on their way to a client.
#ifndef PHIMAP_SERVER_TRANSPORT_OUTPUT_BYTES_H_
#define PHIMAP_SERVER_TRANSPORT_OUTPUT_BYTES_H_

#include "absl/strings/string_view.h"

namespace phimap {

// Bytes that are sent without a copy where possible. The object is kept until the last byte has
// been handed to the socket or copied. A derived class may own resources that must be held until
// then, such as a share of a memory budget.
class OutputBytes {
 public:
  virtual ~OutputBytes() = default;
  // Returns the same bytes at the same address on every call.
  virtual absl::string_view bytes() const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_OUTPUT_BYTES_H_
