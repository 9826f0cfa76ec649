#include "server/store/postgres/postgres_database.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/store/postgres/postgres_schema.h"
#include "server/store/postgres/postgres_uri.h"

namespace phimap {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kOldestServer = 130000;  // gen_random_uuid is built in since 13

// Returns a random duration from half of `longest` to `longest`.
absl::Duration RandomUpTo(absl::Duration longest) {
  thread_local std::minstd_rand generator{std::random_device()()};
  return longest * std::uniform_real_distribution<double>(0.5, 1.0)(generator);
}

absl::Status WithRetryDelay(const absl::Status& error, absl::Duration delay) {
  const std::optional<ErrorDetail> detail = DetailOf(error);
  if (!detail.has_value() || !absl::IsUnavailable(error)) return error;
  return MakeError(error.code(), detail->reason, detail->field, error.message(), detail->metadata,
                   std::max<int64_t>(1, absl::ToInt64Milliseconds(delay)));
}

// Returns 1 for an address that is wrong, which connecting will say.
int64_t CountHosts(const std::string& uri) {
  const auto hosts = ParsePostgresUri(uri);
  return hosts.ok() ? std::max<int64_t>(1, static_cast<int64_t>(hosts->size())) : 1;
}

absl::Status CheckServerVersion(const PostgresConnection& connection) {
  if (connection.server_version() >= kOldestServer) return absl::OkStatus();
  const int version = connection.server_version() / 10000;
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kDatabaseTooOld, "",
                   absl::StrCat(connection.place().Text(), " is PostgreSQL ", version,
                                "; expected 13 or later: upgrade the server"),
                   {{"expected", "13"}, {"actual", absl::StrCat(version)}});
}

}  // namespace

PostgresPool::PostgresPool(std::string uri, const PostgresPoolOptions& options)
    : uri_(std::move(uri)), options_(options), hosts_(CountHosts(uri_)) {
  PHIMAP_CHECK(options.connections >= 1);
}

PostgresPool::~PostgresPool() {
  MutexLock lock(&mutex_);
  PHIMAP_CHECK(in_use_ == 0);
}

PostgresPool::Lease::~Lease() {
  if (pool_ == nullptr) return;
  pool_->Return(std::move(connection_), generation_);
}

absl::StatusOr<PostgresPool::Lease> PostgresPool::Acquire(Deadline end) {
  PHIMAP_ASSIGN_OR_RETURN(Lease lease, Take(end));
  if (lease.connection_ == nullptr) PHIMAP_RETURN_IF_ERROR(Connect(lease, end));
  lease.connection_->set_end(end);
  return lease;
}

absl::StatusOr<PostgresPool::Lease> PostgresPool::AcquireUntil(Deadline deadline) {
  for (;;) {
    absl::StatusOr<Lease> lease = Acquire();
    if (lease.ok() || !absl::IsUnavailable(lease.status())) return lease;
    MutexLock lock(&mutex_);
    if (Clock::now() >= deadline) return lease;
    const Deadline next = std::max(next_attempt_, Clock::now() + std::chrono::milliseconds(10));
    changed_.WaitUntil(&mutex_, std::min(deadline, next));
  }
}

absl::StatusOr<PostgresPool::Lease> PostgresPool::Take(Deadline end) {
  const Deadline deadline = std::min(end, Clock::now() + absl::ToChronoNanoseconds(options_.wait));
  MutexLock lock(&mutex_);
  for (;;) {
    while (!idle_.empty()) {
      std::unique_ptr<PostgresConnection> connection = std::move(idle_.back());
      idle_.pop_back();
      if (!connection->IsAlive()) continue;
      ++in_use_;
      return Lease(this, std::move(connection), generation_);
    }
    if (failures_ > 0 && (probing_ || Clock::now() < next_attempt_)) return AwayError();
    if (in_use_ < options_.connections) {
      probing_ = failures_ > 0;
      ++in_use_;
      return Lease(this, nullptr, generation_);
    }
    if (!changed_.WaitUntil(&mutex_, deadline) && Clock::now() >= deadline) {
      return MakeError(absl::StatusCode::kUnavailable, reason::kDatabaseBusy, "",
                       absl::StrCat("all ", options_.connections,
                                    " connections to the database were in use for too long; "
                                    "try again"),
                       {}, /*retry_delay_ms=*/1000);
    }
  }
}

absl::Status PostgresPool::AwayError() const {
  // Only the thread that probes the database learns whether it is back. The others should not retry
  // before that.
  const absl::Duration left = absl::FromChrono(next_attempt_ - Clock::now());
  return WithRetryDelay(last_error_, std::max(left, options_.first_backoff));
}

absl::StatusOr<std::unique_ptr<PostgresConnection>> PostgresPool::OpenChecked(Deadline end) {
  PostgresTimeouts timeouts = options_.timeouts;
  if (end != Deadline::max()) {
    timeouts.connect_at_most = absl::FromChrono(end - Clock::now()) / hosts_;
  }
  PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> connection,
                          PostgresConnection::Open(uri_, timeouts));
  connection->set_end(end);
  PHIMAP_RETURN_IF_ERROR(CheckServerVersion(*connection));
  PHIMAP_ASSIGN_OR_RETURN(const SqlRows standbys,
                          connection->RunBatch("SHOW synchronous_standby_names"));
  has_synchronous_standby_ = !standbys.empty() && !standbys.Text(0, 0).empty();
  if (!prepared_) {
    PHIMAP_RETURN_IF_ERROR(options_.prepare(*connection));
    prepared_ = true;
  }
  return connection;
}

absl::Status PostgresPool::Connect(Lease& lease, Deadline end) {
  absl::StatusOr<std::unique_ptr<PostgresConnection>> opened = OpenChecked(end);
  if (!opened.ok()) {
    ConnectFailed(opened.status());
    return WithRetryDelay(opened.status(), options_.first_backoff);
  }
  lease.connection_ = *std::move(opened);
  MutexLock lock(&mutex_);
  place_ = lease.connection_->place().Text();
  failures_ = 0;
  probing_ = false;
  changed_.NotifyAll();
  return absl::OkStatus();
}

std::string PostgresPool::place() const {
  MutexLock lock(&mutex_);
  return place_;
}

void PostgresPool::ConnectFailed(const absl::Status& error) {
  MutexLock lock(&mutex_);
  // Attempts that began at the same time count as one failure.
  if (failures_ == 0 || probing_) failures_ = std::min(failures_ + 1, 30);
  probing_ = false;
  last_error_ = error;
  const absl::Duration backoff =
      std::min(options_.longest_backoff, options_.first_backoff * (int64_t{1} << (failures_ - 1)));
  next_attempt_ = Clock::now() + absl::ToChronoNanoseconds(RandomUpTo(backoff));
  changed_.NotifyAll();
}

void PostgresPool::Return(std::unique_ptr<PostgresConnection> connection, int64_t generation) {
  const bool idle = connection != nullptr && connection->IsAlive();
  MutexLock lock(&mutex_);
  --in_use_;
  if (idle && generation == generation_) idle_.push_back(std::move(connection));
  changed_.NotifyAll();
}

void PostgresPool::Renew() {
  std::vector<std::unique_ptr<PostgresConnection>> closed;
  MutexLock lock(&mutex_);
  ++generation_;
  closed.swap(idle_);
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kLockStore[] = " SELECT only_row FROM store WHERE only_row = 1 FOR UPDATE;";
constexpr char kCommit[] = "COMMIT";
// Both statements in one round trip; the second is not run if the first fails.
constexpr char kNotifyAndCommit[] = "SELECT pg_notify('phimap', ''); COMMIT";
constexpr char kCommitSoon[] = "SET LOCAL synchronous_commit = off; COMMIT";
// Locks the row, and gives the transaction something to commit.
constexpr char kSettle[] = " UPDATE store SET only_row = only_row WHERE only_row = 1;";

absl::Status CommitInDoubt(const absl::Status& cause, absl::string_view what) {
  const ErrorDetail detail = DetailOf(cause).value_or(ErrorDetail());
  return MakeError(
      absl::StatusCode::kUnavailable, reason::kCommitInDoubt, "",
      absl::StrCat("it is not known whether ", what,
                   "; check when the database can be reached again: ", cause.message()),
      detail.metadata, 5000);
}

absl::Status LocalOnly(const PostgresConnection& connection) {
  const PostgresPlace& place = connection.place();
  return MakeError(absl::StatusCode::kUnavailable, reason::kCommitLocalOnly, "",
                   absl::StrCat(place.Text(), " committed without waiting for its standby (",
                                absl::StrJoin(connection.last_warnings(), "; "),
                                "): a failover may lose this commit; check the standby, and do not "
                                "cancel waiting commits"),
                   {{"database", place.database}, {"host", place.host}, {"place", place.Text()}},
                   5000);
}

absl::Status NotCommitted(const PostgresPlace& place) {
  return MakeError(
      absl::StatusCode::kInternal, reason::kDatabaseFailed, "",
      absl::StrCat(place.Text(), " rolled back a transaction when it was asked to commit"));
}

PostgresPool::Deadline EndAfter(absl::Duration limit) {
  if (limit == absl::InfiniteDuration()) return PostgresPool::Deadline::max();
  return Clock::now() + absl::ToChronoNanoseconds(limit);
}

PostgresPoolOptions WithSchema(PostgresPoolOptions options) {
  options.prepare = [](PostgresConnection& connection) {
    return PreparePostgresSchema(connection);
  };
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresDatabase>> PostgresDatabase::Open(
    const std::string& uri, const PostgresDatabaseOptions& options) {
  std::unique_ptr<PostgresDatabase> database = OpenLater(uri, options);
  PHIMAP_RETURN_IF_ERROR(database->pool_.Acquire().status());
  return database;
}

std::unique_ptr<PostgresDatabase> PostgresDatabase::OpenLater(
    const std::string& uri, const PostgresDatabaseOptions& options) {
  return std::unique_ptr<PostgresDatabase>(new PostgresDatabase(uri, options));
}

PostgresDatabase::PostgresDatabase(const std::string& uri, const PostgresDatabaseOptions& options)
    : options_(options), pool_(uri, WithSchema(options.pool)) {}

void PostgresDatabase::LookAtFacts() {
  Read([this](SqlSession& session) -> absl::Status {
    PHIMAP_ASSIGN_OR_RETURN(
        const SqlRows rows,
        session.Run("SELECT (SELECT store_id FROM store), "
                    "(SELECT count(*) FROM pg_stat_replication WHERE "
                    "coalesce(state, 'streaming') IN ('catchup', 'streaming')), "
                    "CAST(current_setting('synchronous_standby_names') <> '' AND NOT EXISTS "
                    "(SELECT 1 FROM pg_stat_replication WHERE "
                    "coalesce(sync_state, 'sync') IN ('sync', 'quorum')) AS INTEGER)"));
    MutexLock lock(&mutex_);
    facts_ = {.store_id = rows.Text(0, 0),
              .standbys = rows.Int(0, 1),
              .synchronous_standby_missing = rows.Int(0, 2) != 0};
    return absl::OkStatus();
  }).IgnoreError();
}

StoreFacts PostgresDatabase::facts() const {
  MutexLock lock(&mutex_);
  return facts_;
}

PostgresDatabase::Outcome PostgresDatabase::Failed(PostgresConnection& connection,
                                                   const absl::Status& status) {
  const std::string sqlstate = connection.last_sqlstate();
  const bool lost = !connection.usable() || EndsConnection(sqlstate);
  if (lost) {
    pool_.Renew();
  } else if (connection.in_transaction()) {
    // If the rollback fails, the connection is not idle and is closed instead of kept.
    connection.RunBatch("ROLLBACK").status().IgnoreError();
  }
  return {.status = status, .again = lost || IsSerializationFailure(sqlstate)};
}

PostgresDatabase::Outcome PostgresDatabase::Attempt(const std::string& begin,
                                                    const std::string& commit, PostgresBody body,
                                                    PostgresPool::Deadline end) {
  absl::StatusOr<PostgresPool::Lease> lease = pool_.Acquire(end);
  if (!lease.ok()) return {.status = lease.status()};
  PostgresConnection& connection = **lease;
  if (const absl::StatusOr<SqlRows> begun = connection.RunBatch(begin); !begun.ok()) {
    return Failed(connection, begun.status());
  }
  PostgresSession session(&connection);
  const absl::Status status = body(session);
  // The first failed statement is reported rather than the body's result, which may hide it.
  if (!session.failure().ok()) {
    return Failed(connection, status.ok() ? session.failure() : status);
  }
  if (!status.ok()) {
    const Outcome outcome = Failed(connection, status);
    return {.status = outcome.status};
  }
  return Commit(connection, commit, session.failure());
}

PostgresDatabase::Outcome PostgresDatabase::Commit(PostgresConnection& connection,
                                                   const std::string& commit,
                                                   const absl::Status& failure) {
  const absl::Status committed = connection.RunBatch(commit).status();
  if (!committed.ok()) {
    // If the server answers with an error and keeps the connection open, the transaction was
    // certainly not committed.
    const bool in_doubt = !connection.usable() || EndsConnection(connection.last_sqlstate());
    Outcome outcome = Failed(connection, committed);
    outcome.in_doubt = in_doubt;
    return outcome;
  }
  if (connection.last_command() != kCommit) {
    return {.status = failure.ok() ? NotCommitted(connection.place()) : failure};
  }
  if (!connection.last_warnings().empty()) {
    return {.status = LocalOnly(connection), .in_doubt = true};
  }
  return {};
}

absl::Status PostgresDatabase::ReadUntil(PostgresPool::Deadline end, PostgresBody body) {
  const std::string begin = BeginRead(options_.pool.timeouts);
  Outcome outcome = Attempt(begin, kCommit, body, end);
  if (outcome.again && Clock::now() < end) outcome = Attempt(begin, kCommit, body, end);
  return outcome.status;
}

absl::Status PostgresDatabase::ReadBytes(PostgresBody body) {
  return ReadUntil(PostgresPool::Deadline::max(), body);
}

absl::Status PostgresDatabase::Read(Body body) {
  return ReadUntil(EndAfter(options_.read_limit),
                   [&](PostgresSession& session) { return body(session); });
}

absl::Status PostgresDatabase::WriteTwice(Durability durability, PostgresBody body) {
  const std::string begin = BeginWrite(options_.pool.timeouts);
  const char* const commit = durability == Durability::kNow ? kCommit : kCommitSoon;
  Outcome outcome = Attempt(begin, commit, body);
  if (outcome.again) outcome = Attempt(begin, commit, body);
  return outcome.status;
}

absl::Status PostgresDatabase::WriteAside(Body body) {
  return WriteTwice(Durability::kWithNext, [&](PostgresSession& session) { return body(session); });
}

absl::Status PostgresDatabase::Write(Body body, IsStored is_stored, absl::string_view what) {
  const absl::Status written = WriteOrDoubt(body, is_stored, what);
  if (written.ok()) in_doubt_.store(false, std::memory_order_release);
  const std::optional<ErrorDetail> detail = DetailOf(written);
  if (detail.has_value() && detail->reason == reason::kCommitInDoubt) {
    in_doubt_.store(true, std::memory_order_release);
  }
  return written;
}

absl::Status PostgresDatabase::WriteOrDoubt(Body body, IsStored is_stored, absl::string_view what) {
  const std::string begin = absl::StrCat(BeginWrite(options_.pool.timeouts), kLockStore);
  const auto run = [&](PostgresSession& session) { return body(session); };
  const PostgresPool::Deadline end = EndAfter(options_.change_limit);
  Outcome outcome = Attempt(begin, kNotifyAndCommit, run, end);
  if (outcome.again && !outcome.in_doubt && Clock::now() < end) {
    outcome = Attempt(begin, kNotifyAndCommit, run, end);
  }
  if (!outcome.in_doubt) return outcome.status;
  const std::optional<ErrorDetail> detail = DetailOf(outcome.status);
  if (detail.has_value() && detail->reason == reason::kCommitLocalOnly) {
    return CommitInDoubt(outcome.status, what);
  }
  return Settle(outcome.status, is_stored, what);
}

absl::Status PostgresDatabase::Settle(const absl::Status& cause, IsStored is_stored,
                                      absl::string_view what) {
  const std::string begin = absl::StrCat(BeginWrite(options_.pool.timeouts), kSettle);
  const PostgresPool::Deadline deadline = Clock::now() + absl::ToChronoNanoseconds(options_.settle);
  std::chrono::milliseconds pause{20};
  for (;;) {
    {
      // Waits here until the database can be reached again.
      const absl::StatusOr<PostgresPool::Lease> back = pool_.AcquireUntil(deadline);
      if (!back.ok()) return CommitInDoubt(cause, what);
    }
    bool stored = false;
    const Outcome outcome = Attempt(begin, kCommit, [&](PostgresSession& session) -> absl::Status {
      PHIMAP_ASSIGN_OR_RETURN(stored, is_stored(session));
      return absl::OkStatus();
    });
    if (outcome.status.ok()) return stored ? absl::OkStatus() : cause;
    if (!absl::IsUnavailable(outcome.status) || Clock::now() + pause >= deadline) {
      return CommitInDoubt(cause, what);
    }
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

}  // namespace phimap
