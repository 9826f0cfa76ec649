#include "server/transport/listen_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

constexpr uint32_t kMaxPort = 65535;

// "[::1]:80" → "::1", "host:80" → "host".
std::string HostOf(absl::string_view address) {
  const size_t colon = address.rfind(':');
  absl::string_view host = address.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return std::string(host);
}

}  // namespace

bool IsLoopbackAddress(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  if (address.rfind(':') == absl::string_view::npos) return false;
  const std::string host = HostOf(address);
  if (host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

absl::Status CheckAddress(absl::string_view flag, absl::string_view address) {
  if (absl::StartsWith(address, "unix:") && address.size() > 5) return absl::OkStatus();
  const size_t colon = address.rfind(':');
  const bool has_port = colon != absl::string_view::npos && colon > 0;
  const absl::string_view port = has_port ? address.substr(colon + 1) : "";
  uint32_t number = 0;
  // Digits only: SimpleAtoi would also accept spaces and signs.
  const bool digits = !port.empty() && std::all_of(port.begin(), port.end(), absl::ascii_isdigit);
  if (digits && absl::SimpleAtoi(port, &number) && number <= kMaxPort) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, "ADDRESS_INVALID", flag,
                   absl::StrCat("expected HOST:PORT with a port in 0..", kMaxPort,
                                " (0: any free port) or unix:PATH, got \"", address, "\""),
                   {{"address", std::string(address)}});
}

absl::Status CheckReachable(absl::string_view flag, absl::string_view address, bool allowed) {
  if (allowed || IsLoopbackAddress(address)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kInvalidArgument, "ADDRESS_NOT_LOOPBACK", flag,
      absl::StrCat("\"", address,
                   "\" can be reached from other machines, but its connections are not both "
                   "encrypted and authenticated; listen on 127.0.0.1 instead, or (for the API) set "
                   "--tls_certificate and --tls_key together with --token_file or "
                   "--tls_client_ca, or set --insecure on a private network"),
      {{"address", std::string(address)}});
}

std::string WithPort(absl::string_view address, int port) {
  if (absl::StartsWith(address, "unix:")) return std::string(address);
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

}  // namespace phimap
