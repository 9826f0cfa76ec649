// A libpq connection string or URI, taken apart into the parameters of one connection to each host.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_URI_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_URI_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace phimap {

// Keywords of libpq with their values.
using PostgresParameters = std::vector<std::pair<std::string, std::string>>;

// The parameters for each host that `uri` names, in its order. One at a time, because libpq would
// spend the whole time on a host that accepts a connection and is silent, and only then fail.
//
// Parameters that `uri` leaves out are libpq's (the environment, PGPASSFILE, a service file),
// except for the name of the application and how soon a dead peer is noticed.
// Errors: INVALID_ARGUMENT, which never repeats any part of `uri`: a password that is not written
// as a URI demands turns up in any part of it.
absl::StatusOr<std::vector<PostgresParameters>> ParsePostgresUri(const std::string& uri);

// Whether `uri` has a suitable form, and holds no password: every user of the machine can see a
// command line. INVALID_ARGUMENT.
absl::Status CheckPostgresUri(const std::string& uri);

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_URI_H_
