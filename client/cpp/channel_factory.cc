#include "client/cpp/channel_factory.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap::client {
namespace {

constexpr int kMaxMessageSizeBytes = 64 << 20;
constexpr absl::string_view kUnix = "unix:";
// Prefixes of targets that may name several servers, in gRPC's syntax.
constexpr absl::string_view kIpv4 = "ipv4:";
constexpr absl::string_view kIpv6 = "ipv6:";
constexpr absl::string_view kDns = "dns:///";

absl::Status BadOption(absl::string_view reason, absl::string_view field, absl::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason, field, why);
}

bool IsHostAndPort(absl::string_view address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  return colon != absl::string_view::npos && colon != 0 &&
         absl::SimpleAtoi(address.substr(colon + 1), &port) && port > 0 && port <= 65'535;
}

// Returns the addresses in `target`. Only ipv4: and ipv6: targets can list several.
std::vector<absl::string_view> AddressesOf(absl::string_view target) {
  if (absl::ConsumePrefix(&target, kIpv4) || absl::ConsumePrefix(&target, kIpv6)) {
    return absl::StrSplit(target, ',');
  }
  absl::ConsumePrefix(&target, kDns);
  return {target};
}

bool IsLoopback(absl::string_view address) {
  absl::string_view host = address.substr(0, address.rfind(':'));
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  if (host == "localhost") return true;
  const std::string text(host);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool NamesSeveralServers(absl::string_view target) {
  return absl::StartsWith(target, kIpv4) || absl::StartsWith(target, kIpv6) ||
         absl::StartsWith(target, kDns);
}

absl::Status CheckTarget(absl::string_view target) {
  if (absl::StartsWith(target, kUnix) && target.size() > kUnix.size()) return absl::OkStatus();
  const std::vector<absl::string_view> addresses = AddressesOf(target);
  if (std::all_of(addresses.begin(), addresses.end(), IsHostAndPort)) return absl::OkStatus();
  return BadOption(reason::kTargetInvalid, "server",
                   absl::StrCat("expected HOST:PORT, unix:PATH, or for several servers "
                                "ipv4:ADDRESS:PORT,ADDRESS:PORT or dns:///HOST:PORT, got '",
                                target, "'"));
}

// Checks that a header may carry the token (RFC 6750, section 2.1); gRPC aborts on anything else.
// The error does not quote the token.
absl::Status CheckToken(absl::string_view token) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("-._~+/=", c);
  };
  if (std::all_of(token.begin(), token.end(), allowed)) return absl::OkStatus();
  return BadOption(reason::kTokenInvalid, "token",
                   "a token holds letters, digits and -._~+/= only");
}

absl::StatusOr<std::string> ReadPem(absl::string_view field, const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.good() || text.str().empty()) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kTlsFileInvalid, field,
                     absl::StrCat("cannot read ", path, ": ",
                                  file.is_open() ? "it is empty" : std::strerror(errno)),
                     {{"path", path}});
  }
  return text.str();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsOf(const TlsOptions& tls) {
  if (tls.certificate_file.empty() != tls.key_file.empty()) {
    return BadOption(reason::kTlsOptionsInvalid,
                     tls.key_file.empty() ? "tls.certificate_file" : "tls.key_file",
                     "a client TLS certificate and its key must be given together");
  }
  if (tls.ca_file.empty()) {
    if (tls.certificate_file.empty()) return grpc::InsecureChannelCredentials();
    return BadOption(
        reason::kTlsOptionsInvalid, "tls.ca_file",
        "a client TLS certificate requires the authorities of the server's certificate");
  }
  grpc::SslCredentialsOptions options;
  PHIMAP_ASSIGN_OR_RETURN(options.pem_root_certs, ReadPem("tls.ca_file", tls.ca_file));
  PHIMAP_ASSIGN_OR_RETURN(options.pem_cert_chain,
                          ReadPem("tls.certificate_file", tls.certificate_file));
  PHIMAP_ASSIGN_OR_RETURN(options.pem_private_key, ReadPem("tls.key_file", tls.key_file));
  return grpc::SslCredentials(options);
}

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageSizeBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageSizeBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetUserAgentPrefix("phimap-cpp");
  // Without this, channels with equal arguments share one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A server with gRPC's defaults closes connections of clients that ping more often than every 5
  // minutes.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 360'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
  // Build reconnects to a restarted server by its own backoff, so gRPC's backoff must not be
  // slower. MIN_RECONNECT_BACKOFF_MS also limits how long one attempt to connect may take.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5'000);
  return arguments;
}

// Adds the token to every call.
class TokenInterceptor final : public grpc::experimental::Interceptor {
 public:
  explicit TokenInterceptor(const std::string& authorization) : authorization_(authorization) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace("authorization", authorization_);
    }
    methods->Proceed();
  }

 private:
  const std::string& authorization_;
};

class TokenInterceptors final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenInterceptors(const std::string& token)
      : authorization_(absl::StrCat("Bearer ", token)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo*) override {
    return new TokenInterceptor(authorization_);
  }

 private:
  const std::string authorization_;
};

}  // namespace

bool StaysOnThisMachine(absl::string_view target) {
  if (absl::StartsWith(target, kUnix)) return true;
  const std::vector<absl::string_view> addresses = AddressesOf(target);
  return std::all_of(addresses.begin(), addresses.end(), IsLoopback);
}

absl::StatusOr<ChannelFactory> ChannelFactory::Create(absl::string_view target,
                                                      const ConnectOptions& options) {
  PHIMAP_RETURN_IF_ERROR(CheckTarget(target));
  PHIMAP_RETURN_IF_ERROR(CheckToken(options.token));
  PHIMAP_ASSIGN_OR_RETURN(std::shared_ptr<grpc::ChannelCredentials> credentials,
                          CredentialsOf(options.tls));
  if (!options.token.empty() && options.tls.ca_file.empty() && !StaysOnThisMachine(target)) {
    return BadOption(
        reason::kTokenInClear, "token",
        absl::StrCat("it would be sent to ", target,
                     " unencrypted, so that others could read and use it; connect with TLS"));
  }
  return ChannelFactory(std::string(target), options.token, options.tls.server_name,
                        std::move(credentials));
}

ChannelFactory::ChannelFactory(std::string target, std::string token, std::string server_name,
                               std::shared_ptr<grpc::ChannelCredentials> credentials)
    : target_(std::move(target)),
      token_(std::move(token)),
      server_name_(std::move(server_name)),
      credentials_(std::move(credentials)) {}

std::shared_ptr<grpc::Channel> ChannelFactory::Make() const {
  grpc::ChannelArguments arguments = Arguments();
  if (NamesSeveralServers(target_)) arguments.SetLoadBalancingPolicyName("round_robin");
  if (!server_name_.empty()) arguments.SetSslTargetNameOverride(server_name_);
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  if (!token_.empty()) interceptors.push_back(std::make_unique<TokenInterceptors>(token_));
  return grpc::experimental::CreateCustomChannelWithInterceptors(target_, credentials_, arguments,
                                                                 std::move(interceptors));
}

}  // namespace phimap::client
