// Who asks for a change, and from where: what the audit says of it, and what limits it.
#ifndef PHIMAP_SERVER_ADMISSION_CHANGE_ORIGIN_H_
#define PHIMAP_SERVER_ADMISSION_CHANGE_ORIGIN_H_

#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "server/admission/principal.h"

namespace phimap {

struct ChangeOrigin {
  ChangeOrigin() = default;
  // A change of which nothing is known but the id that its caller gave it (Store).
  template <typename Text,
            std::enable_if_t<std::is_convertible_v<Text, absl::string_view>, int> = 0>
  ChangeOrigin(const Text& id) : operation_id(absl::string_view(id)) {}  // NOLINT: see above

  // Empty: a new random one.
  std::string operation_id;
  // The method, as "phimap.v1.MappingService/SetAlias"; for what a server does by itself a word,
  // such as "expiry".
  std::string method;
  // The name of the caller; "" if it has none.
  std::string principal;
  // The client's address; behind a proxy that tells it, the address behind the proxy.
  std::string peer;
  // As in the server's log.
  std::string request_id;
  // The caller's trace; "" if it sent none. For the log alone.
  std::string trace_id;
  // What the versions of this principal may take of the store. Without a name, nothing is limited.
  StoreShare stored;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_CHANGE_ORIGIN_H_
