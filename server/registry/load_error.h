// Errors of calls that need a version which cannot be loaded now.
#ifndef PHIMAP_SERVER_REGISTRY_LOAD_ERROR_H_
#define PHIMAP_SERVER_REGISTRY_LOAD_ERROR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

// All of them are RESOURCE_EXHAUSTED.

// Too many requests wait for a version of `mapping`.
absl::Status TooManyWaiters(absl::string_view mapping, int limit);
// Too many versions wait to be loaded.
absl::Status TooManyLoads(int limit);
// The version needs `bytes`, and the live versions that are in use hold `held` of `limit`.
absl::Status LiveVersionsFull(absl::string_view mapping, int64_t number, int64_t bytes,
                              int64_t held, int64_t limit);
// The machine has no memory for the version. Without a message if it has none for that either.
absl::Status NoMemoryToLoad();

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_LOAD_ERROR_H_
