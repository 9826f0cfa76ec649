#include "server/http/host_names.h"

#include <arpa/inet.h>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

// The name in an authority: without its port, and in lower case. Empty if it is none.
std::string NameIn(absl::string_view authority) {
  if (absl::StartsWith(authority, "[")) {
    const size_t end = authority.find(']');
    return end == absl::string_view::npos ? "" : std::string(authority.substr(1, end - 1));
  }
  return absl::AsciiStrToLower(authority.substr(0, authority.find(':')));
}

bool IsIpAddress(const std::string& name) {
  in_addr v4{};
  in6_addr v6{};
  return inet_pton(AF_INET, name.c_str(), &v4) == 1 || inet_pton(AF_INET6, name.c_str(), &v6) == 1;
}

bool IsHostName(absl::string_view name) {
  return !name.empty() && name.size() <= 253 && absl::c_all_of(name, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  });
}

}  // namespace

HostNames::HostNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) names_.insert(absl::AsciiStrToLower(name));
}

absl::Status HostNames::Check(absl::string_view flag, absl::string_view name) {
  if (IsHostName(name)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kAddressInvalid, std::string(flag),
      absl::StrCat("expected a host name without a port, as features.example.com, got ",
                   Quoted(name)));
}

bool HostNames::Know(absl::string_view authority) const {
  const std::string name = NameIn(authority);
  if (name.empty()) return false;
  if (IsIpAddress(name) || names_.contains(name)) return true;
  if (!IsHostName(name)) return false;
  return name.find('.') == std::string::npos || absl::EndsWith(name, ".localhost") ||
         absl::EndsWith(name, ".internal") || absl::EndsWith(name, ".cluster.local");
}

}  // namespace phimap
