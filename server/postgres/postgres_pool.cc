#include "server/postgres/postgres_pool.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/postgres/postgres_uri.h"

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
  return MakeError(absl::StatusCode::kFailedPrecondition, "DATABASE_TOO_OLD", "",
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
      return MakeError(absl::StatusCode::kUnavailable, "DATABASE_BUSY", "",
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

}  // namespace phimap
