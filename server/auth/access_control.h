// Decides which caller may make which call.
//
// With a token file, tokens alone decide: a caller without one is refused, on every address.
// Without one, a verified client certificate gives the role that the operator chose, and the Unix
// socket, which only the server's own user can open, gives every role. With neither everyone may do
// everything.
//
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_AUTH_ACCESS_CONTROL_H_
#define PHIMAP_SERVER_AUTH_ACCESS_CONTROL_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/auth/role.h"
#include "server/auth/token_file.h"

namespace phimap {

// The credentials that a call presents.
struct Caller {
  // Value of the metadata "authorization", and how often it was sent.
  absl::string_view authorization = {};
  size_t authorizations = 0;
  bool certificate_verified = false;
  absl::string_view certificate_digest = {};
  bool unix_socket = false;
};

class AccessControl {
 public:
  // `tokens` may be null. `certificate_role` is the role of a verified TLS certificate; nullopt
  // when certificates are not requested.
  AccessControl(std::unique_ptr<TokenFile> tokens, std::optional<Role> certificate_role);

  // True when every caller may do everything, without any check.
  bool open() const { return tokens_ == nullptr && !certificate_role_.has_value(); }

  // See TokenFile.
  void CountReloadFailures(prometheus::Counter* failures) const {
    if (tokens_ != nullptr) tokens_->CountFailures(failures);
  }

  // OK when `caller` may call `method`, which needs the role `needed`. UNAUTHENTICATED (reasons
  // TOKEN_MISSING, TOKEN_MALFORMED, TOKEN_UNKNOWN, TLS_CERTIFICATE_MISSING) or PERMISSION_DENIED
  // (ROLE_TOO_LOW), with the remedy.
  absl::Status Admit(const Caller& caller, absl::string_view method, Role needed) const;
  // Verified identity of an admitted caller, the token or the TLS certificate; empty on the Unix
  // socket. Valid as long as the caller's credentials are.
  absl::string_view IdentityOf(const Caller& caller) const;

 private:
  absl::StatusOr<Role> RoleOf(const Caller& caller) const;

  const std::unique_ptr<TokenFile> tokens_;
  const std::optional<Role> certificate_role_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_ACCESS_CONTROL_H_
