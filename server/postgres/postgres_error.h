// Translates errors of PostgreSQL and libpq into errors that state the cause and a remedy.
#ifndef PHIMAP_SERVER_POSTGRES_POSTGRES_ERROR_H_
#define PHIMAP_SERVER_POSTGRES_POSTGRES_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace phimap {

// The database that an error is about. Never contains a password.
struct PostgresPlace {
  std::string host;
  std::string port;
  std::string database;
  std::string user;

  // Returns text such as: database "phimap" on db.example:5432 (user "phimap").
  std::string Text() const;
};

// Returns the error for `sqlstate`, the five characters with which the server answered, or "" if
// the connection failed without an answer. `message` is the text of the server or libpq.
absl::Status PostgresError(absl::string_view sqlstate, absl::string_view message,
                           const PostgresPlace& place);

// Whether the connection is unusable after an error with `sqlstate`, because the server is ending
// or has become a standby. A new connection may then reach another server.
bool EndsConnection(absl::string_view sqlstate);

// Whether the same transaction may succeed if it is run again at once.
bool IsSerializationFailure(absl::string_view sqlstate);

// Parts of libpq's text about a failed connection. With PQERRORS_VERBOSE, the text contains "FATAL:
// 28P01: text" and a line with a place in PostgreSQL's source code.
struct ConnectFailure {
  std::string sqlstate;  // Empty when the server did not answer.
  std::string message;   // Without the place, in one line.
};
ConnectFailure ParseConnectFailure(absl::string_view libpq_message);

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_POSTGRES_ERROR_H_
