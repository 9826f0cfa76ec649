// Who may call what.
//
// Tokens, when a token file is given, decide alone: whoever presents none is refused, on every
// address. Without one, a verified client certificate gives the role that the operator chose, and
// the Unix socket, which only the server's own user can open, gives every role. With neither
// everyone may do everything.
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

// What a call shows of who makes it.
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
  // `tokens` may be null. `certificate_role` is what a verified certificate gives; nullopt when
  // certificates are not asked for.
  AccessControl(std::unique_ptr<TokenFile> tokens, std::optional<Role> certificate_role);

  // True when everyone may do everything, and nobody is looked at.
  bool open() const { return tokens_ == nullptr && !certificate_role_.has_value(); }

  // See TokenFile.
  void CountReloadFailures(prometheus::Counter* failures) const {
    if (tokens_ != nullptr) tokens_->CountFailures(failures);
  }

  // True when tokens alone decide.
  bool asks_for_tokens() const { return tokens_ != nullptr; }

  // OK when `caller` may call `method`, which needs the role `needed`. UNAUTHENTICATED (reasons
  // TOKEN_MISSING, TOKEN_MALFORMED, TOKEN_UNKNOWN, CERTIFICATE_MISSING) or PERMISSION_DENIED
  // (ROLE_TOO_LOW), with what to do about it.
  absl::Status Admit(const Caller& caller, absl::string_view method, Role needed) const;
  // Who an admitted caller is, as it was verified and whatever else was sent: the token, or the
  // certificate; empty on the Unix socket. As long as what it was made of.
  absl::string_view IdentityOf(const Caller& caller) const;

 private:
  absl::StatusOr<Role> RoleOf(const Caller& caller) const;

  const std::unique_ptr<TokenFile> tokens_;
  const std::optional<Role> certificate_role_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_ACCESS_CONTROL_H_
