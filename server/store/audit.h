// The audit: what was changed in a store, by whom and from where.
//
// Guarantees: the entry of a change is written in the change's own transaction. So there is one for
// each change that was made, and none for a change that was not, whatever was killed or cut off.
// Entries are numbered 1, 2, 3 … in the order of commits and are never changed; they are removed
// after kAuditRetention. Nothing in them is secret: neither tokens nor rows.
//
// Changes that known callers asked for and were refused are entries too (RefusedChanges). They are
// written a moment later, and may be lost in a crash.
#ifndef PHIMAP_SERVER_STORE_AUDIT_H_
#define PHIMAP_SERVER_STORE_AUDIT_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/thread/mutex.h"
#include "server/admission/change_origin.h"
#include "server/observe/log.h"
#include "server/store/sql_database.h"

namespace phimap {

inline constexpr absl::Duration kAuditRetention = absl::Hours(24 * 400);

// One entry. Texts that do not apply are empty, and numbers 0.
struct AuditEntry {
  int64_t number = 0;
  absl::Time time;
  // As in ChangeOrigin.
  std::string method;
  std::string principal;
  std::string peer;
  std::string request_id;
  // What was changed: a mapping, one of its aliases, the build that ended.
  std::string mapping;
  std::string alias;
  std::string build_id;
  // What the name meant before, and what it means since. A version that was added has only the
  // second, a deleted one only the first.
  int64_t previous_version = 0;
  std::string previous_digest;
  int64_t version = 0;
  std::string digest;
  // "OK", or the code of the error with which a change was refused or a build ended, and its
  // reason.
  std::string outcome = "OK";
  std::string reason;
  // What else is to be known, in words.
  std::string detail;

  void SetOrigin(const ChangeOrigin& origin);
  void SetOutcome(const absl::Status& status);
};

// Which entries are wanted.
struct AuditQuery {
  // Newest first: those with a number less than this. Oldest first: those with a larger number.
  int64_t bound = 0;
  bool oldest_first = false;
  // Empty: any.
  std::string mapping;
  std::optional<std::string> principal;
  absl::Time from = absl::InfinitePast();
  absl::Time until = absl::InfiniteFuture();
};

// Adds an entry within a transaction. Its number and time are filled in here.
absl::Status AddAuditEntry(SqlSession& session, AuditEntry entry, absl::Time now);
// Returns at most `limit` entries.
absl::StatusOr<std::vector<AuditEntry>> ReadAudit(SqlSession& session, const AuditQuery& query,
                                                  int limit);
// Removes entries older than kAuditRetention.
absl::Status PruneAudit(SqlSession& session, absl::Time now);

// An entry as one line of JSON, without the line's end.
std::string JsonOf(const AuditEntry& entry);

class Store;

// Writes down changes that were refused, on a thread of its own, so that no event loop waits.
//
// A caller that goes on asking cannot fill the store: of each caller, method and reason, at most
// kRefusalsAtOnce are written at once and one more each minute. How many were left out is written
// too, within a minute, and at the end of the server. While the database is away, entries wait for
// it, and say later when their change was refused. Thread-safe.
class RefusedChanges {
 public:
  static constexpr int kRefusalsAtOnce = 20;

  // Both must outlive this object.
  RefusedChanges(Store& store, const Logger& logger);
  // Writes what still waits.
  ~RefusedChanges();
  RefusedChanges(const RefusedChanges&) = delete;
  RefusedChanges& operator=(const RefusedChanges&) = delete;

  // Takes the entry of a refused change; number and time are filled in. Never waits.
  void Note(AuditEntry entry) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What a caller has been refused for one reason.
  struct Spent {
    int tokens = kRefusalsAtOnce;
    absl::Time refilled;
    int64_t left_out = 0;
    // The last one that was left out.
    AuditEntry last = {};
  };
  bool Allows(Spent& spent, absl::Time now) const;
  // Waits for an entry to write; nullopt at the end. From `summary` on, which is set anew then,
  // those that were left out are summarized.
  std::optional<AuditEntry> Next(std::chrono::steady_clock::time_point& summary)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps an entry that could not be written, and waits before the next attempt. Returns whether
  // there is to be one.
  bool WaitToRetry(AuditEntry entry) ABSL_LOCKS_EXCLUDED(mutex_);
  // Puts entries that say how many were left out into waiting_.
  void Summarize() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  Store& store_;
  const Logger& logger_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<AuditEntry> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Spent> spent_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_AUDIT_H_
