#include "client/cli/arguments/seed_argument.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace phimap::cli {

absl::StatusOr<uint64_t> SeedOf(const std::string& text) {
  uint64_t seed = 0;
  if (absl::SimpleAtoi(text, &seed)) return seed;
  return absl::InvalidArgumentError(absl::StrCat("--seed: expected an integer from 0 to ",
                                                 std::numeric_limits<uint64_t>::max(), ", got '",
                                                 text, "'"));
}

}  // namespace phimap::cli
