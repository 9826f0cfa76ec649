#include "server/api_listener.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "core/status/status_macros.h"
#include "server/http/openapi.h"
#include "server/rpc/transport/listener.h"
#include "server/rpc/transport/listening_socket.h"

namespace phimap {
namespace {

// A call whose client has been silent for this long does not hold up a shutdown.
constexpr absl::Duration kSilent = absl::Seconds(1);
constexpr auto kBetweenLooks = std::chrono::milliseconds(100);
// Time for clients to read the last answers.
constexpr auto kGrace = std::chrono::seconds(1);

Transport::Options TransportOptions(const ServerOptions& options) {
  Transport::Options out;
  out.io_threads = options.io_threads;
  out.max_descriptor = MaxConnectionDescriptor();
  out.limits.go_away_notice = absl::Seconds(options.lame_duck_seconds);
  out.limits.max_stall = absl::Seconds(options.stream_idle_seconds);
  out.max_connections = options.max_connections;
  out.max_connections_per_host = options.max_connections_per_host;
  out.proxies = options.proxies;
  out.header_proxies = options.header_proxies;
  if (options.max_connection_age_seconds > 0) {
    out.limits.max_age = absl::Seconds(options.max_connection_age_seconds);
    if (options.max_connection_age_grace_seconds > 0) {
      out.limits.max_age_grace = absl::Seconds(options.max_connection_age_grace_seconds);
    }
  }
  return out;
}

std::vector<std::string> TlsPaths(const TlsFiles& files) {
  std::vector<std::string> paths = {files.certificate, files.key};
  if (!files.client_ca.empty()) paths.push_back(files.client_ca);
  if (!files.client_crl.empty()) paths.push_back(files.client_crl);
  return paths;
}

// Opens the sockets. Sets `address` to options.listen, with port 0 replaced by the actual port.
absl::StatusOr<std::vector<Transport::Endpoint>> OpenEndpoints(const ServerOptions& options,
                                                               TlsContext* tls,
                                                               std::string& address) {
  std::vector<Transport::Endpoint> endpoints;
  absl::string_view path = options.listen;
  address = options.listen;
  if (absl::ConsumePrefix(&path, kUnixScheme)) {
    PHIMAP_ASSIGN_OR_RETURN(ListeningSocket socket,
                            ListeningSocket::Unix(std::string(path), options.unix_mode));
    endpoints.push_back({std::move(socket)});
  } else {
    PHIMAP_ASSIGN_OR_RETURN(std::vector<ListeningSocket> sockets,
                            ListeningSocket::Tcp(options.listen));
    address = WithPort(options.listen, sockets[0].port());
    for (ListeningSocket& socket : sockets) endpoints.push_back({std::move(socket), tls});
  }
  // A Unix socket does not need TLS, because its bytes do not leave the machine.
  if (!options.unix_listen.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(ListeningSocket socket,
                            ListeningSocket::Unix(options.unix_listen, options.unix_mode));
    endpoints.push_back({std::move(socket)});
  }
  return endpoints;
}

}  // namespace

ApiListener::ApiListener(const ServerOptions& options, Dispatcher& dispatcher,
                         const ConnectionMetrics& metrics, const Logger& logger)
    : dispatcher_(dispatcher),
      http_door_(dispatcher, HostNames(options.http_hosts), options.http_origins),
      transport_(TransportOptions(options), dispatcher, metrics, logger) {}

ApiListener::~ApiListener() = default;

absl::StatusOr<std::unique_ptr<ApiListener>> ApiListener::Listen(
    const ServerOptions& options, Dispatcher& dispatcher,
    const std::function<void(EventLoop&)>& add_loop, const ConnectionMetrics& metrics,
    const Logger& logger) {
  auto listener = absl::WrapUnique(new ApiListener(options, dispatcher, metrics, logger));
  PHIMAP_RETURN_IF_ERROR(listener->OpenTls(options, metrics, logger));
  PHIMAP_ASSIGN_OR_RETURN(std::vector<Transport::Endpoint> endpoints,
                          OpenEndpoints(options, listener->tls_.get(), listener->address_));
  if (!options.api_http.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(std::vector<ListeningSocket> sockets,
                            ListeningSocket::Tcp(options.api_http, "api_http"));
    // Made now, because it would stop the loop of the first request for it.
    OpenApi::OfApi();
    listener->http_address_ = WithPort(options.api_http, sockets[0].port());
    listener->http_door_.SetGrpcAddress(listener->address_);
    for (ListeningSocket& socket : sockets) {
      endpoints.push_back(
          {std::move(socket), listener->tls_.get(), Door{&listener->http_door_, /*http1=*/true}});
    }
  }
  for (int i = 0; i < listener->transport_.loops(); ++i) add_loop(listener->transport_.loop(i));
  listener->transport_.Listen(std::move(endpoints));
  return listener;
}

absl::Status ApiListener::OpenTls(const ServerOptions& options, const ConnectionMetrics& metrics,
                                  const Logger& logger) {
  if (options.tls.empty()) return absl::OkStatus();
  // Creates the watch before the files are read, so that a change during the read causes another
  // read.
  tls_watch_ =
      std::make_unique<FileWatch>(TlsPaths(options.tls), [this, options, &metrics, &logger] {
        const absl::Status reloaded = tls_->Reload();
        if (reloaded.ok()) return NoteTls(options, metrics, logger);
        metrics.tls_reload_failures->Increment();
        logger.Log(LogLevel::kError, "tls_files_wrong",
                   {{"error", reloaded.message()},
                    {"effect", "connections still use the previous files"}});
      });
  PHIMAP_ASSIGN_OR_RETURN(tls_, TlsContext::Open(options.tls));
  NoteTls(options, metrics, logger);
  tls_watch_->Start();
  return absl::OkStatus();
}

// Says when the certificate and the revocation lists end, so that the operator notices before
// clients do.
void ApiListener::NoteTls(const ServerOptions& options, const ConnectionMetrics& metrics,
                          const Logger& logger) {
  const auto text = [](absl::Time time) {
    return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
  };
  const absl::StatusOr<absl::Time> expires = CheckTlsFiles(options.tls);
  if (!expires.ok()) return;
  metrics.certificate_not_after->Set(static_cast<double>(absl::ToUnixSeconds(*expires)));
  absl::Time end = absl::InfiniteFuture();
  if (!options.tls.client_crl.empty()) {
    end = RevocationsEnd(options.tls.client_crl).value_or(absl::InfiniteFuture());
  }
  const bool ends = end != absl::InfiniteFuture();
  revocations_end_.store(ends ? static_cast<double>(absl::ToUnixSeconds(end))
                              : std::numeric_limits<double>::infinity());
  logger.Log(*expires < absl::Now() ? LogLevel::kWarning : LogLevel::kInfo, "tls",
             {{"certificate", options.tls.certificate},
              {"expires", text(*expires)},
              {"client_certificates", options.tls.client_ca.empty() ? "not asked" : "required"},
              {"revocations_end", ends ? text(end) : ""}});
}

void ApiListener::OnLoops(void (*task)()) {
  for (int i = 0; i < transport_.loops(); ++i) transport_.loop(i).Post(task);
}

void ApiListener::Shutdown(std::chrono::steady_clock::time_point lame_duck,
                           std::chrono::steady_clock::time_point deadline,
                           const std::function<void()>& lame_duck_over) {
  transport_.StopListening();
  transport_.BeginGoAway();
  const bool all_gone = transport_.AwaitEnd(lame_duck);
  lame_duck_over();
  if (all_gone) return;
  transport_.FinishGoAway();
  dispatcher_.StopAccepting();
  // Calls that have not ended by themselves are ended kGrace before the deadline, to leave time for
  // sending their final statuses.
  const auto end_calls = std::max(std::chrono::steady_clock::now(), deadline - kGrace);
  while (std::chrono::steady_clock::now() < end_calls) {
    const auto next = std::chrono::steady_clock::now() + kBetweenLooks;
    if (transport_.AwaitEnd(std::min(next, end_calls))) return;
    OnLoops([] { Call::CancelSilentCalls(kSilent); });
  }
  OnLoops([] { Call::CancelAllCalls(); });
  transport_.AwaitEnd(deadline);
  transport_.CloseAll();
}

}  // namespace phimap
