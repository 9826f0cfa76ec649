#include "server/readiness.h"

#include "absl/strings/str_cat.h"

namespace phimap {

void Readiness::NamesAreKnown() {
  MutexLock lock(&mutex_);
  names_known_ = true;
  MayBegin();
}

void Readiness::CallsAreAccepted() {
  MutexLock lock(&mutex_);
  accepts_calls_ = true;
  MayBegin();
}

void Readiness::MayBegin() {
  if (!names_known_ || !accepts_calls_ || std::exchange(begun_, true)) return;
  registry_.WarmAliases();
  if (warm_time_ == warm_time_.zero() || registry_.warming() == 0) return ready_();
  warm_start_ = std::make_unique<WarmStart>(registry_, warm_time_, logger_, ready_);
}

void Readiness::Stop() {
  std::unique_ptr<WarmStart> stopped;
  {
    MutexLock lock(&mutex_);
    begun_ = true;
    stopped = std::move(warm_start_);
  }
  stopped.reset();
  registry_.StopWarming();
}

std::string Readiness::WaitsFor() {
  {
    MutexLock lock(&mutex_);
    if (!names_known_) return "waiting for the database: no names are known yet";
  }
  const int64_t warming = registry_.warming();
  if (warming == 0) return "not serving";
  return absl::StrCat("not serving yet: ", warming,
                      " versions that aliases point to have not been loaded yet");
}

}  // namespace phimap
