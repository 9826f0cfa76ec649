// Whom a token stands for.
#ifndef PHIMAP_SERVER_ADMISSION_PRINCIPAL_H_
#define PHIMAP_SERVER_ADMISSION_PRINCIPAL_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/admission/role.h"

namespace phimap {

// Thread-safe: only `revoked` changes.
struct Principal {
  // What the log calls the caller; "" if the token has no name.
  std::string name;
  // By what its calls are counted together: all tokens of a name have one. "" without a name.
  std::string share_key;
  Role role = Role::kReader;
  // From this moment on the token is refused.
  absl::Time until = absl::InfiniteFuture();
  // Becomes true when the file says this of the token no longer.
  std::atomic<bool> revoked{false};

  // OK while the token may be used. UNAUTHENTICATED: TOKEN_EXPIRED, TOKEN_REVOKED.
  absl::Status Check() const;
};

// Null for a caller without a token, on a server that asks for none.
using PrincipalPointer = std::shared_ptr<const Principal>;

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_PRINCIPAL_H_
