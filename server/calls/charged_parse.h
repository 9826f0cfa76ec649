// Parses a message within the budget of requests.
#ifndef PHIMAP_SERVER_CALLS_CHARGED_PARSE_H_
#define PHIMAP_SERVER_CALLS_CHARGED_PARSE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message_lite.h"
#include "server/calls/message_source.h"
#include "server/memory/request_memory.h"

namespace phimap {

// Parses `message` into `parsed`. Takes more of `memory` if the message's charge does not cover its
// bytes and the parsed form, whose size is `cost` (MessageCost); then frees the bytes, and leaves
// the charge for the parsed form. Errors: that of `cost`; INVALID_ARGUMENT (MalformedRequest);
// RESOURCE_EXHAUSTED (REQUEST_MEMORY_FULL, MESSAGE_TOO_LARGE, MACHINE_MEMORY_FULL).
absl::Status ParseCharged(RequestMemory& memory, const CallerPointer& caller,
                          const absl::StatusOr<int64_t>& cost, ChargedMessage& message,
                          google::protobuf::MessageLite& parsed);

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_CHARGED_PARSE_H_
