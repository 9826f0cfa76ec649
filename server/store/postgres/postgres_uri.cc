#include "server/store/postgres/postgres_uri.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/postgres/libpq.h"

namespace phimap {

namespace {

using Settings = std::map<std::string, std::string>;

absl::Status BadUri(absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kDatabaseAddressInvalid, "",
                   absl::StrCat("the database's address ", what,
                                "; expected postgresql://USER@HOST:PORT/DATABASE with the password "
                                "in the file that PGPASSFILE names (the address is not repeated "
                                "here, since it may hold a password)"));
}

absl::StatusOr<Settings> Parse(const std::string& uri) {
  PHIMAP_RETURN_IF_ERROR(LoadLibpq());
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(
      libpq().PQconninfoParse(uri.c_str(), &message), libpq().PQconninfoFree);
  libpq().PQfreemem(message);  // The message quotes the string.
  if (options == nullptr) return BadUri("is not a connection string or URI of libpq");
  Settings settings;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr) settings[option->keyword] = option->val;
  }
  return settings;
}

// libpq ends the password at the first @ and the host at the first /. A password with such a
// character therefore ends up in other settings, which libpq repeats in its messages.
absl::Status CheckNoStrayPassword(const Settings& settings, bool is_uri) {
  for (const char* keyword : {"host", "hostaddr", "port", "dbname", "user"}) {
    const auto setting = settings.find(keyword);
    if (setting != settings.end() && is_uri && absl::StrContains(setting->second, '@')) {
      return BadUri("has one @ too many; in a user name or a password, write @ as %40");
    }
  }
  const auto ports = settings.find("port");
  if (ports == settings.end()) return absl::OkStatus();
  for (absl::string_view port : absl::StrSplit(ports->second, ',')) {
    int64_t number = 0;
    if (!port.empty() && (!absl::SimpleAtoi(port, &number) || number < 1 || number > 65535)) {
      return BadUri(
          "has a port that is not a number from 1 to 65535 (in a password, write : as %3A and / "
          "as %2F)");
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> ListOf(const Settings& settings, const std::string& keyword) {
  const auto setting = settings.find(keyword);
  if (setting == settings.end()) return {};
  return absl::StrSplit(setting->second, ',');
}

}  // namespace

absl::StatusOr<std::vector<PostgresParameters>> ParsePostgresUri(const std::string& uri) {
  PHIMAP_ASSIGN_OR_RETURN(Settings settings, Parse(uri));
  PHIMAP_RETURN_IF_ERROR(CheckNoStrayPassword(
      settings, absl::StartsWith(uri, "postgres://") || absl::StartsWith(uri, "postgresql://")));
  settings.insert({"fallback_application_name", "phimapd"});
  settings.insert({"keepalives_idle", "10"});
  settings.insert({"keepalives_interval", "5"});
  settings.insert({"keepalives_count", "3"});
  settings.insert({"tcp_user_timeout", "20000"});
  // A standby lags behind. A client that read from the primary and then from a standby would see
  // names go back.
  settings["target_session_attrs"] = "read-write";
  settings["client_encoding"] = "UTF8";

  std::map<std::string, std::vector<std::string>> lists;
  size_t hosts = 1;
  for (const char* keyword : {"host", "hostaddr", "port"}) {
    lists[keyword] = ListOf(settings, keyword);
    hosts = std::max(hosts, lists[keyword].size());
  }
  std::vector<PostgresParameters> connections(hosts);
  for (size_t host = 0; host < hosts; ++host) {
    for (const auto& [keyword, list] : lists) {
      if (list.empty()) continue;
      if (list.size() != 1 && list.size() != hosts) {
        return BadUri("has a different number of hosts than of ports or host addresses");
      }
      settings[keyword] = list[list.size() == 1 ? 0 : host];
    }
    connections[host].assign(settings.begin(), settings.end());
  }
  return connections;
}

absl::Status CheckPostgresUri(const std::string& uri) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<PostgresParameters> connections, ParsePostgresUri(uri));
  for (const auto& [keyword, value] : connections.front()) {
    if (keyword == "password" || keyword == "sslpassword") {
      return BadUri("holds a password, which every user of this machine can see");
    }
  }
  return absl::OkStatus();
}

std::string PassFileProblem(const std::string& path) {
  // Like libpq, uses stat to get the mode, which needs no permission to read the file.
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return absl::StrCat("cannot find ", path, ": ", std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return absl::StrCat(path, " is not a regular file");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return absl::StrFormat("%s has mode %04o, so libpq ignores it: chmod 0600", path,
                           status.st_mode & 07777);
  }
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return absl::StrCat("cannot open ", path, ": ", std::strerror(errno));
  close(descriptor);
  return "";
}

}  // namespace phimap
