// Measures the memory that a parse by google::protobuf allocates. Linking this file into a program
// replaces operator new with one that counts.
#ifndef PHIMAP_TESTS_SERVER_RPC_PARSE_MEMORY_H_
#define PHIMAP_TESTS_SERVER_RPC_PARSE_MEMORY_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace phimap::testing {

// The heap memory that this thread holds now, and the most that it has held, in bytes. Each block
// counts with the smallest size that glibc's malloc could use for it: a word more than requested,
// rounded up to a multiple of 16, and at least 32.
int64_t HeldBytes();
int64_t PeakBytes();
void ResetPeakBytes();

struct ParseMemory {
  bool parsed = false;
  int64_t peak = 0;  // the most held at any moment of the parse
  int64_t kept = 0;  // held by the parsed message
};

// Parses `bytes` into a new message of the type of `prototype`.
ParseMemory MemoryOfParse(const google::protobuf::Message& prototype, absl::string_view bytes);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_RPC_PARSE_MEMORY_H_
