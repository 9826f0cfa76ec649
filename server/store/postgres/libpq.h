// The functions of libpq that phimap calls. libpq is loaded only when a PostgreSQL database is
// used, because it brings some twenty libraries (Kerberos, LDAP, GnuTLS). With them, a server that
// keeps its versions in files would take a fifth longer to start.
#ifndef PHIMAP_SERVER_STORE_POSTGRES_LIBPQ_H_
#define PHIMAP_SERVER_STORE_POSTGRES_LIBPQ_H_

#include <libpq-fe.h>

#include "absl/status/status.h"

namespace phimap {

// clang-format off
#define PHIMAP_LIBPQ_FUNCTIONS(X) \
  X(PQclear) \
  X(PQcmdStatus) \
  X(PQconnectPoll) \
  X(PQconnectStartParams) \
  X(PQconnectionNeedsPassword) \
  X(PQconninfoFree) \
  X(PQconninfoParse) \
  X(PQconsumeInput) \
  X(PQdb) \
  X(PQerrorMessage) \
  X(PQescapeIdentifier) \
  X(PQfformat) \
  X(PQfinish) \
  X(PQflush) \
  X(PQfreemem) \
  X(PQftype) \
  X(PQgetResult) \
  X(PQgetisnull) \
  X(PQgetlength) \
  X(PQgetvalue) \
  X(PQhost) \
  X(PQisBusy) \
  X(PQnfields) \
  X(PQnotifies) \
  X(PQntuples) \
  X(PQport) \
  X(PQresultErrorField) \
  X(PQresultErrorMessage) \
  X(PQresultStatus) \
  X(PQsendQuery) \
  X(PQsendQueryParams) \
  X(PQserverVersion) \
  X(PQsetErrorVerbosity) \
  X(PQsetNoticeReceiver) \
  X(PQsetnonblocking) \
  X(PQsocket) \
  X(PQstatus) \
  X(PQtransactionStatus) \
  X(PQuser)
// clang-format on

// Each member is the function of libpq with the same name, as declared in libpq-fe.h.
struct Libpq {
#define PHIMAP_DECLARE(NAME) decltype(&::NAME) NAME = nullptr;
  PHIMAP_LIBPQ_FUNCTIONS(PHIMAP_DECLARE)
#undef PHIMAP_DECLARE
};

// Loads libpq, once per process. FAILED_PRECONDITION (LIBPQ_MISSING) if it is not installed.
// Thread-safe.
absl::Status LoadLibpq();

// Returns the functions. REQUIRES: LoadLibpq has returned OK.
const Libpq& libpq();

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_POSTGRES_LIBPQ_H_
