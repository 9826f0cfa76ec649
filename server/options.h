// The settings of phimapd, given by flags, the environment and a file, and `phimapd admin`.
#ifndef PHIMAP_SERVER_OPTIONS_H_
#define PHIMAP_SERVER_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "server/admission/role.h"
#include "server/admission/tls_files.h"
#include "server/configuration.h"
#include "server/kernel_client/kernel_address.h"
#include "server/observe/log.h"
#include "server/observe/process_memory.h"

namespace phimap {

struct ServerOptions {
  // "sqlite", or a libpq URI of PostgreSQL.
  std::string store = "sqlite";
  // Directory of the SQLite database and its artifacts.
  std::string data_dir;
  // Directory for copies of artifacts; used only with PostgreSQL.
  std::string cache_dir;
  int64_t cache_bytes = int64_t{10} << 30;
  // How long an artifact is kept after the last version that uses it was deleted.
  int gc_grace_seconds = 3600;
  // Maximum rate of checking artifacts against their digests; 0 means no checks.
  int64_t scrub_bytes_per_second = int64_t{4} << 20;
  std::string listen = "127.0.0.1:7450";
  // Path of an additional Unix-domain socket; empty means none.
  std::string unix_listen;
  // Who may connect to Unix-domain sockets, as a file's mode.
  unsigned unix_mode = 0600;
  // Address of the HTTP endpoints; empty means none.
  std::string http = "127.0.0.1:7451";
  // Address of the API over HTTP; empty means none.
  std::string api_http;
  // Names of this server that requests over HTTP may have in their header Host, beside those that
  // nobody else can own (server/http/host_names.h).
  std::vector<std::string> http_hosts;
  // Origins of other sites whose pages may call the API over HTTP.
  std::vector<std::string> http_origins;
  bool insecure = false;
  // TLS files for `listen`; empty means not encrypted.
  TlsFiles tls;
  // Role of clients with a verified TLS certificate. Used only when there is no token file.
  Role client_certificate_role = Role::kReader;
  // File of bearer tokens and their roles (server/admission/token_file.h); empty means that no
  // token is required.
  std::string token_file;
  // File to which the audit is copied; empty means none.
  std::string audit_log;
  int64_t max_message_bytes = int64_t{64} << 20;
  // Memory budget of requests and responses.
  int64_t memory_bytes = int64_t{512} << 20;
  int64_t max_live_bytes = int64_t{4} << 30;
  int max_builds = 16;
  int64_t build_memory_bytes = int64_t{4} << 30;
  // Memory that the process's cgroups allow; nullopt if they set no limit. ParseOptions lowers the
  // limits above that are not set, so that they fit into it.
  std::optional<int64_t> cgroup_memory_bytes;
  // Disk for the rows of trainings that build their features, in --data_dir or --cache_dir.
  int64_t training_disk_bytes = int64_t{16} << 30;
  int build_idle_seconds = 300;
  int stream_idle_seconds = 300;
  // 0 means that connections have no maximum age.
  int max_connection_age_seconds = 0;
  int max_connection_age_grace_seconds = 0;
  int io_threads = 1;
  // Maximum concurrent calls of one caller: a name, or a token or TLS certificate without one.
  int max_calls_per_caller = 1000;
  // Maximum connections to the API.
  int max_connections = 4096;
  // Maximum connections from one address; Unix sockets and proxies are not counted.
  int max_connections_per_host = 1000;
  // Addresses of proxies that connect on behalf of many clients, in the form of CanonicalIpAddress.
  std::vector<std::string> proxies;
  // Addresses of proxies that begin each connection with a header of the PROXY protocol, likewise;
  // or "unix".
  std::vector<std::string> header_proxies;
  // Kernel services that kernel expressions may refer to by name.
  std::vector<KernelAddress> kernel_services;
  // File of certificate authorities (PEM) for kernel services over TLS; empty means the system's
  // authorities.
  std::string kernel_service_ca;
  int kernel_service_seconds = 30;
  // Maximum time for which the server, after its start, waits for the versions that aliases point
  // to before it reports that it is ready; 0 means no wait.
  int warm_seconds = 60;
  int drain_seconds = 20;
  int lame_duck_seconds = 2;
  // 0 means as many as the cgroup and the CPU affinity of the process allow.
  int compute_threads = 0;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  // One in this many successful calls is logged; 0 means none.
  int log_calls_one_in = 0;
  // URL of the collector that traces are sent to (CollectorUrl); empty means that there are none.
  std::string trace_endpoint;
  // Part of the calls that are traced, of those whose caller does not decide.
  double trace_ratio = 0.01;

  bool on_postgres() const { return store != "sqlite"; }
};

// Exit codes of phimapd. They are part of its interface, and listed in its --help.
enum class ServerExitCode : int {
  kStopped = 0,
  kFailed = 1,
  kUsage = 2,
};

// The limits of memory that `options` sets.
MemoryLimits MemoryLimitsOf(const ServerOptions& options);

struct Configuration {
  ServerOptions options;
  // What `options` was made of.
  std::vector<Setting> settings;
  // The file of --config; empty if there is none.
  std::string file;
};

// Returns the configuration, or the exit code after printing --help, --version, --print_config or
// an error. Rejects settings that contradict each other, and addresses that need protection or
// --insecure, before anything is created or opened. `environment` is as environ(7).
std::variant<Configuration, int> ParseOptions(int argc, char** argv, char** environment);

// Returns what ParseOptions returned, with the file as it is now, or the error that it would print.
// REQUIRES: ParseOptions returned a configuration for the same arguments.
absl::StatusOr<Configuration> ReadAgain(int argc, char** argv, char** environment);

// Runs `phimapd admin`, for operators of a store. `argv` begins at the word "admin". It starts no
// server: it opens the store itself, whether or not servers are using it. Returns the exit code
// (core/status/exit_code.h).
int RunAdmin(int argc, char** argv);

}  // namespace phimap

#endif  // PHIMAP_SERVER_OPTIONS_H_
