// Translates errors of PostgreSQL and libpq into errors that teach.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_ERROR_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

// The database that an error is about. Never holds a password.
struct PostgresPlace {
  std::string host;
  std::string port;
  std::string database;
  std::string user;

  // "database "phimap" on db.example:5432 (user "phimap")".
  std::string Text() const;
};

// The error of a server that answered with `sqlstate`, five characters; empty: of a connection that
// failed without an answer. `message` is the text of the server or libpq.
absl::Status PostgresError(absl::string_view sqlstate, absl::string_view message,
                           const PostgresPlace& place);

// Whether the connection is unusable after an error with `sqlstate`: the server is ending, or has
// become a standby, so that a new connection may reach another one.
bool EndsConnection(absl::string_view sqlstate);

// Whether the same transaction may succeed when it is run again at once.
bool IsSerializationFailure(absl::string_view sqlstate);

// Text of libpq about a failed connection, in which PQERRORS_VERBOSE puts "FATAL: 28P01: text" and
// a line with a place in PostgreSQL's sources.
struct ConnectFailure {
  std::string sqlstate;  // Empty when the server did not answer.
  std::string message;   // Without the place, in one line.
};
ConnectFailure ParseConnectFailure(absl::string_view libpq_message);

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_ERROR_H_
