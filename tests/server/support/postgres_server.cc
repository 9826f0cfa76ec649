#include "tests/server/support/postgres_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"
#include "server/store/postgres/postgres_connection.h"

namespace phimap::testing {
namespace {

constexpr char kPrograms[] = "/usr/lib/postgresql/15/bin";
constexpr char kAccess[] =
    "local all all trust\n"
    "host all locked 127.0.0.1/32 scram-sha-256\n"
    "host all,replication all 127.0.0.1/32 trust\n";

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  PHIMAP_CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0);
  PHIMAP_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  close(fd);
  return ntohs(address.sin_port);
}

// PostgreSQL refuses to run as root. Returns the user as whom it runs instead if this process runs
// as root, and null otherwise.
const passwd* OtherUser() {
  if (geteuid() != 0) return nullptr;
  const passwd* user = getpwnam("postgres");
  PHIMAP_CHECK(user != nullptr);  // tools/setup installs postgresql-15, which creates it
  return user;
}

void Become(const passwd* user) {
  if (user == nullptr) return;
  PHIMAP_CHECK(setgroups(0, nullptr) == 0 && setgid(user->pw_gid) == 0 &&
               setuid(user->pw_uid) == 0);
}

// Returns when `done` returns true. Checks every 5 ms, for at most 30 s.
void AwaitState(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!done()) {
    PHIMAP_CHECK(std::chrono::steady_clock::now() < deadline);
    poll(nullptr, 0, 5);
  }
}

// Runs a program as PostgreSQL's user, until the program or this process ends. Its output goes to
// the file `log` in `folder`.
pid_t Spawn(const std::string& folder, const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.data()));
  arguments.push_back(nullptr);
  const std::string log = absl::StrCat(folder, "/log");
  const passwd* const user = OtherUser();
  const pid_t pid = fork();
  PHIMAP_CHECK(pid >= 0);
  if (pid > 0) return pid;
  Become(user);
  prctl(PR_SET_PDEATHSIG, SIGQUIT);
  const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(fd, STDOUT_FILENO);
  dup2(fd, STDERR_FILENO);
  if (chdir("/") != 0) _exit(126);
  execv(arguments[0], arguments.data());
  _exit(127);
}

void GiveToOtherUser(const std::string& path) {
  const passwd* const user = OtherUser();
  if (user != nullptr) PHIMAP_CHECK(chown(path.c_str(), user->pw_uid, user->pw_gid) == 0);
}

int ExitCode(pid_t pid) {
  int status = 0;
  PHIMAP_CHECK(waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

PostgresServer& PostgresServer::Shared() {
  static PostgresServer server;
  return server;
}

PostgresServer::PostgresServer() : port_(FreePort()) {
  GiveToOtherUser(folder_.path());
  const std::string data = absl::StrCat(folder_.path(), "/data");
  PHIMAP_CHECK(ExitCode(Spawn(folder_.path(),
                              {absl::StrCat(kPrograms, "/initdb"), "--no-sync", "-A", "trust", "-U",
                               "postgres", "-E", "UTF8", "--locale=C", "-D", data})) == 0);
  std::ofstream(absl::StrCat(data, "/pg_hba.conf")) << kAccess;
  Start();
  Run(absl::StrCat("CREATE ROLE locked LOGIN PASSWORD '", kLockedPassword, "'"));
}

PostgresServer::PostgresServer(PostgresServer& primary) : port_(FreePort()) {
  GiveToOtherUser(folder_.path());
  PHIMAP_CHECK(
      ExitCode(Spawn(folder_.path(),
                     {absl::StrCat(kPrograms, "/pg_basebackup"), "--no-sync", "--checkpoint=fast",
                      "--write-recovery-conf", "-X", "stream", "-D",
                      absl::StrCat(folder_.path(), "/data"), "-d", primary.Uri("postgres")})) == 0);
  Start();
  primary.Set("synchronous_standby_names", "*");
  primary.Await("EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync')");
}

void PostgresServer::Promote() {
  PHIMAP_CHECK(ExitCode(Spawn(folder_.path(), {absl::StrCat(kPrograms, "/pg_ctl"), "promote", "-w",
                                               "-D", absl::StrCat(folder_.path(), "/data")})) == 0);
  // The setting was copied from the primary, but this server has no standby.
  Set("synchronous_standby_names", "");
}

PostgresServer::~PostgresServer() {
  if (pid_ != 0) Stop();
}

void PostgresServer::Start() {
  PHIMAP_CHECK(pid_ == 0);
  pid_ = Spawn(folder_.path(),
               {absl::StrCat(kPrograms, "/postgres"), "-D", absl::StrCat(folder_.path(), "/data"),
                "-k", folder_.path(), "-p", absl::StrCat(port_), "-c", "listen_addresses=127.0.0.1",
                "-c", "fsync=off", "-c", "max_connections=50", "-c", "shared_buffers=16MB"});
  AwaitState([&] {
    // If this check fails, PostgreSQL has ended, and the file `log` says why.
    PHIMAP_CHECK(waitpid(pid_, nullptr, WNOHANG) == 0);
    return Accepts();
  });
}

bool PostgresServer::Accepts() const {
  // pg_isready is used because PostgresConnection does not connect to a standby.
  int status = 0;
  const pid_t pid = Spawn(folder_.path(), {absl::StrCat(kPrograms, "/pg_isready"), "-q", "-h",
                                           "127.0.0.1", "-p", absl::StrCat(port_)});
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void PostgresServer::Stop() {
  PHIMAP_CHECK(kill(pid_, SIGQUIT) == 0);
  ExitCode(pid_);
  pid_ = 0;
}

std::string PostgresServer::CreateDatabase() {
  const std::string name = absl::StrCat("test", databases_.fetch_add(1));
  Run(absl::StrCat("CREATE DATABASE ", name));
  return name;
}

std::string PostgresServer::Uri(const std::string& database, const std::string& user) const {
  return absl::StrCat("postgresql://", user, "@127.0.0.1:", port_, "/", database);
}

SqlRows PostgresServer::Run(const std::string& sql, const std::string& database) {
  auto connection =
      PostgresConnection::Open(Uri(database), {.statement = absl::Seconds(60)}).value();
  absl::StatusOr<SqlRows> rows = connection->RunBatch(sql);
  if (!rows.ok()) fprintf(stderr, "%s\n", rows.status().ToString().c_str());
  PHIMAP_CHECK(rows.ok());
  return *std::move(rows);
}

void PostgresServer::Await(const std::string& condition, const std::string& database) {
  AwaitState([&] { return Run(absl::StrCat("SELECT ", condition), database).Int(0, 0) != 0; });
}

int PostgresServer::CutConnections(const std::string& database) {
  const std::string others = absl::StrCat("FROM pg_stat_activity WHERE datname = '", database,
                                          "' AND pid <> pg_backend_pid()");
  const SqlRows cut = Run(absl::StrCat("SELECT pg_terminate_backend(pid) ", others));
  Await(absl::StrCat("NOT EXISTS (SELECT 1 ", others, ")"));
  return static_cast<int>(cut.size());
}

void PostgresServer::Set(const std::string& setting, const std::string& value) {
  Run(value.empty() ? absl::StrCat("ALTER SYSTEM RESET ", setting)
                    : absl::StrCat("ALTER SYSTEM SET ", setting, " = '", value, "'"));
  Run("SELECT pg_reload_conf()");
  Await(absl::StrCat("current_setting('", setting, "') = '", value, "'"));
}

PgBouncer::PgBouncer(const PostgresServer& server) : port_(FreePort()) {
  const std::string path = absl::StrCat(folder_.path(), "/pgbouncer.ini");
  std::ofstream(path) << "[databases]\n* = host=127.0.0.1 port=" << server.port()
                      << " user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = "
                      << port_
                      << "\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
                         "default_pool_size = 1\nserver_reset_query_always = 0\n";
  GiveToOtherUser(folder_.path());
  pid_ = Spawn(folder_.path(), {"/usr/sbin/pgbouncer", path});
  AwaitState([&] {
    // If this check fails, PgBouncer has ended, and the file `log` says why.
    PHIMAP_CHECK(waitpid(pid_, nullptr, WNOHANG) == 0);
    return PostgresConnection::Open(Uri("postgres"), {}).ok();
  });
}

PgBouncer::~PgBouncer() {
  kill(pid_, SIGQUIT);
  ExitCode(pid_);
}

std::string PgBouncer::Uri(const std::string& database) const {
  return absl::StrCat("postgresql://postgres@127.0.0.1:", port_, "/", database);
}

PostgresServer::Paused::Paused(const PostgresServer& server) {
  // The server first, so that it starts no process meanwhile.
  pids_.push_back(server.pid_);
  PHIMAP_CHECK(kill(server.pid_, SIGSTOP) == 0);
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid)) continue;
    // The parent's pid is the second field after the name, which is in parentheses.
    std::ifstream file(entry.path() / "stat");
    std::string stat((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const std::vector<std::string> fields =
        absl::StrSplit(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)), ' ');
    pid_t parent = 0;
    if (fields.size() < 3 || !absl::SimpleAtoi(fields[2], &parent) || parent != server.pid_) {
      continue;
    }
    if (kill(pid, SIGSTOP) == 0) pids_.push_back(pid);
  }
}

PostgresServer::Paused::~Paused() {
  for (const pid_t pid : pids_) kill(pid, SIGCONT);
}

PausedProcess::PausedProcess(pid_t pid) : pid_(pid) { PHIMAP_CHECK(kill(pid, SIGSTOP) == 0); }

PausedProcess::~PausedProcess() { kill(pid_, SIGCONT); }

}  // namespace phimap::testing
