// Lifetime of a version, in words.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_LIFETIME_TEXT_H_
#define PHIMAP_CLIENT_CLI_VIEWS_LIFETIME_TEXT_H_

#include <string>

#include "phimap/v1/mapping.pb.h"

namespace phimap::cli {

// Returns "for ever", or a text such as "7d after its last use" with the time at which the version
// expires if it is not used again. Pure.
std::string LifetimeText(const v1::Version& version);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_LIFETIME_TEXT_H_
