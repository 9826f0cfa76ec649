// The memory that a message will occupy once it is parsed, from its bytes.
#ifndef PHIMAP_SERVER_CALLS_MESSAGE_COST_H_
#define PHIMAP_SERVER_CALLS_MESSAGE_COST_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "server/calls/message_layout.h"

namespace phimap {

// Memory that a message takes once parsed, found before parsing. Two bytes on the wire may become a
// message of two hundred, or an integer of eight: a message is therefore charged for its parse's
// allocations before it is parsed. The layouts are made once for each type of request.
//
// Immutable, hence thread-safe.
class MessageCost {
 public:
  // REQUIRES: as MessageLayout.
  explicit MessageCost(const google::protobuf::Descriptor& type) : layout_(type) {}

  // An upper bound of the heap's growth at any moment of parsing `bytes` (one array, without an
  // arena) into a new message: the message itself, sub-messages, strings, arrays with their spare
  // capacity and the old array while they grow, maps, unknown fields. It is at most four times the
  // final size plus a KiB, unless fields that are not repeated come more than once.
  //
  // Errors:  INVALID_ARGUMENT (MalformedRequest) for bytes that cannot be parsed; everything that
  //          parses has a cost. Invalid UTF-8 is left to the parse.
  // Cost:    one pass; allocates nothing. Bytes of strings are skipped, so messages of one large
  //          field take some 50 ns.
  absl::StatusOr<int64_t> Of(absl::string_view bytes) const;

 private:
  const MessageLayout layout_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_MESSAGE_COST_H_
