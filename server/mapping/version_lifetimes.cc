#include "server/mapping/version_lifetimes.h"

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "core/thread/start_thread.h"
#include "core/thread/steady_time.h"

namespace phimap {

VersionLifetimes::~VersionLifetimes() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    stop_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void VersionLifetimes::Start() {
  thread_ = StartThread("the lifetimes of versions", [this] { Run(); });
}

absl::Status VersionLifetimes::RecordUses() {
  MutexLock lock(&recording_);
  const absl::Time looked = SteadyNow();
  noted_.merge(registry_.TakeUses());
  std::set<VersionName> used = noted_;
  for (const VersionHandle& version : registry_.AllLive()) {
    // InfinitePast means that the version has had no request.
    const absl::Time last = version.tally().last_request();
    if (last != absl::InfinitePast() && last >= recorded_until_) {
      used.insert({version.record().mapping, version.record().number});
    }
  }
  if (!used.empty()) {
    const absl::Status recorded =
        store_.RecordUses(std::vector<VersionName>(used.begin(), used.end()));
    if (!recorded.ok()) return recorded;
  }
  noted_.clear();
  recorded_until_ = looked;
  return absl::OkStatus();
}

absl::Status VersionLifetimes::DeleteExpired() { return changes_.DeleteExpired(); }

void VersionLifetimes::Run() {
  Clock::time_point delete_at = Clock::now() + kDeletePeriod;
  while (AwaitTime(Clock::now() + kRecordPeriod)) {
    try {
      LogFailure(RecordUses());
      if (Clock::now() < delete_at) continue;
      LogFailure(DeleteExpired());
    } catch (const std::bad_alloc&) {
      continue;  // there may be memory the next time
    }
    delete_at = Clock::now() + kDeletePeriod;
  }
  // Records the uses of the last seconds, because another server may take over the store from now
  // on.
  LogFailure(RecordUses());
}

void VersionLifetimes::LogFailure(const absl::Status& status) {
  if (status.ok()) return;
  logger_.Log(LogLevel::kWarning, "version_lifetimes_not_kept", {{"error", status.message()}});
}

bool VersionLifetimes::AwaitTime(Clock::time_point end) {
  MutexLock lock(&mutex_);
  while (!stopping_ && stop_.WaitUntil(&mutex_, end)) {
  }
  return !stopping_;
}

}  // namespace phimap
