// The command line of phimapd.
#ifndef PHIMAP_SERVER_OPTIONS_H_
#define PHIMAP_SERVER_OPTIONS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "server/auth/role.h"
#include "server/auth/tls_files.h"
#include "server/kernel_client/kernel_address.h"
#include "server/observe/log.h"

namespace phimap {

struct ServerOptions {
  // "sqlite", or a libpq URI of PostgreSQL.
  std::string store = "sqlite";
  // Where SQLite and its artifacts are.
  std::string data_dir;
  // With PostgreSQL: copies of artifacts.
  std::string cache_dir;
  int64_t cache_bytes = int64_t{10} << 30;
  // How long artifacts that no version names are kept.
  int gc_grace_seconds = 3600;
  // How fast artifacts are read against their digests; 0: not at all.
  int64_t scrub_bytes_per_second = int64_t{4} << 20;
  std::string listen = "127.0.0.1:7450";
  // Path of a Unix-domain socket to listen on as well; empty: none.
  std::string unix_listen;
  // Empty: no endpoint.
  std::string http = "127.0.0.1:7451";
  bool insecure = false;
  // Of --listen; empty: not encrypted.
  TlsFiles tls;
  // What a verified client certificate may, without a token file.
  Role client_certificate_role = Role::kReader;
  // Bearer tokens and their roles (server/auth/token_table.h); empty: nobody is asked for one.
  std::string token_file;
  int64_t max_message_bytes = int64_t{64} << 20;
  // Of requests and answers.
  int64_t memory_bytes = int64_t{512} << 20;
  int64_t max_live_bytes = int64_t{4} << 30;
  int max_builds = 16;
  int64_t build_memory_bytes = int64_t{4} << 30;
  int build_idle_seconds = 300;
  int stream_idle_seconds = 300;
  // 0: connections live as long as their clients like.
  int max_connection_age_seconds = 0;
  int io_threads = 1;
  // Calls under way of one token or TLS certificate.
  int max_calls_per_caller = 1000;
  // Connections from one address; Unix sockets and proxies are not counted.
  int max_connections_per_host = 1000;
  // Addresses of proxies, which connect for many, as CanonicalIpAddress writes them.
  std::vector<std::string> proxies;
  // Kernel services that kernels may name.
  std::vector<KernelAddress> kernel_services;
  // File of authorities (PEM) for those that speak TLS; empty: the system's.
  std::string kernel_service_ca;
  int kernel_service_seconds = 30;
  // 0: readiness does not wait for the versions that aliases name.
  int warm_seconds = 60;
  int drain_seconds = 20;
  int lame_duck_seconds = 2;
  // 0: as many as the cgroup and the affinity of the process allow.
  int compute_threads = 0;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;

  bool on_postgres() const { return store != "sqlite"; }
};

// What phimapd exits with: part of its interface, listed in its --help.
enum class ServerExitCode : int {
  kStopped = 0,
  kFailed = 1,
  kUsage = 2,
};

// Options, or the exit code after --help, --version or an error was printed. Flags that contradict
// each other, and an address that needs protection or --insecure, are errors of the command line,
// so that nothing is created or opened before they are refused.
std::variant<ServerOptions, int> ParseOptions(int argc, char** argv);

}  // namespace phimap

#endif  // PHIMAP_SERVER_OPTIONS_H_
