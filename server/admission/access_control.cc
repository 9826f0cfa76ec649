#include "server/admission/access_control.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr absl::string_view kScheme = "Bearer ";

absl::Status Unauthenticated(absl::string_view reason, absl::string_view message) {
  return MakeError(absl::StatusCode::kUnauthenticated, reason, "", message);
}

// Returns the token of an authorization, or nullopt for any other scheme. Errors do not quote the
// token, because it may be a password.
std::optional<absl::string_view> BearerToken(absl::string_view authorization) {
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return std::nullopt;
  return authorization.substr(kScheme.size());
}

}  // namespace

AccessControl::AccessControl(std::unique_ptr<TokenFile> tokens,
                             std::optional<Role> certificate_role)
    : tokens_(std::move(tokens)), certificate_role_(certificate_role) {}

absl::StatusOr<Admitted> AccessControl::Identify(const Caller& caller) const {
  if (tokens_ == nullptr) {
    if (caller.unix_socket) return Admitted();
    if (caller.certificate_verified) return Admitted{.role = *certificate_role_};
    // The handshake refuses such clients first (TlsContext).
    return Unauthenticated(reason::kTlsCertificateMissing,
                           "this server requires a client TLS certificate; connect with one signed "
                           "by an authority in its --tls_client_ca");
  }
  if (caller.authorizations == 0) {
    return Unauthenticated(reason::kTokenMissing,
                           "this server requires a token; send the metadata (over HTTP, the "
                           "header) \"authorization: Bearer TOKEN\" with a "
                           "token from its operator (phimap: set PHIMAP_TOKEN)");
  }
  const std::optional<absl::string_view> token = BearerToken(caller.authorization);
  if (caller.authorizations > 1 || !token.has_value()) {
    return Unauthenticated(reason::kTokenMalformed,
                           "expected one entry of metadata (over HTTP, one header) "
                           "\"authorization\", of the form \"Bearer TOKEN\"");
  }
  PrincipalPointer principal = tokens_->table()->Find(*token);
  if (principal != nullptr) {
    PHIMAP_RETURN_IF_ERROR(principal->Check());
    const Role role = principal->role;
    return Admitted{role, std::move(principal)};
  }
  return Unauthenticated(reason::kTokenUnknown,
                         "this server does not know the token; it may have been replaced, so ask "
                         "the operator for a new one");
}

absl::string_view AccessControl::ShareKeyOf(const Caller& caller, const Admitted& admitted) const {
  if (admitted.principal != nullptr && !admitted.principal->share_key.empty()) {
    return admitted.principal->share_key;
  }
  if (tokens_ != nullptr) return BearerToken(caller.authorization).value_or("");
  return caller.unix_socket ? "" : caller.certificate_digest;
}

absl::StatusOr<Admitted> AccessControl::Admit(const Caller& caller, absl::string_view method,
                                              Role needed) const {
  if (open()) return Admitted();
  PHIMAP_ASSIGN_OR_RETURN(Admitted admitted, Identify(caller));
  const Role role = admitted.role;
  if (role >= needed) return admitted;
  return MakeError(
      absl::StatusCode::kPermissionDenied, reason::kRoleTooLow, "",
      absl::StrCat(method, " needs the role ", RoleName(needed), ", but this caller has the role ",
                   RoleName(role),
                   "; ask the server's operator for a token or a role that allows it"),
      {{"needed", std::string(RoleName(needed))}, {"actual", std::string(RoleName(role))}});
}

}  // namespace phimap
