// Parses a libpq connection string or URI into the parameters of one connection per host.
#ifndef PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_URI_H_
#define PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_URI_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace phimap {

// Keywords of libpq with their values.
using PostgresParameters = std::vector<std::pair<std::string, std::string>>;

// Returns the parameters for each host in `uri`, in the same order. The caller connects to one host
// at a time, because libpq would spend the whole timeout on a host that accepts the connection but
// stays silent, and only then fail.
//
// For parameters that `uri` omits, libpq's own sources apply (the environment, PGPASSFILE, a
// service file), except for the application's name and the time after which a dead peer is noticed.
// Errors: INVALID_ARGUMENT, which never quotes any part of `uri`, because a password that is not
// encoded as a URI requires may end up in any part.
absl::StatusOr<std::vector<PostgresParameters>> ParsePostgresUri(const std::string& uri);

// Checks that `uri` has a valid form and contains no password, because every user of the machine
// can see a command line. Otherwise returns INVALID_ARGUMENT.
absl::Status CheckPostgresUri(const std::string& uri);

// Checks the password file that libpq reads by itself. When libpq cannot use the file, it does not
// report that. Returns why libpq cannot take a password from the file at `path`, with the remedy,
// such as "cannot open /x: Permission denied". Returns an empty string if it can.
std::string PassFileProblem(const std::string& path);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_POSTGRES_POSTGRES_URI_H_
