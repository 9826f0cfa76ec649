#include "server/admission/access_control.h"

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "absl/hash/hash.h"
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
  // Nearly all write it so, and to ignore case takes longer than to find the token.
  if (!absl::StartsWith(authorization, kScheme) &&
      !absl::StartsWithIgnoreCase(authorization, kScheme)) {
    return std::nullopt;
  }
  return authorization.substr(kScheme.size());
}

// Whom the tokens of the last calls stand for. A connection sends its token with each call, and to
// hash it takes as long as all other checks of a call together. Like HPACK's table of a connection,
// this has tokens that callers have sent; each thread has its own.
class RecentTokens {
 public:
  // As TokenTable::Find of the table of `file` that is in force.
  const PrincipalPointer& Find(const TokenFile& file, absl::string_view token) {
    if (const uint64_t number = file.table_number(); number != number_) {
      slots_ = {};
      table_ = file.table();
      number_ = number;
    }
    const size_t hash = absl::HashOf(token);
    Slot& slot = slots_[hash % kSlots];
    // The hash, of which a caller knows nothing, is compared first, so that the time that the texts
    // take to compare tells nothing of a token.
    if (slot.principal != nullptr && slot.hash == hash && slot.token == token) {
      return slot.principal;
    }
    PrincipalPointer found = table_->Find(token);
    if (found == nullptr) return unknown_;
    slot = {hash, std::string(token), std::move(found)};
    return slot.principal;
  }

 private:
  static constexpr size_t kSlots = 64;
  struct Slot {
    size_t hash = 0;
    std::string token;
    PrincipalPointer principal;
  };
  const PrincipalPointer unknown_ = nullptr;
  // TokenFile::table_number of table_, or of none.
  uint64_t number_ = 0;
  std::shared_ptr<const TokenTable> table_;
  std::array<Slot, kSlots> slots_;
};

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
  PHIMAP_ASSIGN_OR_RETURN(PrincipalPointer principal, Find(caller));
  PHIMAP_RETURN_IF_ERROR(principal->Check());
  const Role role = principal->role;
  return Admitted{role, std::move(principal)};
}

absl::StatusOr<PrincipalPointer> AccessControl::Find(const Caller& caller) const {
  if (caller.authorizations == 0) {
    const std::shared_ptr<const TokenTable> table = tokens_->table();
    PrincipalPointer principal;
    if (caller.certificate_verified) {
      principal = table->FindCertificate(caller.certificate_digest, caller.certificate_names);
    } else if (caller.user.has_value()) {
      principal = table->FindUser(*caller.user);
    }
    if (principal != nullptr) return principal;
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
  thread_local RecentTokens recent;
  if (const PrincipalPointer& principal = recent.Find(*tokens_, *token)) return principal;
  return Unauthenticated(reason::kTokenUnknown,
                         "this server does not know the token; it may have been replaced, so ask "
                         "the operator for a new one");
}

absl::string_view AccessControl::ShareKeyOf(const Caller& caller, const Admitted& admitted) const {
  if (admitted.principal != nullptr && !admitted.principal->share_key.empty()) {
    return admitted.principal->share_key;
  }
  if (tokens_ != nullptr && caller.authorizations > 0) {
    return BearerToken(caller.authorization).value_or("");
  }
  return caller.unix_socket ? "" : caller.certificate_digest;
}

PrincipalPointer AccessControl::WhoIs(const Caller& caller) const {
  return tokens_ == nullptr ? nullptr : Find(caller).value_or(nullptr);
}

absl::StatusOr<Admitted> AccessControl::Admit(const Caller& caller, absl::string_view method,
                                              Role needed, absl::Time now) const {
  if (open()) return Admitted();
  absl::StatusOr<Admitted> admitted = Identify(caller);
  if (!admitted.ok()) return admitted;
  if (admitted->principal != nullptr) {
    PHIMAP_RETURN_IF_ERROR(admitted->principal->Spend(Rated::kCalls, 1, now));
  }
  if (admitted->role >= needed) return admitted;
  const Role role = admitted->role;
  return MakeError(
      absl::StatusCode::kPermissionDenied, reason::kRoleTooLow, "",
      absl::StrCat(method, " needs the role ", RoleName(needed), ", but this caller has the role ",
                   RoleName(role),
                   "; ask the server's operator for a token or a role that allows it"),
      {{"needed", std::string(RoleName(needed))}, {"actual", std::string(RoleName(role))}});
}

}  // namespace phimap
