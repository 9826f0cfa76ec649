#include "server/options.h"

#include <cstdio>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
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
#include "server/store/postgres/postgres_uri.h"

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
    "  0  stopped by SIGTERM or SIGINT\n"
    "  1  failed, for example because the store cannot be opened or an address cannot be bound\n"
    "  2  wrong usage; nothing was created\n"
    "\n"
    "`phimapd admin` checks, backs up, restores or cleans up a store, while its servers run:\n"
    "phimapd admin --help\n";

// Type name in --help of flags that take a file or a folder.
constexpr char kPath[] = "PATH";

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
                 "unix:PATH). Only this user may connect (mode 0600). A socket left there "
                 "by a dead server is replaced.")
      ->type_name(kPath);
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
  app.add_option("--client_certificate_role", certificate_role,
                 "Role of clients with a verified TLS certificate when there is no "
                 "--token_file.")
      ->check(OneOf({"reader", "builder", "admin"}))
      ->capture_default_str();
  app.add_option(
         "--token_file", options.token_file,
         "File of bearer tokens, one per line: [NAME] ROLE TOKEN [until=DATE], where ROLE is "
         "reader, builder or admin, and sha256:DIGEST may stand for TOKEN. Calls without a "
         "listed token are refused. The file is reloaded when it changes.")
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
                 "Maximum number of concurrent calls of one token or TLS certificate.")
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

void AddLogFlags(CLI::App& app, std::string& level, std::string& format) {
  app.add_option("--log_level", level, "Minimum level of the log lines written to stderr.")
      ->check(OneOf({"debug", "info", "warning", "error", "off"}))
      ->capture_default_str();
  app.add_option("--log_format", format,
                 "Format of log lines: text (key=value) or json (one object per line).")
      ->check(OneOf({"text", "json"}))
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

// Lowers the limits of memory that no flag sets, so that they fit into what the cgroups allow.
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
absl::Status CompleteOptions(const CLI::App& app, const std::vector<std::string>& kernel_services,
                             ServerOptions& options) {
  FitMemory(app, options);
  if (options.http == "none") options.http.clear();
  if (options.on_postgres() && options.cache_dir.empty() && !options.data_dir.empty()) {
    options.cache_dir = options.data_dir + "/cache";
  }
  for (const absl::Status& status :
       {CheckStoreFlags(options), CheckTlsFlags(options),
        CheckTimes(options, app.count("--lame_duck_seconds") > 0), CheckAddresses(options),
        TakeProxies(options), TakeKernelServices(kernel_services, options)}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

int Refuse(const absl::Status& status) {
  std::fprintf(stderr, "phimapd: %s\n", std::string(status.message()).c_str());
  return static_cast<int>(ServerExitCode::kUsage);
}

}  // namespace

MemoryLimits MemoryLimitsOf(const ServerOptions& options) {
  return {options.max_live_bytes, options.memory_bytes, options.build_memory_bytes,
          options.max_connections};
}

std::variant<ServerOptions, int> ParseOptions(int argc, char** argv) {
  ServerOptions options;
  std::string log_level = "info";
  std::string log_format = "text";
  std::string certificate_role(RoleName(options.client_certificate_role));
  CLI::App app("phimapd: builds kernel mappings from streams of examples and serves them.",
               "phimapd");
  app.set_version_flag("--version", "phimapd " PHIMAP_VERSION);
  app.footer(kExitCodeHelp);
  AddStoreFlags(app, options);
  AddAddressFlags(app, options);
  AddAccessFlags(app, options, certificate_role);
  AddCallerFlags(app, options);
  AddLimitFlags(app, options);
  AddTimeFlags(app, options);
  AddThreadFlags(app, options);
  std::vector<std::string> kernel_services;
  AddKernelFlags(app, options, kernel_services);
  AddLogFlags(app, log_level, log_format);
  const absl::Status complete = CheckNotEmpty(app, argc, argv);
  if (!complete.ok()) return Refuse(complete);
  // CLI11 reports errors by exceptions, which must not leave this function.
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(error);  // --help or --version
      return static_cast<int>(ServerExitCode::kStopped);
    }
    return Refuse(absl::InvalidArgumentError(UsageText(app, error)));
  }
  if (const absl::Status usable = CompleteOptions(app, kernel_services, options); !usable.ok()) {
    return Refuse(usable);
  }
  options.client_certificate_role = *ParseRole(certificate_role);  // checked by OneOf
  options.log_level = *ParseLogLevel(log_level);                   // checked by OneOf
  options.log_format = *ParseLogFormat(log_format);                // checked by OneOf
  return options;
}

}  // namespace phimap
