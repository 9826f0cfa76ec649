#include "server/registry/catalog_follower.h"

#include <algorithm>
#include <utility>

#include "core/thread/start_thread.h"

namespace phimap {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestPause = absl::Seconds(1);

}  // namespace

CatalogFollower::CatalogFollower(VersionRegistry& registry, std::unique_ptr<ChangeFeed> feed,
                                 prometheus::Counter* errors,
                                 std::function<void(bool caught_up)> after_each)
    : registry_(registry),
      feed_(std::move(feed)),
      errors_(errors),
      after_each_(std::move(after_each)),
      failing_(!registry.revision_with_own_changes().has_value()),
      thread_(StartThread("following the store", [this] { Run(); })) {}

CatalogFollower::~CatalogFollower() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    stop_.NotifyAll();
  }
  thread_.join();
}

absl::Duration CatalogFollower::Age() const {
  MutexLock lock(&mutex_);
  return absl::FromChrono(Clock::now() - current_at_);
}

void CatalogFollower::Run() {
  absl::Duration pause = kFirstPause;
  while (!stopping()) {
    const Clock::time_point asked = Clock::now();
    const absl::Status caught_up =
        registry_.CatchUp([this](const Revision& since) { return feed_->ChangesSince(since); });
    failing_ = !caught_up.ok();
    after_each_(caught_up.ok());
    if (!caught_up.ok()) {
      errors_->Increment();
      if (!Pause(pause)) return;
      pause = std::min(2 * pause, kLongestPause);
      continue;
    }
    pause = kFirstPause;
    {
      MutexLock lock(&mutex_);
      current_at_ = asked;
    }
    feed_->Await(kPollPeriod);
  }
}

bool CatalogFollower::Pause(absl::Duration pause) {
  const Clock::time_point end = Clock::now() + absl::ToChronoNanoseconds(pause);
  MutexLock lock(&mutex_);
  while (!stopping_ && stop_.WaitUntil(&mutex_, end)) {
  }
  return !stopping_;
}

bool CatalogFollower::stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

}  // namespace phimap
