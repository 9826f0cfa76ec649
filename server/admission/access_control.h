// Decides which callers may make which calls.
//
// With a token file, that file decides, on every address: a caller is known by its token or, if it
// sends none, by its verified client certificate or its user on the Unix socket, and rejected if
// the file has no line for it. Without a token file, a verified client certificate gives the role
// that the operator chose, and the Unix socket, which only the server's own user can open, gives
// every role. With neither a token file nor client certificates, everyone may do everything.
//
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_ADMISSION_ACCESS_CONTROL_H_
#define PHIMAP_SERVER_ADMISSION_ACCESS_CONTROL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/admission/role.h"
#include "server/admission/token_file.h"

namespace phimap {

// The credentials that a call presents.
struct Caller {
  // Value of the metadata "authorization", and the number of times it was sent.
  absl::string_view authorization = {};
  size_t authorizations = 0;
  bool certificate_verified = false;
  absl::string_view certificate_digest = {};
  // Subject alternative names of the certificate, as "DNS:NAME".
  absl::Span<const std::string> certificate_names = {};
  bool unix_socket = false;
  // The user at the other end of the Unix socket.
  std::optional<uint32_t> user = std::nullopt;
};

// A caller that may make its call.
struct Admitted {
  Role role = Role::kAdmin;
  PrincipalPointer principal = nullptr;

  // Whether the caller administers the server: an admin of some names alone does not.
  bool administers() const {
    return role == Role::kAdmin && (principal == nullptr || principal->names.empty());
  }
};

class AccessControl {
 public:
  // `tokens` may be null. `certificate_role` is the role of a caller with a verified TLS
  // certificate, or nullopt if the server does not ask clients for certificates.
  AccessControl(std::unique_ptr<TokenFile> tokens, std::optional<Role> certificate_role);

  // Returns whether every caller may do everything without any check.
  bool open() const { return tokens_ == nullptr && !certificate_role_.has_value(); }

  // See TokenFile::CountFailures.
  void CountReloadFailures(prometheus::Counter* failures) const {
    if (tokens_ != nullptr) tokens_->CountFailures(failures);
  }

  // Returns who calls if `caller` may call `method`, which needs the role `needed`. Otherwise
  // returns UNAUTHENTICATED (reasons TOKEN_MISSING, TOKEN_MALFORMED, TOKEN_UNKNOWN, TOKEN_EXPIRED,
  // TLS_CERTIFICATE_MISSING) or PERMISSION_DENIED (ROLE_TOO_LOW), with the remedy.
  // A call of a known caller counts for its rate at `now`, also one that its role does not allow;
  // RESOURCE_EXHAUSTED (CALLER_RATE_REACHED) if there are too many.
  absl::StatusOr<Admitted> Admit(const Caller& caller, absl::string_view method, Role needed,
                                 absl::Time now) const;
  // Returns whom the token, certificate or user of `caller` stands for, also if it has expired;
  // null if that is not known. For calls that were refused.
  PrincipalPointer WhoIs(const Caller& caller) const;
  // Returns by what the calls of an admitted caller are counted: the name or else the text of its
  // token, or the digest of its TLS certificate. Empty on the Unix socket without a name. The
  // result is valid as long as `admitted` and the texts in `caller` are.
  absl::string_view ShareKeyOf(const Caller& caller, const Admitted& admitted) const;

 private:
  absl::StatusOr<Admitted> Identify(const Caller& caller) const;
  // Returns whom the token, certificate or user of `caller` stands for.
  absl::StatusOr<PrincipalPointer> Find(const Caller& caller) const;

  const std::unique_ptr<TokenFile> tokens_;
  const std::optional<Role> certificate_role_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_ACCESS_CONTROL_H_
