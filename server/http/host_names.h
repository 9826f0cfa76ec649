// The names by which a browser or another client of HTTP may call this server.
#ifndef PHIMAP_SERVER_HTTP_HOST_NAMES_H_
#define PHIMAP_SERVER_HTTP_HOST_NAMES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/rpc/transport/stream.h"

namespace phimap {

// A page of a stranger can have its own name resolve to this server's address, and a browser then
// lets the page read what the server answers (DNS rebinding). The browser sends the name in the
// header Host, so a server must not answer to names that a stranger can own: those with a dot. An
// address of IP, a name without a dot, such as "localhost" or that of a container, and a name under
// ".localhost", ".internal" or ".cluster.local", which nobody can register, are known to every
// server. Others are known if the operator lists them.
//
// Thread-safe.
class HostNames {
 public:
  HostNames() = default;
  // `names`: what is listed in addition, as "features.example.com", without a port. Letters of
  // either case are equal.
  explicit HostNames(const std::vector<std::string>& names);

  // INVALID_ARGUMENT (ADDRESS_INVALID), which names `flag`, unless `name` is a name without a
  // port.
  static absl::Status Check(absl::string_view flag, absl::string_view name);

  // Whether `authority`, the value of a header Host or :authority, with or without a port, has a
  // known name.
  bool Know(absl::string_view authority) const;
  // Whether a request with this head may be answered: it has a known name or, in HTTP/1.0, none,
  // which no browser sends.
  bool MayCall(const RequestHead& head) const {
    const absl::string_view authority = head.Find(":authority");
    return authority.empty() || Know(authority);
  }

 private:
  absl::flat_hash_set<std::string> names_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_HOST_NAMES_H_
