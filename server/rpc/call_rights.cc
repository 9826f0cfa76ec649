// What the caller of a call may do with mappings, and how much of it.
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "server/rpc/call.h"
#include "server/store/catalog_errors.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

absl::Status RoleTooLow(absl::string_view method, Role needed, absl::string_view mapping,
                        Role actual) {
  return MakeError(Code::kPermissionDenied, reason::kRoleTooLow, "",
                   absl::StrCat(method, " needs the role ", RoleName(needed), " on \"", mapping,
                                "\", but this caller is its ", RoleName(actual),
                                "; ask the server's operator for a role that allows it"),
                   {{"needed", std::string(RoleName(needed))},
                    {"actual", std::string(RoleName(actual))},
                    {"mapping", std::string(mapping)}});
}

}  // namespace

bool Call::Sees(absl::string_view mapping) const {
  return principal_ == nullptr || principal_->RoleOn(mapping).has_value();
}

bool Call::Allows(absl::string_view mapping) const {
  if (!limited_to_names()) return true;
  return !mapping.empty() && principal_->RoleOn(mapping) >= method_.role;
}

void Call::NoteRefused(absl::string_view mapping) {
  if (refused_.load()) return;
  refused_mapping_ = std::string(mapping);
  refused_.store(true);
}

absl::Status Call::CheckMapping(absl::string_view mapping) {
  if (principal_ == nullptr) return absl::OkStatus();
  const std::optional<Role> role = principal_->RoleOn(mapping);
  if (role.has_value() && *role >= method_.role) return absl::OkStatus();
  NoteRefused(mapping);
  if (!role.has_value()) return NoSuchMapping(mapping);
  return RoleTooLow(method_.metrics.full_name, method_.role, mapping, *role);
}

absl::Status Call::CheckNewVersion(absl::string_view mapping) {
  if (Sees(mapping)) return CheckMapping(mapping);
  NoteRefused(mapping);
  return MakeError(Code::kPermissionDenied, reason::kNameNotAllowed, "name",
                   absl::StrCat("this caller may not use the name \"", mapping,
                                "\", whether or not it is taken; "
                                "expected a name that matches ",
                                principal_->NamesText(), " (names= in the server's token file)"),
                   {{"expected", principal_->NamesText()}, {"actual", std::string(mapping)}});
}

absl::Status Call::CheckBuildOf(absl::string_view owner, absl::string_view mapping) {
  if (principal_ == nullptr || principal_->name == owner ||
      principal_->RoleOn(mapping) == Role::kAdmin) {
    return absl::OkStatus();
  }
  NoteRefused(mapping);
  return MakeError(
      Code::kPermissionDenied, reason::kBuildOfAnother, "build_id",
      absl::StrCat("this build was ordered by ", owner.empty() ? "a caller without a name" : owner,
                   "; only that caller and an admin of \"", mapping, "\" may cancel it"),
      {{"mapping", std::string(mapping)}});
}

absl::Status Call::CheckExport() const {
  if (principal_ == nullptr || principal_->exports) return absl::OkStatus();
  return MakeError(
      Code::kPermissionDenied, reason::kExportNotAllowed, "",
      "this caller may not export artifacts, which hold rows that they were built from "
      "(export=no in the server's token file)");
}

absl::Status Call::Spend(Rated kind, int64_t count) const {
  if (principal_ == nullptr) return absl::OkStatus();
  absl::Status spent = principal_->Spend(kind, count, OnLoop() ? loop_->now() : SteadyNow());
  if (spent.ok() && kind == Rated::kRows && environment_.caller_series != nullptr) {
    CountersOf(*environment_.caller_series, *principal_)
        .rows->Increment(static_cast<double>(count));
  }
  return spent;
}

ChangeOrigin Call::Origin(absl::string_view operation_id) const {
  ChangeOrigin origin(operation_id);
  origin.method = method_.metrics.full_name;
  origin.peer = peer_;
  origin.request_id = request_id_.Text();
  origin.trace_id = request_id_.TraceId();
  if (principal_ != nullptr) {
    origin.principal = principal_->name;
    origin.stored = principal_->stored;
  }
  return origin;
}

}  // namespace phimap
