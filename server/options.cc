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
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/postgres/postgres_uri.h"
#include "server/transport/ip_address.h"
#include "server/transport/listen_address.h"

namespace phimap {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kTiB = int64_t{1} << 40;
// A stream that waits for room keeps up to 32 KiB, and all such streams have a sixteenth of
// --memory_bytes: with less than this not one could wait.
constexpr int64_t kLeastMemoryBytes = 16 * 32 * kKiB;
constexpr int64_t kMaxCacheBytes = 1024 * kTiB;
constexpr char kExitCodeHelp[] =
    "Exit codes:\n"
    "  0  stopped by SIGTERM or SIGINT\n"
    "  1  failed: the store cannot be opened, an address cannot be bound\n"
    "  2  wrong usage; nothing was created\n";

// The name of what flags of files and folders take.
constexpr char kPath[] = "PATH";

// Like CLI::Range, which says of what is no integer that it is not in the range. --help shows both
// alike.
class IntegerRange final : public CLI::Validator {
 public:
  IntegerRange(int64_t low, int64_t high)
      : Validator(absl::StrCat("INT in [", low, " - ", high, "]")) {
    func_ = [low, high](const std::string& input) {
      int64_t value = 0;
      if (absl::SimpleAtoi(input, &value) && low <= value && value <= high) return std::string();
      return absl::StrCat("expected an integer from ", low, " to ", high, ", got ", input);
    };
  }
};

void AddStoreFlags(CLI::App& app, ServerOptions& options) {
  app.add_option("--store", options.store,
                 "Where names and artifacts are: \"sqlite\", in --data_dir and for this server "
                 "alone, or postgresql://USER@HOST:PORT/DATABASE, which many servers share: a URI "
                 "of libpq; the password stands in the file that PGPASSFILE names.")
      ->capture_default_str();
  app.add_option("--data_dir", options.data_dir,
                 "Directory of a SQLite store, required there; created if missing. Its parent must "
                 "exist.")
      ->type_name(kPath);
  app.add_option(
         "--cache_dir", options.cache_dir,
         "With PostgreSQL: directory for copies of artifacts, of this server alone; created "
         "if missing. Losing it loses nothing. Without it: DATA_DIR/cache.")
      ->type_name(kPath);
  app.add_option("--cache_bytes", options.cache_bytes,
                 "What the copies in --cache_dir may take; the longest unused make room.")
      ->check(IntegerRange(0, kMaxCacheBytes))
      ->capture_default_str();
  app.add_option("--gc_grace_seconds", options.gc_grace_seconds,
                 "Seconds that artifacts are kept after the last version that has them was "
                 "deleted: longer than any load and upload takes.")
      ->check(IntegerRange(60, 86400 * 365))
      ->capture_default_str();
  app.add_option("--scrub_bytes_per_second", options.scrub_bytes_per_second,
                 "Bytes of stored artifacts that are read and compared with their digests in a "
                 "second, once a day all of them; 0: none.")
      ->check(IntegerRange(0, kMaxCacheBytes))
      ->capture_default_str();
}

void AddAddressFlags(CLI::App& app, ServerOptions& options) {
  app.add_option("--listen", options.listen,
                 "Address of the API (gRPC): HOST:PORT or unix:PATH. Port 0 picks a free one.")
      ->capture_default_str();
  app.add_option("--unix_listen", options.unix_listen,
                 "Path of a Unix-domain socket to serve the API on as well (clients: unix:PATH). "
                 "Only this user may connect (mode 0600); a socket that a dead server left there "
                 "is replaced.")
      ->type_name(kPath);
  app.add_option(
         "--http", options.http,
         "Address of GET /metrics (Prometheus), /livez and /readyz: HOST:PORT. Port 0 picks a "
         "free one; "
         "\"none\" switches it off.")
      ->capture_default_str();
  app.add_flag("--insecure", options.insecure,
               "Allow addresses that other machines can reach without encryption or without "
               "asking who calls. /metrics knows neither, so that --http always needs it there.");
}

void AddAccessFlags(CLI::App& app, ServerOptions& options, std::string& certificate_role) {
  app.add_option("--tls_certificate", options.tls.certificate,
                 "File of the server's certificate (PEM), followed by those between it and its "
                 "authority. The files of TLS are read again when they change.")
      ->type_name(kPath);
  app.add_option("--tls_key", options.tls.key,
                 "File of the certificate's private key (PEM, not encrypted).")
      ->type_name(kPath);
  app.add_option("--tls_client_ca", options.tls.client_ca,
                 "File of authorities (PEM): only clients with a certificate that one of them "
                 "signed are let in.")
      ->type_name(kPath);
  app.add_option("--client_certificate_role", certificate_role,
                 "What such a client may, when there is no --token_file.")
      ->check(CLI::IsMember({"reader", "builder", "admin"}))
      ->capture_default_str();
  app.add_option("--token_file", options.token_file,
                 "File of bearer tokens, a line each: ROLE TOKEN or ROLE sha256:DIGEST, the role "
                 "reader, builder or admin. Calls without one of them are refused. The file is "
                 "read again when it changes.")
      ->type_name(kPath);
}

void AddLimitFlags(CLI::App& app, ServerOptions& options) {
  const IntegerRange bytes(kKiB, kTiB);
  app.add_option("--max_message_bytes", options.max_message_bytes,
                 "Largest message either way, in bytes.")
      ->check(IntegerRange(64 * kKiB, int64_t{std::numeric_limits<int>::max()}))
      ->capture_default_str();
  app.add_option("--memory_bytes", options.memory_bytes,
                 "Memory of requests and answers, from before they arrive until they are sent, in "
                 "bytes. Beyond it calls are refused and streams wait; one request is let in when "
                 "there is no other, however large.")
      ->check(IntegerRange(kLeastMemoryBytes, kTiB))
      ->capture_default_str();
  app.add_option("--max_calls_per_caller", options.max_calls_per_caller,
                 "Calls that one token or TLS certificate may have under way.")
      ->check(IntegerRange(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--max_connections_per_host", options.max_connections_per_host,
                 "Connections that may come from one address; the Unix socket and --proxy are not "
                 "counted.")
      ->check(IntegerRange(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--proxy", options.proxies,
                 "IP address of a proxy or load balancer, which connects for many; may be "
                 "repeated.");
  app.add_option("--max_live_bytes", options.max_live_bytes,
                 "Memory of loaded versions, in bytes; the longest unused make room.")
      ->check(bytes)
      ->capture_default_str();
  app.add_option("--max_builds", options.max_builds, "Builds that are not finished.")
      ->check(IntegerRange(1, 1024))
      ->capture_default_str();
  app.add_option(
         "--build_memory_bytes", options.build_memory_bytes,
         "Memory that unfinished builds, imports and evaluations may take together, in bytes.")
      ->check(bytes)
      ->capture_default_str();
}

void AddKernelFlags(CLI::App& app, ServerOptions& options, std::vector<std::string>& services) {
  app.add_option(
      "--kernel_service", services,
      "A kernel service that kernels may name, NAME=ADDRESS; may be repeated. ADDRESS is "
      "HOST:PORT, tls:HOST:PORT or unix:/PATH. Nothing else is ever called.");
  app.add_option("--kernel_service_ca", options.kernel_service_ca,
                 "File of authorities (PEM) that certificates of tls: services are checked with; "
                 "without it: the system's.")
      ->type_name(kPath);
  app.add_option("--kernel_service_seconds", options.kernel_service_seconds,
                 "Seconds that a call to a kernel service may take.")
      ->check(IntegerRange(1, 3600))
      ->capture_default_str();
}

void AddTimeFlags(CLI::App& app, ServerOptions& options) {
  app.add_option("--build_idle_seconds", options.build_idle_seconds,
                 "Seconds a build, an import, an export or an evaluation waits for its client, to "
                 "send or to "
                 "take, before it is ended.")
      ->check(IntegerRange(1, 86400))
      ->capture_default_str();
  app.add_option(
         "--stream_idle_seconds", options.stream_idle_seconds,
         "Seconds a client may be silent in a TransformStream or a ModelStreamInfer, or take less "
         "than 1 KiB a second of an answer of any call, before the call is ended.")
      ->check(IntegerRange(1, 86400))
      ->capture_default_str();
  app.add_option("--max_connection_age_seconds", options.max_connection_age_seconds,
                 "Seconds after which a connection is ended gracefully, so that clients connect "
                 "again, perhaps elsewhere; 0: never.")
      ->check(IntegerRange(0, 86400 * 365))
      ->capture_default_str();
  app.add_option("--warm_seconds", options.warm_seconds,
                 "Seconds at most that /readyz and the health service say at start that the server "
                 "does not serve yet, while the versions that aliases name are loaded; calls are "
                 "answered meanwhile. 0: they do not wait.")
      ->check(IntegerRange(0, 3600))
      ->capture_default_str();
  app.add_option("--lame_duck_seconds", options.lame_duck_seconds,
                 "Seconds that calls are still taken after SIGTERM, while clients and load "
                 "balancers learn that they should go elsewhere; part of --drain_seconds, and "
                 "less.")
      ->check(IntegerRange(0, 3600))
      ->capture_default_str();
  app.add_option("--drain_seconds", options.drain_seconds,
                 "Seconds that calls and builds have to finish after SIGTERM.")
      ->check(IntegerRange(0, 86400))
      ->capture_default_str();
  app.add_option("--io_threads", options.io_threads,
                 "Threads that read requests and send answers. More than one is not measured yet.")
      ->check(IntegerRange(1, 64))
      ->capture_default_str();
  app.add_option("--compute_threads", options.compute_threads,
                 "Threads that compute features; 0: as many cores as the process may use.")
      ->check(IntegerRange(0, 64))
      ->capture_default_str();
}

void AddLogFlags(CLI::App& app, std::string& level, std::string& format) {
  app.add_option("--log_level", level, "What goes to stderr.")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}))
      ->capture_default_str();
  app.add_option("--log_format", format,
                 "How it is written: text (key=value) or json (an object a line).")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

absl::Status BadFlags(absl::string_view flag, absl::string_view why) {
  return MakeError(absl::StatusCode::kInvalidArgument, "BAD_FLAGS", flag, why);
}

// What `option` takes, in words.
absl::string_view Expected(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == kPath) return "a path";
  return absl::StartsWith(type, "INT") ? "an integer" : "a value";
}

// The library takes an empty text for a missing one, and says of both that "TEXT" is missing.
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
    // The library takes what begins like a flag for the next flag.
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
                      "expected none with --store=sqlite: the artifacts are in --data_dir");
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
    return options.tls.key.empty() ? BadFlags("--tls_certificate", "expected --tls_key beside it")
                                   : BadFlags("--tls_key", "expected --tls_certificate beside it");
  }
  if (!options.tls.client_ca.empty() && options.tls.empty()) {
    return BadFlags("--tls_client_ca", "expected --tls_certificate and --tls_key beside it");
  }
  return absl::OkStatus();
}

// Calls under way have the rest of --drain_seconds when --lame_duck_seconds are over: none would be
// left. The default of the latter gives way to a short drain by itself.
absl::Status CheckTimes(const ServerOptions& options, bool lame_duck_given) {
  if (!lame_duck_given || options.lame_duck_seconds == 0 ||
      options.lame_duck_seconds < options.drain_seconds) {
    return absl::OkStatus();
  }
  return BadFlags("--lame_duck_seconds",
                  absl::StrCat("expected less than --drain_seconds=", options.drain_seconds,
                               ", which includes it, got ", options.lame_duck_seconds));
}

absl::Status CheckAddresses(const ServerOptions& options) {
  const bool asks = !options.token_file.empty() || !options.tls.client_ca.empty();
  const bool guarded = !options.tls.empty() && asks;
  PHIMAP_RETURN_IF_ERROR(CheckAddress("--listen", options.listen));
  PHIMAP_RETURN_IF_ERROR(CheckReachable("--listen", options.listen, guarded || options.insecure));
  if (options.http.empty()) return absl::OkStatus();
  PHIMAP_RETURN_IF_ERROR(CheckAddress("--http", options.http));
  return CheckReachable("--http", options.http, options.insecure);
}

// Writes the addresses of proxies as those of connections are written.
absl::Status TakeProxies(ServerOptions& options) {
  for (std::string& proxy : options.proxies) {
    PHIMAP_ASSIGN_OR_RETURN(proxy, CanonicalIpAddress("--proxy", proxy));
  }
  return absl::OkStatus();
}

// Parses the list of kernel services: what is sent to them is sent in the clear unless it says tls.
absl::Status TakeKernelServices(const std::vector<std::string>& texts, ServerOptions& options) {
  for (const std::string& text : texts) {
    PHIMAP_ASSIGN_OR_RETURN(KernelAddress address, ParseKernelAddress(text));
    if (!address.tls && !options.insecure && !IsLoopbackAddress(address.target)) {
      return BadFlags("--kernel_service",
                      absl::StrCat("\"", address.target,
                                   "\" is another machine, and examples would go there in the "
                                   "clear; use tls:HOST:PORT, or --insecure if the network is "
                                   "yours alone"));
    }
    options.kernel_services.push_back(std::move(address));
  }
  return absl::OkStatus();
}

int Refuse(const absl::Status& status) {
  std::fprintf(stderr, "phimapd: %s\n", std::string(status.message()).c_str());
  return static_cast<int>(ServerExitCode::kUsage);
}

}  // namespace

std::variant<ServerOptions, int> ParseOptions(int argc, char** argv) {
  ServerOptions options;
  std::string log_level = "info";
  std::string log_format = "text";
  std::string certificate_role(RoleName(options.client_certificate_role));
  CLI::App app("phimapd: builds kernel mappings from streams of examples and serves them.");
  app.set_version_flag("--version", PHIMAP_VERSION);
  app.footer(kExitCodeHelp);
  AddStoreFlags(app, options);
  AddAddressFlags(app, options);
  AddAccessFlags(app, options, certificate_role);
  AddLimitFlags(app, options);
  AddTimeFlags(app, options);
  std::vector<std::string> kernel_services;
  AddKernelFlags(app, options, kernel_services);
  AddLogFlags(app, log_level, log_format);
  app.failure_message([](const CLI::App* parsed, const CLI::Error& error) {
    return "phimapd: " + CLI::FailureMessage::simple(parsed, error);
  });
  const absl::Status complete = CheckNotEmpty(app, argc, argv);
  if (!complete.ok()) return Refuse(complete);
  // The library speaks in exceptions; they end here.
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // --help and --version arrive here too, with exit code 0; the library's other codes are its
    // own.
    return static_cast<int>(app.exit(error) == 0 ? ServerExitCode::kStopped
                                                 : ServerExitCode::kUsage);
  }
  if (options.http == "none") options.http.clear();
  if (options.on_postgres() && options.cache_dir.empty() && !options.data_dir.empty()) {
    options.cache_dir = options.data_dir + "/cache";
  }
  for (const absl::Status& status :
       {CheckStoreFlags(options), CheckTlsFlags(options),
        CheckTimes(options, app.count("--lame_duck_seconds") > 0), CheckAddresses(options),
        TakeProxies(options), TakeKernelServices(kernel_services, options)}) {
    if (!status.ok()) return Refuse(status);
  }
  options.client_certificate_role = *ParseRole(certificate_role);  // checked by IsMember
  options.log_level = *ParseLogLevel(log_level);                   // checked by IsMember
  options.log_format = *ParseLogFormat(log_format);                // checked by IsMember
  return options;
}

}  // namespace phimap
