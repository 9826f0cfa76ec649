// Memory that a parse of google::protobuf allocates. Linked into a program this replaces operator
// new, to count.
#ifndef PHIMAP_TESTS_SERVER_CALLS_PARSE_MEMORY_H_
#define PHIMAP_TESTS_SERVER_CALLS_PARSE_MEMORY_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace phimap::testing {

// Bytes held of this thread's heap, in blocks as glibc's malloc makes them at least: a word of its
// own, multiples of 16, at least 32.
int64_t HeldBytes();
int64_t PeakBytes();
void ResetPeakBytes();

struct ParseMemory {
  bool parsed = false;
  int64_t peak = 0;  // at any moment of the parse
  int64_t kept = 0;  // in the end
};

// Parses `bytes` into a new message like `prototype`.
ParseMemory MemoryOfParse(const google::protobuf::Message& prototype, absl::string_view bytes);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_CALLS_PARSE_MEMORY_H_
