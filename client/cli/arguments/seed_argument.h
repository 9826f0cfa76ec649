// Seeds on the command line.
#ifndef PHIMAP_CLIENT_CLI_ARGUMENTS_SEED_ARGUMENT_H_
#define PHIMAP_CLIENT_CLI_ARGUMENTS_SEED_ARGUMENT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace phimap::cli {

// Parses an integer from 0 to 2^64 − 1; an error names --seed.
absl::StatusOr<uint64_t> SeedOf(const std::string& text);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_ARGUMENTS_SEED_ARGUMENT_H_
