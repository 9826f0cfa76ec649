// Lifetime of a version, in words.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_LIFETIME_TEXT_H_
#define PHIMAP_CLIENT_CLI_VIEWS_LIFETIME_TEXT_H_

#include <string>

#include "phimap/v1/mapping.pb.h"

namespace phimap::cli {

// "for ever", "7d after its last use", and the expiry if it is not used again. Pure.
std::string LifetimeText(const v1::Version& version);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_LIFETIME_TEXT_H_
