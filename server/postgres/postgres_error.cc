#include "server/postgres/postgres_error.h"

#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/status/error.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

struct Meaning {
  const char* prefix;  // Beginning of the SQLSTATE.
  Code code;
  const char* reason;
  const char* advice;
  int64_t retry_delay_ms = 0;
};

constexpr int64_t kRetryDelayMs = 1000;

// The first entry whose prefix matches the SQLSTATE applies.
constexpr Meaning kMeanings[] = {
    {"08", Code::kUnavailable, "DATABASE_UNAVAILABLE",
     "check that the server runs and can be reached", kRetryDelayMs},
    {"57014", Code::kUnavailable, "DATABASE_BUSY",
     "the statement took too long; look into pg_stat_activity", kRetryDelayMs},
    {"57P", Code::kUnavailable, "DATABASE_UNAVAILABLE",
     "the server is starting or stopping, or ended this connection; try again", kRetryDelayMs},
    {"25P03", Code::kUnavailable, "DATABASE_UNAVAILABLE",
     "the server ended a transaction that waited too long; try again", kRetryDelayMs},
    {"25006", Code::kUnavailable, "DATABASE_READ_ONLY",
     "it is a standby, or default_transaction_read_only is on; name all hosts and "
     "target_session_attrs=read-write in the address",
     kRetryDelayMs},
    {"55P03", Code::kUnavailable, "DATABASE_BUSY",
     "another session holds a lock for too long; look into pg_locks", kRetryDelayMs},
    {"40", Code::kUnavailable, "DATABASE_BUSY", "other transactions interfered; try again",
     kRetryDelayMs},
    {"53300", Code::kUnavailable, "DATABASE_UNAVAILABLE",
     "raise max_connections, or put PgBouncer in front", kRetryDelayMs},
    {"53100", Code::kResourceExhausted, "DISK_FULL", "free space on the database's disk"},
    {"53", Code::kResourceExhausted, "DATABASE_EXHAUSTED",
     "look into the log of the database server"},
    {"58", Code::kUnavailable, "FILE_IO_FAILED", "look into the log of the database server",
     kRetryDelayMs},
    {"28", Code::kFailedPrecondition, "DATABASE_REFUSED",
     "check the user, the password in the file that PGPASSFILE names, the TLS parameters and "
     "pg_hba.conf"},
    {"3D000", Code::kFailedPrecondition, "DATABASE_REFUSED",
     "create the database, or correct its name in the address"},
    {"42501", Code::kFailedPrecondition, "DATABASE_REFUSED",
     "grant the user CREATE on the database, or all rights on the schema phimap"},
    {"42P01", Code::kFailedPrecondition, "STORE_INVALID",
     "the schema phimap lacks a table; restore it from a backup, or choose another database"},
    {"XX001", Code::kDataLoss, "DATABASE_DAMAGED", "restore the database from a backup"},
    {"XX002", Code::kDataLoss, "DATABASE_DAMAGED", "rebuild the index with REINDEX"},
    {"22021", Code::kInvalidArgument, "TEXT_INVALID", "send UTF-8 without NUL"},
    {"", Code::kInternal, "DATABASE_FAILED", "please report this"},
};

const Meaning& MeaningOf(absl::string_view sqlstate) {
  // Without a SQLSTATE there was no answer at all, which is what class 08 means.
  if (sqlstate.empty()) return kMeanings[0];
  const Meaning* meaning = kMeanings;
  while (!absl::StartsWith(sqlstate, meaning->prefix)) ++meaning;
  return *meaning;
}

// Position of the SQLSTATE in `line` between "FATAL: " (in any language) and ": "; npos if the line
// has no SQLSTATE.
size_t FindState(absl::string_view line) {
  for (size_t at = line.find(":  "); at != line.npos; at = line.find(":  ", at + 1)) {
    const absl::string_view rest = line.substr(at + 3);
    if (rest.size() < 6 || rest[5] != ':') continue;
    bool is_state = true;
    for (const char c : rest.substr(0, 5)) {
      is_state = is_state && (absl::ascii_isdigit(c) || absl::ascii_isupper(c));
    }
    if (is_state) return at + 3;
  }
  return line.npos;
}

}  // namespace

std::string PostgresPlace::Text() const {
  return absl::StrCat("database \"", database, "\" on ", host, ":", port, " (user \"", user, "\")");
}

absl::Status PostgresError(absl::string_view sqlstate, absl::string_view message,
                           const PostgresPlace& place) {
  const Meaning& meaning = MeaningOf(sqlstate);
  const std::string state =
      sqlstate.empty() ? std::string() : absl::StrCat(" (SQLSTATE ", sqlstate, ")");
  const std::string where =
      absl::StrCat(place.Text(), ": ", absl::StripAsciiWhitespace(message), state);
  return MakeError(meaning.code, meaning.reason, "", absl::StrCat(where, "; ", meaning.advice),
                   {{"database", place.database},
                    {"host", place.host},
                    {"at", where},
                    {"sqlstate", std::string(sqlstate)}},
                   meaning.retry_delay_ms);
}

bool EndsConnection(absl::string_view sqlstate) {
  return absl::StartsWith(sqlstate, "08") || absl::StartsWith(sqlstate, "57P") ||
         sqlstate == "25006" || sqlstate == "25P03";
}

bool IsSerializationFailure(absl::string_view sqlstate) {
  return sqlstate == "40001" || sqlstate == "40P01";
}

ConnectFailure ParseConnectFailure(absl::string_view libpq_message) {
  ConnectFailure failure;
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(libpq_message, '\n', absl::SkipWhitespace())) {
    // Skips the line with the place in the source code. Its first word is translated, but the place
    // is not.
    if (absl::StrContains(line, ".c:")) continue;
    std::string text(absl::StripAsciiWhitespace(line));
    if (const size_t at = FindState(text); at != text.npos) {
      failure.sqlstate = text.substr(at, 5);
      text.erase(at, 7);
    }
    lines.push_back(std::move(text));
  }
  failure.message = absl::StrJoin(lines, "; ");
  return failure;
}

}  // namespace phimap
