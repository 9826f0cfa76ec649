#include "server/build/build_job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "server/store/sha256.h"

namespace phimap {
namespace {

// Observers are notified of progress in these steps, and of every change of state at once.
constexpr int64_t kRowStep = 65536;
constexpr double kFractionStep = 0.01;
// The remaining time is estimated once this fraction of the work is done.
constexpr double kEstimatedFrom = 0.03;

// Name under which the metrics count the time in a state. Empty for kComputing, whose checkpoints
// name its phases, and for finished states.
absl::string_view PhaseOf(BuildState state) {
  switch (state) {
    case BuildState::kReceiving:
      return "receive";
    case BuildState::kQueued:
      return "queue";
    case BuildState::kPublishing:
      return "publish";
    case BuildState::kComputing:
    case BuildState::kDone:
    case BuildState::kFailed:
    case BuildState::kCancelled:
      break;
  }
  return "";
}

std::optional<BuildState> Only(bool legal, BuildState next) {
  return legal ? std::optional<BuildState>(next) : std::nullopt;
}

}  // namespace

bool IsFinished(BuildState state) {
  return state == BuildState::kDone || state == BuildState::kFailed ||
         state == BuildState::kCancelled;
}

std::optional<BuildState> NextState(BuildState state, BuildEvent event) {
  switch (event) {
    case BuildEvent::kFinish:
      return Only(state == BuildState::kReceiving, BuildState::kQueued);
    case BuildEvent::kStart:
      return Only(state == BuildState::kQueued, BuildState::kComputing);
    case BuildEvent::kComputed:
      return Only(state == BuildState::kComputing, BuildState::kPublishing);
    case BuildEvent::kPublished:
      return Only(state == BuildState::kPublishing, BuildState::kDone);
    case BuildEvent::kAbandon:
      return Only(state == BuildState::kReceiving, BuildState::kFailed);
    case BuildEvent::kFail:
      return Only(state == BuildState::kQueued || state == BuildState::kComputing ||
                      state == BuildState::kPublishing,
                  BuildState::kFailed);
    case BuildEvent::kCancel:
      return Only(!IsFinished(state) && state != BuildState::kPublishing, BuildState::kCancelled);
  }
  return std::nullopt;
}

std::string BuildOrder::Digest() const {
  std::string text = spec.ToText();
  if (training != nullptr) {
    text = absl::StrCat("train on ",
                        training->features.has_value() ? training->features->ToText()
                                                       : training->version.record().digest,
                        "\n", training->spec.ToText());
  }
  if (ttl != absl::InfiniteDuration()) {
    absl::StrAppend(&text, "\nttl_us=", absl::ToInt64Microseconds(ttl));
  }
  return Sha256Hex(text);
}

BuildJob::BuildJob(BuildId id, BuildOrder order, std::string spec_digest, Clock::time_point now,
                   WorkQuantum quantum, const BuildMetrics& metrics)
    : id_(std::move(id)),
      order_(std::move(order)),
      spec_digest_(std::move(spec_digest)),
      metrics_(metrics),
      timed_phase_(PhaseOf(BuildState::kReceiving)),
      phase_begin_(Clock::now()),
      last_activity_(now),
      quantum_(std::move(quantum)) {
  snapshot_.id = id_;
  snapshot_.owner = order_.origin.principal;
  if (order_.span.recorded()) TracePhase();
  Gauge(snapshot_.state).Increment();
}

BuildJob::BuildJob(BuildSnapshot snapshot, std::string spec_digest, const BuildMetrics& metrics)
    : id_(snapshot.id),
      spec_digest_(std::move(spec_digest)),
      metrics_(metrics),
      snapshot_(std::move(snapshot)) {
  Gauge(snapshot_.state).Increment();
}

BuildJob::~BuildJob() { Gauge(Snapshot().state).Decrement(); }

prometheus::Gauge& BuildJob::Gauge(BuildState state) const {
  return *metrics_.in_state[static_cast<int>(state)];
}

BuildSnapshot BuildJob::Snapshot() const {
  MutexLock lock(&mutex_);
  return snapshot_;
}

void BuildJob::Subscribe(std::weak_ptr<BuildObserver> observer) {
  MutexLock lock(&mutex_);
  // Removes expired observers, so that they do not pile up when clients attach again and again.
  std::erase_if(observers_, [](const auto& old) { return old.expired(); });
  observers_.push_back(std::move(observer));
}

void BuildJob::ShowElsewhere(BuildSnapshot snapshot) {
  {
    MutexLock lock(&mutex_);
    Gauge(snapshot_.state).Decrement();
    Gauge(snapshot.state).Increment();
    snapshot_ = std::move(snapshot);
  }
  NotifyObservers();
}

bool BuildJob::IsFollowed() const {
  MutexLock lock(&mutex_);
  return snapshot_.state == BuildState::kReceiving ||
         std::any_of(observers_.begin(), observers_.end(),
                     [](const auto& observer) { return !observer.expired(); });
}

bool BuildJob::Move(BuildEvent event, absl::Status error,
                    std::shared_ptr<const CertifiedVersion> version) {
  MutexLock lock(&mutex_);
  const std::optional<BuildState> next = NextState(snapshot_.state, event);
  if (!next.has_value()) return false;
  // An interrupted phase says nothing about how long the phase takes.
  if (*next == BuildState::kFailed || *next == BuildState::kCancelled) timed_phase_.clear();
  // First, because these may find no memory.
  prometheus::Counter& ended = metrics_.Ended(error);
  EnterPhase(PhaseOf(*next));
  Gauge(snapshot_.state).Decrement();
  Gauge(*next).Increment();
  snapshot_.state = *next;
  snapshot_.error = std::move(error);
  snapshot_.version = std::move(version);
  if (*next == BuildState::kDone) snapshot_.fraction = 1;
  if (*next == BuildState::kComputing) computing_since_ = Clock::now();
  snapshot_.seconds_left = 0;
  if (IsFinished(*next)) {
    snapshot_.phase.clear();
    ended.Increment();
  }
  return true;
}

void BuildJob::Announce() {
  {
    // Freed outside the lock: it may be hundreds of megabytes.
    std::optional<Work> unneeded;
    MutexLock lock(&mutex_);
    if (IsFinished(snapshot_.state) && !working_) std::swap(unneeded, work_);
  }
  NotifyObservers();
}

bool BuildJob::Apply(BuildEvent event) {
  if (!Move(event)) return false;
  Announce();
  return true;
}

std::optional<BuildJob::Work>* BuildJob::BeginWork() {
  MutexLock lock(&mutex_);
  if (IsFinished(snapshot_.state)) return nullptr;
  PHIMAP_CHECK(!working_);
  working_ = true;
  quantum_.Begin();
  return &work_;
}

void BuildJob::EndWork(Clock::time_point now, int64_t rows_added) {
  quantum_.End();
  std::optional<Work> unneeded;
  bool tell = false;
  {
    MutexLock lock(&mutex_);
    working_ = false;
    last_activity_ = now;
    snapshot_.rows_received += rows_added;
    if (IsFinished(snapshot_.state)) std::swap(unneeded, work_);
    if (snapshot_.rows_received - told_rows_ >= kRowStep) {
      told_rows_ = snapshot_.rows_received;
      tell = true;
    }
  }
  if (tell) NotifyObservers();
}

std::optional<BuildJob::Clock::time_point> BuildJob::WaitingSince() const {
  MutexLock lock(&mutex_);
  if (snapshot_.state != BuildState::kReceiving || working_) return std::nullopt;
  return last_activity_;
}

absl::Status BuildJob::Checkpoint(absl::string_view phase, double fraction) {
  quantum_.YieldIfDue();
  {
    MutexLock lock(&mutex_);
    if (IsFinished(snapshot_.state)) return absl::CancelledError("the build was cancelled");
    snapshot_.fraction = fraction;
    snapshot_.seconds_left = SecondsLeft(fraction);
    if (timed_phase_ != phase) EnterPhase(phase);
    if (snapshot_.phase == phase && fraction - told_fraction_ < kFractionStep) {
      return absl::OkStatus();
    }
    snapshot_.phase = std::string(phase);
    told_fraction_ = fraction;
  }
  NotifyObservers();
  return absl::OkStatus();
}

double BuildJob::SecondsLeft(double fraction) const {
  if (fraction < kEstimatedFrom) return 0;
  const std::chrono::duration<double> elapsed = Clock::now() - computing_since_;
  return elapsed.count() * (1 - fraction) / fraction;
}

void BuildJob::EnterPhase(absl::string_view phase) {
  const Clock::time_point now = Clock::now();
  if (!timed_phase_.empty()) {
    metrics_.PhaseEnded(timed_phase_, std::chrono::duration<double>(now - phase_begin_).count());
  }
  timed_phase_ = std::string(phase);
  phase_begin_ = now;
  if (order_.span.recorded()) TracePhase();
}

void BuildJob::TracePhase() {
  phase_span_ = Span();  // which ends the one before
  if (timed_phase_.empty()) return;
  phase_span_ = order_.span.Child("build phase");
  phase_span_.Set("phimap.phase", timed_phase_);
  phase_span_.Set("phimap.mapping", id_.mapping);
  phase_span_.Set("phimap.build_id", id_.build_id);
}

void BuildJob::NotifyObservers() {
  std::vector<std::weak_ptr<BuildObserver>> observers;
  {
    MutexLock lock(&mutex_);
    observers = observers_;
  }
  for (const std::weak_ptr<BuildObserver>& weak : observers) {
    if (const std::shared_ptr<BuildObserver> observer = weak.lock()) observer->OnBuildChanged();
  }
}

}  // namespace phimap
