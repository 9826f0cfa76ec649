// The functions of libpq that phimap calls, loaded when a database is wanted and not with the
// program: some twenty libraries come with libpq (Kerberos, LDAP, GnuTLS), and a server that keeps
// its versions in files would start a fifth slower for them.
#ifndef PHIMAP_SERVER_POSTGRES_LIBPQ_H_
#define PHIMAP_SERVER_POSTGRES_LIBPQ_H_

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

// Each under its own name, as libpq-fe.h declares it.
struct Libpq {
#define PHIMAP_DECLARE(NAME) decltype(&::NAME) NAME = nullptr;
  PHIMAP_LIBPQ_FUNCTIONS(PHIMAP_DECLARE)
#undef PHIMAP_DECLARE
};

// Loads libpq, once in the life of the process. FAILED_PRECONDITION (LIBPQ_MISSING): it is not
// installed. Thread-safe.
absl::Status LoadLibpq();

// REQUIRES: LoadLibpq has returned OK.
const Libpq& libpq();

}  // namespace phimap

#endif  // PHIMAP_SERVER_POSTGRES_LIBPQ_H_
