#include "server/options.h"

#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/status/command_line.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/cgroup.h"
#include "server/http/host_names.h"
#include "server/http/http_door.h"
#include "server/observe/process_memory.h"
#include "server/rpc/transport/listening_socket.h"
#include "server/rpc/transport/peer.h"
#include "server/start_failure.h"
#include "server/store/postgres/postgres_uri.h"
#include "server/trace/collector_client.h"

namespace phimap {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kTiB = int64_t{1} << 40;
// Minimum of --memory_bytes. A stream that waits for capacity keeps up to 32 KiB. All such streams
// together may use a sixteenth of the budget, so a sixteenth of the budget must hold at least one
// such stream.
constexpr int64_t kLeastMemoryBytes = 16 * 32 * kKiB;
constexpr int64_t kMaxCacheBytes = 1024 * kTiB;
constexpr char kExitCodeHelp[] =
    "Exit codes:\n"
    "  0  stopped by SIGTERM or SIGINT; or printed --help, --version or --print_config\n"
    "  1  failed, for example because the store cannot be opened or an address cannot be bound\n"
    "  2  wrong usage; nothing was created\n"
    "\n"
    "`phimapd admin` checks, backs up, restores or cleans up a store, while its servers run:\n"
    "phimapd admin --help\n";

// Type name in --help of flags that take a file or a folder.
constexpr char kPath[] = "PATH";

// The settings of which SIGHUP puts a new value in force: the level of the log, which main sets,
// and limits, which Server::Follow sets.
constexpr absl::string_view kFollowSighup[] = {
    "memory_bytes",       "max_calls_per_caller",     "max_connections", "max_builds",
    "build_memory_bytes", "max_connections_per_host", "max_live_bytes",  "training_disk_bytes",
    "log_level",          "log_calls_one_in"};

// Settings of a server, as ParseOptions fills them in.
struct Flags {
  Flags();

  ServerOptions options;
  // As given; CompleteOptions parses them.
  std::vector<std::string> kernel_services;
  std::string certificate_role{RoleName(options.client_certificate_role)};
  std::string log_level = "info";
  std::string log_format = "text";
  std::string config;
  bool print_config = false;
  bool json = false;
  // Refers to all of the above.
  CLI::App app{"phimapd: builds kernel mappings from streams of examples and serves them.",
               "phimapd"};
};

void AddConfigFlags(CLI::App& app, Flags& flags) {
  app.add_option(kConfigFlag, flags.config,
                 "File of settings (TOML), whose keys are flags without dashes, as in max_builds = "
                 "4. A flag beats the environment (PHIMAPD_MAX_BUILDS=4), which beats the file. "
                 "SIGHUP reads the file again: new values of flags that follow SIGHUP are in force "
                 "at once, others after a restart.")
      ->type_name(kPath);
  app.add_flag(kPrintConfigFlag, flags.print_config,
               "Print each setting with the place that it comes from, and exit.");
  app.add_flag(kJsonFlag, flags.json, "With --print_config: print one JSON object.");
}

void AddStoreFlags(CLI::App& app, ServerOptions& options) {
  app.add_option("--store", options.store,
                 "Where names and artifacts are stored: \"sqlite\" (in --data_dir, for "
                 "this server alone) or a libpq URI, postgresql://USER@HOST:PORT/DATABASE, "
                 "that several servers share. The password is read from the file that the "
                 "environment variable PGPASSFILE points to.")
      ->capture_default_str();
  app.add_option("--data_dir", options.data_dir,
                 "Directory of the SQLite store. Required with --store=sqlite. It is "
                 "created if missing; its parent must exist.")
      ->type_name(kPath);
  app.add_option("--cache_dir", options.cache_dir,
                 "With PostgreSQL: directory for this server's own copies of artifacts, "
                 "created if missing. It may be deleted while the server is stopped. "
                 "Default: DATA_DIR/cache.")
      ->type_name(kPath);
  app.add_option("--cache_bytes", options.cache_bytes,
                 "Maximum size of --cache_dir in bytes. The least recently used copies are "
                 "removed first.")
      ->check(IntegerFrom(0, kMaxCacheBytes))
      ->capture_default_str();
  app.add_option("--gc_grace_seconds", options.gc_grace_seconds,
                 "Seconds for which an artifact is kept after the last version that uses "
                 "it was deleted. Must exceed the longest load or upload.")
      ->check(IntegerFrom(60, 86400 * 365))
      ->capture_default_str();
  app.add_option("--scrub_bytes_per_second", options.scrub_bytes_per_second,
                 "Maximum rate, in bytes per second, of the daily check of stored "
                 "artifacts against their digests; 0 turns the check off.")
      ->check(IntegerFrom(0, kMaxCacheBytes))
      ->capture_default_str();
}

void AddAddressFlags(CLI::App& app, ServerOptions& options) {
  app.add_option("--listen", options.listen,
                 "Address of the gRPC API: HOST:PORT or unix:PATH. Port 0 picks a free "
                 "port.")
      ->capture_default_str();
  app.add_option("--unix_listen", options.unix_listen,
                 "Path of an additional Unix-domain socket for the API (clients connect to "
                 "unix:PATH). A socket left there by a dead server is replaced.")
      ->type_name(kPath);
  app.add_option_function<std::string>(
         "--unix_mode",
         [&options](const std::string& mode) {
           options.unix_mode = mode == "0660" ? 0660 : mode == "0666" ? 0666 : 0600;
         },
         "Who may connect to Unix-domain sockets: 0600 this user only, 0660 its group too, 0666 "
         "all. More than 0600 needs --token_file, which says what each user may.")
      ->check(OneOf({"0600", "0660", "0666"}))
      ->default_str("0600");
  app.add_option("--http", options.http,
                 "Address of the HTTP endpoints /metrics (Prometheus), /livez and /readyz: "
                 "HOST:PORT. Port 0 picks a free port; \"none\" turns them off.")
      ->capture_default_str();
  app.add_option("--api_http", options.api_http,
                 "Address of the API over HTTP, with JSON: HOST:PORT. The TLS files, tokens and "
                 "limits are those of --listen. Port 0 picks a free port; without this flag there "
                 "is none.");
  app.add_option("--http_hosts", options.http_hosts,
                 "Names of this server, such as features.example.com, that a request over HTTP may "
                 "have in its header Host. IP addresses and names without a dot are always "
                 "allowed; others are refused, because a stranger's page could use them to read "
                 "answers in a browser.")
      ->delimiter(',')
      ->type_name("NAME,...");
  app.add_option("--http_origins", options.http_origins,
                 "Origins of other sites, such as https://app.example.com, whose pages may call "
                 "--api_http from a browser and read its answers (CORS). Pages of all others are "
                 "refused.")
      ->delimiter(',')
      ->type_name("ORIGIN,...");
  app.add_flag("--insecure", options.insecure,
               "Allow other machines to reach an address that lacks encryption or "
               "authentication. The HTTP endpoints have neither, so --http with an address that "
               "other machines can reach always needs this flag.");
}

void AddAccessFlags(CLI::App& app, ServerOptions& options, std::string& certificate_role) {
  app.add_option("--tls_certificate", options.tls.certificate,
                 "File with the server's TLS certificate chain (PEM), the server's own "
                 "certificate first. TLS files are reloaded when they change.")
      ->type_name(kPath);
  app.add_option("--tls_key", options.tls.key,
                 "File with the private key of --tls_certificate (PEM, not encrypted).")
      ->type_name(kPath);
  app.add_option("--tls_client_ca", options.tls.client_ca,
                 "File with certificate authorities (PEM). Only clients with a TLS "
                 "certificate signed by one of them may connect.")
      ->type_name(kPath);
  app.add_option("--tls_client_crl", options.tls.client_crl,
                 "File with certificate revocation lists (PEM) of the authorities in "
                 "--tls_client_ca. A client whose certificate is on its authority's list is "
                 "refused, and so is one whose authority has no valid list here.")
      ->type_name(kPath);
  app.add_option("--client_certificate_role", certificate_role,
                 "Role of clients with a verified TLS certificate when there is no "
                 "--token_file.")
      ->check(OneOf({"reader", "builder", "admin"}))
      ->capture_default_str();
  app.add_option(
         "--token_file", options.token_file,
         "File of those who may call, one per line: [NAME] ROLE TOKEN [OPTIONS], where ROLE is "
         "reader, builder or admin, and TOKEN a bearer token, sha256:DIGEST of one, "
         "certificate:… or user:…; options are the names of mappings, export=no, limits and "
         "until=DATE. All others are refused. The file is reloaded when it changes.")
      ->type_name(kPath);
  app.add_option("--audit_log", options.audit_log,
                 "File to which each entry of the audit is appended, as a line of JSON. While it "
                 "cannot be written, this server makes no changes. A file that was renamed is "
                 "begun anew.")
      ->type_name(kPath);
}

void AddCallerFlags(CLI::App& app, ServerOptions& options) {
  app.add_option("--max_message_bytes", options.max_message_bytes,
                 "Maximum size of a request or response message in bytes.")
      ->check(IntegerFrom(64 * kKiB, int64_t{std::numeric_limits<int>::max()}))
      ->capture_default_str();
  app.add_option("--memory_bytes", options.memory_bytes,
                 "Memory for requests and responses in bytes, reserved before a message "
                 "arrives and released when its answer is sent. While all of it is reserved, "
                 "unary calls are refused and streams wait. If no other request holds memory, a "
                 "request is admitted whatever its size. Without this flag, less if the "
                 "container has too little memory.")
      ->check(IntegerFrom(kLeastMemoryBytes, kTiB))
      ->capture_default_str();
  app.add_option("--max_calls_per_caller", options.max_calls_per_caller,
                 "Maximum number of concurrent calls of one caller: a name of the token file, or a "
                 "token or TLS certificate without one.")
      ->check(IntegerFrom(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--max_connections", options.max_connections,
                 "Maximum number of connections to the API. Further ones are closed at once. "
                 "Without this flag, less if the container has too little memory.")
      ->check(IntegerFrom(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--max_connections_per_host", options.max_connections_per_host,
                 "Maximum number of connections from one IPv4 address or one IPv6 network of 64 "
                 "bits. The Unix socket and addresses given with --proxy are not limited.")
      ->check(IntegerFrom(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--proxy", options.proxies,
                 "IP address of a proxy or load balancer that connects on behalf of many "
                 "clients; may be repeated.");
  app.add_option("--proxy_protocol", options.header_proxies,
                 "IP address of a proxy that begins each of its connections with a header of the "
                 "PROXY protocol, version 2, which names the client; may be repeated. Logs have "
                 "the client's address, and limits by address are the client's. Connections of "
                 "the proxy without the header are refused, and so is the header of others. "
                 "\"unix\" stands for all connections to Unix sockets.");
}

void AddLimitFlags(CLI::App& app, ServerOptions& options) {
  const IntegerFrom bytes(kKiB, kTiB);
  app.add_option("--max_live_bytes", options.max_live_bytes,
                 "Memory for loaded versions in bytes. The least recently used versions "
                 "are unloaded first. Without this flag, less if the container has too little "
                 "memory.")
      ->check(bytes)
      ->capture_default_str();
  app.add_option("--max_builds", options.max_builds, "Maximum number of unfinished builds.")
      ->check(IntegerFrom(1, 1024))
      ->capture_default_str();
  app.add_option("--build_memory_bytes", options.build_memory_bytes,
                 "Memory for unfinished builds, imports and evaluations together, in "
                 "bytes. Without this flag, less if the container has too little memory.")
      ->check(bytes)
      ->capture_default_str();
  app.add_option("--training_disk_bytes", options.training_disk_bytes,
                 "Disk for the rows of trainings that build their own features, in bytes, in "
                 "--data_dir or --cache_dir. The files have no names and are gone when the server "
                 "ends.")
      ->check(bytes)
      ->capture_default_str();
}

void AddKernelFlags(CLI::App& app, ServerOptions& options, std::vector<std::string>& services) {
  app.add_option("--kernel_service", services,
                 "Kernel service that kernel expressions may use, as NAME=ADDRESS; may be "
                 "repeated. ADDRESS is HOST:PORT, tls:HOST:PORT or unix:/PATH. The server "
                 "calls no other service.");
  app.add_option("--kernel_service_ca", options.kernel_service_ca,
                 "File of certificate authorities (PEM) for kernel services given as "
                 "tls:HOST:PORT. Default: the system's.")
      ->type_name(kPath);
  app.add_option("--kernel_service_seconds", options.kernel_service_seconds,
                 "Timeout of a call to a kernel service in seconds.")
      ->check(IntegerFrom(1, 3600))
      ->capture_default_str();
}

void AddTimeFlags(CLI::App& app, ServerOptions& options) {
  app.add_option("--build_idle_seconds", options.build_idle_seconds,
                 "Seconds for which a build, import, export or evaluation waits for its "
                 "client before the call is ended.")
      ->check(IntegerFrom(1, 86400))
      ->capture_default_str();
  app.add_option("--stream_idle_seconds", options.stream_idle_seconds,
                 "Idle limit in seconds. A call of TransformStream or ModelStreamInfer ends if its "
                 "client sends nothing for this long; any call ends if its client reads its "
                 "answer at less than 1 KiB/s for this long.")
      ->check(IntegerFrom(1, 86400))
      ->capture_default_str();
  app.add_option("--max_connection_age_seconds", options.max_connection_age_seconds,
                 "Seconds after which a connection is closed gracefully, so that clients "
                 "reconnect and load balancers can spread them; 0: never.")
      ->check(IntegerFrom(0, 86400 * 365))
      ->capture_default_str();
  app.add_option("--max_connection_age_grace_seconds", options.max_connection_age_grace_seconds,
                 "Seconds that calls in progress then have to end, before the connection is closed "
                 "with them; 0: as long as they take.")
      ->check(IntegerFrom(0, 86400 * 365))
      ->capture_default_str();
  app.add_option("--warm_seconds", options.warm_seconds,
                 "Maximum seconds for which /readyz and the health service report \"not "
                 "serving\" at start, while the versions that aliases point to are loaded. "
                 "Calls are answered meanwhile. 0: ready at once.")
      ->check(IntegerFrom(0, 3600))
      ->capture_default_str();
  app.add_option("--lame_duck_seconds", options.lame_duck_seconds,
                 "Seconds for which new calls are accepted after SIGTERM, while clients "
                 "and load balancers move elsewhere. This time is part of --drain_seconds "
                 "and must be shorter.")
      ->check(IntegerFrom(0, 3600))
      ->capture_default_str();
  app.add_option("--drain_seconds", options.drain_seconds,
                 "Maximum time in seconds for calls and builds to finish after SIGTERM.")
      ->check(IntegerFrom(0, 86400))
      ->capture_default_str();
}

void AddThreadFlags(CLI::App& app, ServerOptions& options) {
  app.add_option("--io_threads", options.io_threads,
                 "Number of threads that read requests and send answers. Values above 1 "
                 "have not been measured.")
      ->check(IntegerFrom(1, 64))
      ->capture_default_str();
  app.add_option("--compute_threads", options.compute_threads,
                 "Number of threads that compute features; 0: the number of cores that the "
                 "process may use.")
      ->check(IntegerFrom(0, 64))
      ->capture_default_str();
}

void AddLogFlags(CLI::App& app, ServerOptions& options, std::string& level, std::string& format) {
  app.add_option("--log_level", level, "Minimum level of the log lines written to stderr.")
      ->check(OneOf({"debug", "info", "warning", "error", "off"}))
      ->capture_default_str();
  app.add_option("--log_format", format,
                 "Format of log lines: text (key=value) or json (one object per line).")
      ->check(OneOf({"text", "json"}))
      ->capture_default_str();
  app.add_option("--log_calls_one_in", options.log_calls_one_in,
                 "Log one in this many successful calls at level info; 0: none, 1: all. Calls that "
                 "fail are always logged.")
      ->check(IntegerFrom(0, 1'000'000'000))
      ->capture_default_str();
}

void AddTraceFlags(CLI::App& app, ServerOptions& options) {
  app.add_option("--trace_endpoint", options.trace_endpoint,
                 "OpenTelemetry collector that traces of calls are sent to, by OTLP over HTTP: "
                 "http://HOST:PORT or https://HOST:PORT, to which /v1/traces is added unless there "
                 "is another path. Traces have names and numbers, and no rows. Without this flag "
                 "there are none.")
      ->type_name("URL");
  app.add_option(
         "--trace_ratio", options.trace_ratio,
         "Part of the calls that are traced. A caller that sends the header traceparent decides "
         "for its calls.")
      ->check(NumberFrom(0, 1))
      ->capture_default_str();
}

absl::Status BadFlags(absl::string_view flag, absl::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kFlagInvalid, flag, why);
}

// Returns the kind of value that `option` takes, in words.
absl::string_view Expected(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == kPath) return "a path";
  return absl::StartsWith(type, "INT") ? "an integer" : "a value";
}

// Rejects flags without a value. CLI11 treats an empty value as a missing one, and reports "TEXT"
// as missing in both cases.
absl::Status CheckNotEmpty(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    const CLI::Option* const option = absl::StartsWith(parts.first, "--")
                                          ? app.get_option_no_throw(std::string(parts.first))
                                          : nullptr;
    if (option == nullptr || option->get_items_expected_min() == 0) continue;
    const bool in_next = absl::string_view(argv[i]) == parts.first;
    const absl::string_view value = !in_next ? parts.second : i + 1 < argc ? argv[i + 1] : "";
    // CLI11 reads an argument that begins with -- as the next flag.
    if (!value.empty() && !(in_next && absl::StartsWith(value, "--"))) continue;
    return BadFlags(parts.first, absl::StrCat("expected ", Expected(*option), ", got nothing"));
  }
  return absl::OkStatus();
}

absl::Status CheckStoreFlags(const ServerOptions& options) {
  if (!options.on_postgres()) {
    if (options.data_dir.empty()) return BadFlags("--data_dir", "expected a path, got nothing");
    if (!options.cache_dir.empty()) {
      return BadFlags("--cache_dir",
                      "must not be set with --store=sqlite, which keeps artifacts in --data_dir");
    }
    return absl::OkStatus();
  }
  if (!absl::StartsWith(options.store, "postgresql://") &&
      !absl::StartsWith(options.store, "postgres://")) {
    return BadFlags("--store", "expected \"sqlite\" or postgresql://USER@HOST:PORT/DATABASE");
  }
  const absl::Status uri = CheckPostgresUri(options.store);
  if (!uri.ok()) return BadFlags("--store", uri.message());
  if (options.cache_dir.empty()) return BadFlags("--cache_dir", "expected a path, got nothing");
  return absl::OkStatus();
}

absl::Status CheckTlsFlags(const ServerOptions& options) {
  if (options.tls.certificate.empty() != options.tls.key.empty()) {
    return options.tls.key.empty()
               ? BadFlags("--tls_certificate", "expected --tls_key to be set as well")
               : BadFlags("--tls_key", "expected --tls_certificate to be set as well");
  }
  if (!options.tls.client_ca.empty() && options.tls.empty()) {
    return BadFlags("--tls_client_ca",
                    "expected --tls_certificate and --tls_key to be set as well");
  }
  if (!options.tls.client_crl.empty() && options.tls.client_ca.empty()) {
    return BadFlags("--tls_client_crl", "expected --tls_client_ca to be set as well");
  }
  return absl::OkStatus();
}

// Checks that --lame_duck_seconds is less than --drain_seconds: the difference is the time that
// calls in progress have to finish. The default of --lame_duck_seconds need not be checked, because
// Shutdown ends the lame-duck time at the end of the drain.
absl::Status CheckTimes(const ServerOptions& options, bool lame_duck_given) {
  if (!lame_duck_given || options.lame_duck_seconds == 0 ||
      options.lame_duck_seconds < options.drain_seconds) {
    return absl::OkStatus();
  }
  return BadFlags(
      "--lame_duck_seconds",
      absl::StrCat("expected less than --drain_seconds=", options.drain_seconds,
                   ", because the lame-duck time is part of it; got ", options.lame_duck_seconds));
}

absl::Status CheckAddresses(const ServerOptions& options) {
  if (options.unix_mode != 0600 && options.token_file.empty()) {
    return BadFlags("--unix_mode",
                    "expected --token_file to be set as well: without it, whoever connects to the "
                    "Unix socket is an admin");
  }
  const bool asks = !options.token_file.empty() || !options.tls.client_ca.empty();
  const bool guarded = !options.tls.empty() && asks;
  PHIMAP_RETURN_IF_ERROR(CheckAddress("--listen", options.listen));
  PHIMAP_RETURN_IF_ERROR(CheckReachable("--listen", options.listen, guarded || options.insecure));
  if (!options.api_http.empty()) {
    PHIMAP_RETURN_IF_ERROR(CheckAddress("--api_http", options.api_http));
    PHIMAP_RETURN_IF_ERROR(
        CheckReachable("--api_http", options.api_http, guarded || options.insecure));
  }
  for (const std::string& name : options.http_hosts) {
    PHIMAP_RETURN_IF_ERROR(HostNames::Check("--http_hosts", name));
  }
  for (const std::string& origin : options.http_origins) {
    PHIMAP_RETURN_IF_ERROR(HttpDoor::CheckOrigin("--http_origins", origin));
  }
  if (options.http.empty()) return absl::OkStatus();
  PHIMAP_RETURN_IF_ERROR(CheckAddress("--http", options.http));
  return CheckReachable("--http", options.http, options.insecure);
}

// Converts the addresses of proxies to the canonical form, so that they can be compared with the
// addresses of connections.
absl::Status TakeProxies(ServerOptions& options) {
  for (std::string& proxy : options.proxies) {
    PHIMAP_ASSIGN_OR_RETURN(proxy, CanonicalIpAddress("--proxy", proxy));
  }
  return absl::OkStatus();
}

absl::Status TakeTraceFlags(ServerOptions& options) {
  if (options.trace_endpoint.empty()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(options.trace_endpoint,
                          CollectorUrl("--trace_endpoint", options.trace_endpoint));
  return absl::OkStatus();
}

absl::Status TakeHeaderProxies(ServerOptions& options) {
  constexpr char kFlag[] = "--proxy_protocol";
  for (std::string& proxy : options.header_proxies) {
    if (proxy == "unix") {
      if (!options.unix_listen.empty() || absl::StartsWith(options.listen, kUnixScheme)) continue;
      return BadFlags(kFlag, "\"unix\" expects a Unix socket, of --unix_listen or --listen");
    }
    PHIMAP_ASSIGN_OR_RETURN(proxy, CanonicalIpAddress(kFlag, proxy));
    if (absl::c_linear_search(options.proxies, proxy)) {
      return BadFlags(kFlag, absl::StrCat(proxy,
                                          " is in --proxy too; name it in one of the two: "
                                          "in --proxy if it sends no header"));
    }
  }
  return absl::OkStatus();
}

// Parses the list of kernel services. Rejects services on other machines without TLS, unless
// --insecure is set, because examples would be sent unencrypted.
absl::Status TakeKernelServices(const std::vector<std::string>& texts, ServerOptions& options) {
  for (const std::string& text : texts) {
    PHIMAP_ASSIGN_OR_RETURN(KernelAddress address, ParseKernelAddress(text));
    if (!address.tls && !options.insecure && !IsLoopbackAddress(address.target)) {
      return BadFlags("--kernel_service",
                      absl::StrCat("\"", address.target,
                                   "\" is on another machine, and examples would be sent there "
                                   "unencrypted; use tls:HOST:PORT, or --insecure on a private "
                                   "network"));
    }
    options.kernel_services.push_back(std::move(address));
  }
  return absl::OkStatus();
}

// Lowers the limits of memory that are not set, so that they fit into what the cgroups allow.
void FitMemory(const CLI::App& app, ServerOptions& options) {
  options.cgroup_memory_bytes = LeastCgroupLimit("memory", "memory.max", "memory.limit_in_bytes");
  if (!options.cgroup_memory_bytes.has_value()) return;
  const MemoryLimits fitted =
      FitInto(*options.cgroup_memory_bytes, MemoryLimitsOf(options),
              {app.count("--max_live_bytes") > 0, app.count("--memory_bytes") > 0,
               app.count("--build_memory_bytes") > 0, app.count("--max_connections") > 0});
  options.max_live_bytes = fitted[static_cast<int>(MemoryPart::kLive)];
  options.memory_bytes = fitted[static_cast<int>(MemoryPart::kRequests)];
  options.build_memory_bytes = fitted[static_cast<int>(MemoryPart::kBuilds)];
  options.max_connections = static_cast<int>(fitted[static_cast<int>(MemoryPart::kConnections)]);
}

// Fills in options that depend on other flags, and checks all of them.
absl::Status CompleteOptions(Flags& flags) {
  ServerOptions& options = flags.options;
  FitMemory(flags.app, options);
  if (options.http == "none") options.http.clear();
  if (options.on_postgres() && options.cache_dir.empty() && !options.data_dir.empty()) {
    options.cache_dir = options.data_dir + "/cache";
  }
  options.client_certificate_role = *ParseRole(flags.certificate_role);  // checked by OneOf
  options.log_level = *ParseLogLevel(flags.log_level);                   // checked by OneOf
  options.log_format = *ParseLogFormat(flags.log_format);                // checked by OneOf
  for (const absl::Status& status :
       {CheckStoreFlags(options), CheckTlsFlags(options),
        CheckTimes(options, flags.app.count("--lame_duck_seconds") > 0), CheckAddresses(options),
        TakeProxies(options), TakeHeaderProxies(options),
        TakeKernelServices(flags.kernel_services, options), TakeTraceFlags(options)}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Shows defaults as CompleteOptions has changed them.
void ShowDefaults(const ServerOptions& options, std::vector<Setting>& settings) {
  const auto show = [&settings](absl::string_view name, std::string value, SettingSource source) {
    Setting& setting = *FindSetting(settings, name);
    const std::vector<std::string> values = {std::move(value)};
    if (setting.source != SettingSource::kDefault || setting.values == values) return;
    setting.values = values;
    setting.source = source;
  };
  if (!options.cache_dir.empty()) show("cache_dir", options.cache_dir, SettingSource::kDefault);
  show("memory_bytes", absl::StrCat(options.memory_bytes), SettingSource::kContainer);
  show("max_connections", absl::StrCat(options.max_connections), SettingSource::kContainer);
  show("max_live_bytes", absl::StrCat(options.max_live_bytes), SettingSource::kContainer);
  show("build_memory_bytes", absl::StrCat(options.build_memory_bytes), SettingSource::kContainer);
}

// Adds the environment and the file to the flags of a command line that was parsed.
absl::StatusOr<Configuration> Configure(Flags& flags, const char* const* environment) {
  Configuration configuration;
  PHIMAP_ASSIGN_OR_RETURN(configuration.settings, ReadSettings(flags.app, environment));
  PHIMAP_RETURN_IF_ERROR(WithPlace(CompleteOptions(flags), configuration.settings));
  ShowDefaults(flags.options, configuration.settings);
  for (const absl::string_view name : kFollowSighup) {
    FindSetting(configuration.settings, name)->follows_sighup = true;
  }
  configuration.options = flags.options;
  configuration.file = flags.config;
  return configuration;
}

Flags::Flags() {
  app.set_version_flag("--version", "phimapd " PHIMAP_VERSION);
  app.footer(kExitCodeHelp);
  AddConfigFlags(app, *this);
  AddStoreFlags(app, options);
  AddAddressFlags(app, options);
  AddAccessFlags(app, options, certificate_role);
  AddCallerFlags(app, options);
  AddLimitFlags(app, options);
  AddTimeFlags(app, options);
  AddThreadFlags(app, options);
  AddKernelFlags(app, options, kernel_services);
  AddLogFlags(app, options, log_level, log_format);
  AddTraceFlags(app, options);
  for (const absl::string_view name : kFollowSighup) {
    CLI::Option* const option = app.get_option(absl::StrCat("--", name));
    option->description(absl::StrCat(option->get_description(), " Follows SIGHUP."));
  }
}

}  // namespace

MemoryLimits MemoryLimitsOf(const ServerOptions& options) {
  return {options.max_live_bytes, options.memory_bytes, options.build_memory_bytes,
          options.max_connections};
}

std::variant<Configuration, int> ParseOptions(int argc, char** argv, char** environment) {
  Flags flags;
  const auto refuse = [&](const absl::Status& status) {
    return FailToStart(AskedLogFormat(argc, argv), ServerExitCode::kUsage, "", status);
  };
  const absl::Status complete = CheckNotEmpty(flags.app, argc, argv);
  if (!complete.ok()) return refuse(complete);
  // CLI11 reports errors by exceptions, which must not leave this function.
  try {
    flags.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      flags.app.exit(error);  // --help or --version
      return static_cast<int>(ServerExitCode::kStopped);
    }
    return refuse(MakeError(absl::StatusCode::kInvalidArgument, reason::kFlagInvalid, "",
                            UsageText(flags.app, error)));
  }
  if (flags.json && !flags.print_config) {
    return refuse(BadFlags(kJsonFlag, "expected --print_config to be set as well"));
  }
  absl::StatusOr<Configuration> configuration = Configure(flags, environment);
  if (!configuration.ok()) return refuse(configuration.status());
  if (!flags.print_config) return *std::move(configuration);
  const std::string text =
      flags.json ? SettingsJson(configuration->settings) : SettingsText(configuration->settings);
  std::fputs(text.c_str(), stdout);
  return static_cast<int>(ServerExitCode::kStopped);
}

absl::StatusOr<Configuration> ReadAgain(int argc, char** argv, char** environment) {
  Flags flags;
  flags.app.parse(argc, argv);  // which ParseOptions has seen to succeed
  return Configure(flags, environment);
}

}  // namespace phimap
