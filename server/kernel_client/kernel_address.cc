#include "server/kernel_client/kernel_address.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"

namespace phimap {
namespace {

constexpr size_t kMaxNameLength = 63;

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxNameLength && absl::ascii_islower(name[0]) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
         });
}

bool IsTarget(absl::string_view target) {
  const size_t colon = target.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return false;
  const absl::string_view port = target.substr(colon + 1);
  uint32_t number = 0;
  return std::all_of(port.begin(), port.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(port, &number) && number >= 1 && number <= 65535 &&
         // gRPC would read a target with a '/' as a URI scheme.
         !absl::StrContains(target, "/");
}

}  // namespace

absl::StatusOr<KernelAddress> ParseKernelAddress(absl::string_view text) {
  const size_t equals = text.find('=');
  KernelAddress address;
  absl::string_view target;
  if (equals != absl::string_view::npos) {
    address.name = std::string(text.substr(0, equals));
    target = text.substr(equals + 1);
  }
  const bool unix_socket = absl::StartsWith(target, "unix:/");
  address.tls = absl::ConsumePrefix(&target, "tls:");
  address.target = std::string(target);
  if (IsName(address.name) && (unix_socket || IsTarget(target))) return address;
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kKernelServiceInvalid,
                   "--kernel_service",
                   absl::StrCat("expected NAME=HOST:PORT, NAME=tls:HOST:PORT or NAME=unix:/PATH, "
                                "where NAME has lower-case letters, digits and '_', got ",
                                absl::StrContains(text, '@')
                                    ? "one with @, which is not repeated here, since it may hold a "
                                      "password"
                                    : Quoted(text)));
}

}  // namespace phimap
