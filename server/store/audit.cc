#include "server/store/audit.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/thread/start_thread.h"
#include "server/observe/json_text.h"
#include "server/store/store.h"

namespace phimap {
namespace {

constexpr absl::string_view kAuditColumns =
    "number, time_us, method, principal, peer, request_id, mapping, alias, build_id, "
    "previous_version, previous_digest, version, digest, outcome, reason, detail";

// Number of refused changes that wait to be written. More are left out.
constexpr size_t kMaxWaiting = 1000;
// Number of callers and reasons that are remembered.
constexpr size_t kMaxSpent = 10'000;
constexpr absl::Duration kRefusalEvery = absl::Minutes(1);
// Time between two attempts to write while the database is away.
constexpr absl::Duration kRetryEvery = absl::Seconds(1);
// An entry that is written so long after its change was refused says so.
constexpr absl::Duration kLate = absl::Seconds(5);

using Clock = std::chrono::steady_clock;

// Whether an entry that could not be written for `error` may be written later: the database is
// away, or its disk is full. An entry whose commit is in doubt may be there already.
bool PassesBy(const absl::Status& error) {
  if (DetailOf(error).value_or(ErrorDetail()).reason == reason::kCommitInDoubt) return false;
  return absl::IsUnavailable(error) || absl::IsResourceExhausted(error);
}

AuditEntry EntryAt(const SqlRows& rows, size_t row) {
  AuditEntry entry;
  entry.number = rows.Int(row, 0);
  entry.time = absl::FromUnixMicros(rows.Int(row, 1));
  entry.method = rows.Text(row, 2);
  entry.principal = rows.Text(row, 3);
  entry.peer = rows.Text(row, 4);
  entry.request_id = rows.Text(row, 5);
  entry.mapping = rows.Text(row, 6);
  entry.alias = rows.Text(row, 7);
  entry.build_id = rows.Text(row, 8);
  entry.previous_version = rows.Int(row, 9);
  entry.previous_digest = rows.Text(row, 10);
  entry.version = rows.Int(row, 11);
  entry.digest = rows.Text(row, 12);
  entry.outcome = rows.Text(row, 13);
  entry.reason = rows.Text(row, 14);
  entry.detail = rows.Text(row, 15);
  return entry;
}

int64_t MicrosOf(absl::Time time) {
  if (time == absl::InfinitePast()) return std::numeric_limits<int64_t>::min();
  if (time == absl::InfiniteFuture()) return std::numeric_limits<int64_t>::max();
  return absl::ToUnixMicros(time);
}

void AppendField(absl::string_view name, absl::string_view text, std::string& json) {
  if (text.empty()) return;
  absl::StrAppend(&json, ",\"", name, "\":");
  AppendJsonText(text, json);
}

void AppendField(absl::string_view name, int64_t number, std::string& json) {
  if (number != 0) absl::StrAppend(&json, ",\"", name, "\":", number);
}

}  // namespace

void AuditEntry::SetOrigin(const ChangeOrigin& origin) {
  method = origin.method;
  principal = origin.principal;
  peer = origin.peer;
  request_id = origin.request_id;
}

void AuditEntry::SetOutcome(const absl::Status& status) {
  outcome = status.ok() ? "OK" : absl::StatusCodeToString(status.code());
  reason = DetailOf(status).value_or(ErrorDetail()).reason;
}

absl::Status AddAuditEntry(SqlSession& session, AuditEntry entry, absl::Time now) {
  // The row of `store` is locked by every transaction that changes names, so that the numbers
  // follow the order of commits without a gap.
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows rows,
                          session.Run("UPDATE store SET audited = audited + 1 RETURNING audited"));
  if (rows.empty()) return absl::InternalError("the table store lacks its row");
  return session
      .Run(absl::StrCat("INSERT INTO audit (", kAuditColumns,
                        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, "
                        "$15, $16)"),
           {rows.Int(0, 0), absl::ToUnixMicros(now), entry.method, entry.principal, entry.peer,
            entry.request_id, entry.mapping, entry.alias, entry.build_id, entry.previous_version,
            entry.previous_digest, entry.version, entry.digest, entry.outcome, entry.reason,
            entry.detail})
      .status();
}

absl::StatusOr<std::vector<AuditEntry>> ReadAudit(SqlSession& session, const AuditQuery& query,
                                                  int limit) {
  const absl::string_view order = query.oldest_first ? " AND number > $6 ORDER BY number"
                                                     : " AND number < $6 ORDER BY number DESC";
  const int64_t bound =
      query.bound == 0 && !query.oldest_first ? std::numeric_limits<int64_t>::max() : query.bound;
  const std::string principal = query.principal.value_or("");
  PHIMAP_ASSIGN_OR_RETURN(
      const SqlRows rows,
      session.Run(
          absl::StrCat("SELECT ", kAuditColumns,
                       " FROM audit WHERE time_us >= $1 AND time_us < $2 AND "
                       "($3 = '' OR mapping = $3) AND ($4 = 0 OR principal = $5)",
                       order, " LIMIT $7"),
          {MicrosOf(query.from), MicrosOf(query.until), query.mapping,
           int64_t{query.principal.has_value()}, principal, bound, int64_t{std::max(limit, 0)}}));
  std::vector<AuditEntry> entries;
  entries.reserve(rows.size());
  for (size_t row = 0; row < rows.size(); ++row) entries.push_back(EntryAt(rows, row));
  return entries;
}

absl::Status PruneAudit(SqlSession& session, absl::Time now) {
  return session
      .Run("DELETE FROM audit WHERE time_us < $1", {absl::ToUnixMicros(now - kAuditRetention)})
      .status();
}

std::string JsonOf(const AuditEntry& entry) {
  std::string json = absl::StrCat("{\"number\":", entry.number, ",\"time\":");
  AppendJsonText(absl::FormatTime("%Y-%m-%d%ET%H:%M:%E6SZ", entry.time, absl::UTCTimeZone()), json);
  AppendField("method", entry.method, json);
  AppendField("principal", entry.principal, json);
  AppendField("peer", entry.peer, json);
  AppendField("request_id", entry.request_id, json);
  AppendField("mapping", entry.mapping, json);
  AppendField("alias", entry.alias, json);
  AppendField("build_id", entry.build_id, json);
  AppendField("previous_version", entry.previous_version, json);
  AppendField("previous_digest", entry.previous_digest, json);
  AppendField("version", entry.version, json);
  AppendField("digest", entry.digest, json);
  AppendField("outcome", entry.outcome, json);
  AppendField("reason", entry.reason, json);
  AppendField("detail", entry.detail, json);
  json.push_back('}');
  return json;
}

RefusedChanges::RefusedChanges(Store& store, const Logger& logger)
    : store_(store), logger_(logger) {
  thread_ = StartThread("writing down refused changes", [this] { Run(); });
}

RefusedChanges::~RefusedChanges() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

bool RefusedChanges::Allows(Spent& spent, absl::Time now) const {
  const int64_t more = (now - spent.refilled) / kRefusalEvery;
  if (more > 0) {
    spent.tokens = static_cast<int>(std::min<int64_t>(spent.tokens + more, kRefusalsAtOnce));
    spent.refilled += static_cast<double>(more) * kRefusalEvery;
  }
  if (spent.tokens == 0) return false;
  --spent.tokens;
  return true;
}

void RefusedChanges::Note(AuditEntry entry) {
  const absl::Time now = absl::Now();
  entry.time = now;
  MutexLock lock(&mutex_);
  if (spent_.size() >= kMaxSpent) {
    Summarize();
    spent_.clear();
  }
  Spent& spent =
      spent_
          .try_emplace(absl::StrCat(entry.principal, " ", entry.method, " ", entry.reason),
                       Spent{.refilled = now})
          .first->second;
  if (waiting_.size() >= kMaxWaiting || !Allows(spent, now)) {
    ++spent.left_out;
    spent.last = std::move(entry);
    return;
  }
  waiting_.push_back(std::move(entry));
  changed_.NotifyAll();
}

void RefusedChanges::Summarize() {
  for (auto& [key, spent] : spent_) {
    if (spent.left_out == 0) continue;
    AuditEntry entry = std::exchange(spent.last, AuditEntry());
    entry.detail = absl::StrCat("the last of ", std::exchange(spent.left_out, 0),
                                " such refusals that have no entries");
    waiting_.push_back(std::move(entry));
  }
}

std::optional<AuditEntry> RefusedChanges::Next(Clock::time_point& summary) {
  MutexLock lock(&mutex_);
  while (true) {
    while (waiting_.empty() && !stopping_ && changed_.WaitUntil(&mutex_, summary)) {
    }
    if (stopping_ || Clock::now() >= summary) {
      Summarize();
      summary = Clock::now() + absl::ToChronoSeconds(kRefusalEvery);
    }
    if (waiting_.empty() && stopping_) return std::nullopt;
    if (waiting_.empty()) continue;
    AuditEntry entry = std::move(waiting_.front());
    waiting_.pop_front();
    return entry;
  }
}

bool RefusedChanges::WaitToRetry(AuditEntry entry) {
  MutexLock lock(&mutex_);
  waiting_.push_front(std::move(entry));
  const auto wake = std::chrono::steady_clock::now() + absl::ToChronoSeconds(kRetryEvery);
  while (!stopping_ && changed_.WaitUntil(&mutex_, wake)) {
  }
  return !stopping_;
}

void RefusedChanges::Run() {
  bool failing = false;
  Clock::time_point summary = Clock::now() + absl::ToChronoSeconds(kRefusalEvery);
  while (std::optional<AuditEntry> entry = Next(summary)) {
    AuditEntry written = *entry;
    if (absl::Now() - entry->time > kLate) {
      absl::StrAppend(&written.detail, written.detail.empty() ? "written late; " : "; ",
                      "refused at ",
                      absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", entry->time, absl::UTCTimeZone()));
    }
    const absl::Status status = store_.RecordRefusal(written);
    if (!status.ok() && !failing) {
      logger_.Log(LogLevel::kWarning, "refusal_not_written",
                  {{"error", std::string(status.message())}});
    }
    failing = !status.ok();
    if (PassesBy(status) && !WaitToRetry(*std::move(entry))) break;
  }
  MutexLock lock(&mutex_);
  int64_t lost = static_cast<int64_t>(waiting_.size());
  for (const auto& [key, spent] : spent_) lost += spent.left_out;
  if (lost == 0) return;
  logger_.Log(LogLevel::kWarning, "refusals_lost", {{"refusals", lost}});
}

}  // namespace phimap
