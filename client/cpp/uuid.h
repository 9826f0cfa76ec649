// Random identifiers for builds.
#ifndef PHIMAP_CLIENT_CPP_UUID_H_
#define PHIMAP_CLIENT_CPP_UUID_H_

#include <string>

namespace phimap::client {

// A random UUID (RFC 4122, version 4) in lower case, from the operating system's entropy: it must
// differ between clients, so it has no seed. Thread-safe.
std::string RandomUuid();

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_UUID_H_
