// Computes the memory that a message will occupy once parsed, from its bytes.
#ifndef PHIMAP_SERVER_CALLS_MESSAGE_COST_H_
#define PHIMAP_SERVER_CALLS_MESSAGE_COST_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "server/calls/message_layout.h"

namespace phimap {

// Computes the memory of a parsed message before it is parsed. Two bytes on the wire may become a
// message of two hundred bytes or an integer of eight bytes. So a message is charged for the
// allocations of parsing before it is parsed. The layouts are created once for each type of
// request.
//
// Immutable, hence thread-safe.
class MessageCost {
 public:
  // REQUIRES: as for MessageLayout.
  explicit MessageCost(const google::protobuf::Descriptor& type) : layout_(type) {}

  // Returns an upper bound on the growth of the heap at any moment while `bytes`, which are one
  // contiguous array, are parsed into a new message without an arena. This includes the message
  // itself, sub-messages, strings, arrays with their spare capacity and the old array while they
  // grow, maps, and unknown fields. The bound is at most four times the final size plus a KiB,
  // unless a field that is not repeated occurs more than once.
  //
  // Errors:  INVALID_ARGUMENT (MalformedRequest) for bytes that cannot be parsed; everything that
  //          parses has a cost. Invalid UTF-8 is left to the parse.
  // Cost:    one pass; allocates nothing. Bytes of strings are skipped, so messages of one large
  //          field take some 50 ns.
  absl::StatusOr<int64_t> Of(absl::string_view bytes) const;
  // Returns the cost of bytes that have at most `max_fields` fields, of the message and all within
  // it, and nullopt if there are more. A field takes time to parse even if it adds no memory, as
  // one that is not repeated and occurs again. Stops at the field that is too many.
  std::optional<absl::StatusOr<int64_t>> OfFew(absl::string_view bytes, int64_t max_fields) const;

 private:
  const MessageLayout layout_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_MESSAGE_COST_H_
