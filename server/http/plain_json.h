// Messages as plain JSON, as protocols have it that were JSON first: integers of 64 bits are
// numbers, and fields are written also when they are 0 or empty. Unset messages, unset members of a
// oneof and empty maps are left out.
#ifndef PHIMAP_SERVER_HTTP_PLAIN_JSON_H_
#define PHIMAP_SERVER_HTTP_PLAIN_JSON_H_

#include <cstdint>
#include <string>

#include "google/protobuf/message.h"

namespace phimap {

// Bytes of memory that a message of so many bytes on the wire and its text take at most. The worst
// is a message in two bytes, whose numbers are all 0.
inline int64_t PlainJsonCost(int64_t bytes) { return 4096 + 64 * bytes; }

void AppendPlainJson(const google::protobuf::Message& message, std::string& text);

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_PLAIN_JSON_H_
