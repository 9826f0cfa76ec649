// The functions of libcurl that phimap calls. libcurl is loaded only when traces are sent, for the
// reason of libpq (server/store/postgres/libpq.h): it brings Kerberos, LDAP and GnuTLS, for which
// every other server would start more slowly.
#ifndef PHIMAP_SERVER_TRACE_LIBCURL_H_
#define PHIMAP_SERVER_TRACE_LIBCURL_H_

#include <curl/curl.h>

#include "absl/status/status.h"

namespace phimap {

// clang-format off
#define PHIMAP_LIBCURL_FUNCTIONS(X) \
  X(curl_easy_cleanup) \
  X(curl_easy_getinfo) \
  X(curl_easy_init) \
  X(curl_easy_setopt) \
  X(curl_easy_strerror) \
  X(curl_global_init) \
  X(curl_multi_add_handle) \
  X(curl_multi_cleanup) \
  X(curl_multi_info_read) \
  X(curl_multi_init) \
  X(curl_multi_perform) \
  X(curl_multi_poll) \
  X(curl_multi_remove_handle) \
  X(curl_multi_wakeup) \
  X(curl_slist_append) \
  X(curl_slist_free_all)
// clang-format on

// Each member is the function of libcurl with the same name, as declared in curl/curl.h.
struct Libcurl {
#define PHIMAP_DECLARE(NAME) decltype(&::NAME) NAME = nullptr;
  PHIMAP_LIBCURL_FUNCTIONS(PHIMAP_DECLARE)
#undef PHIMAP_DECLARE
};

// Loads libcurl, once per process. FAILED_PRECONDITION (FLAG_INVALID) if it is not installed.
// Thread-safe.
absl::Status LoadLibcurl();

// Returns the functions. REQUIRES: LoadLibcurl has returned OK.
const Libcurl& libcurl();

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRACE_LIBCURL_H_
