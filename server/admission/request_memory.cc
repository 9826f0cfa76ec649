#include "server/admission/request_memory.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/thread/steady_time.h"

namespace phimap {

struct WaitingLines::Line {
  const void* owner;
  std::list<std::shared_ptr<Place::Entry>> waiting = {};
};

struct WaitingLines::Place::Entry {
  Attempt attempt;
  Told told;
  // The line and the place in it, while the entry waits.
  bool waits = false;
  std::list<Line>::iterator line = {};
  std::list<std::shared_ptr<Entry>>::iterator where = {};
};

WaitingLines::WaitingLines() = default;

WaitingLines::~WaitingLines() { PHIMAP_CHECK(lines_.empty()); }

bool WaitingLines::TakeOrJoin(const void* owner, Attempt attempt, Told told, Place& place) {
  const auto entry = std::make_shared<Place::Entry>();
  entry->attempt = std::move(attempt);
  entry->told = std::move(told);
  {
    MutexLock lock(&mutex_);
    // Announced before the attempt: capacity that is freed after a failed attempt is then seen by
    // the thread that frees it.
    waited_for_.store(true);
    if (entry->attempt()) {
      waited_for_.store(!lines_.empty());
      return true;
    }
    entry->line = std::find_if(lines_.begin(), lines_.end(),
                               [owner](const Line& line) { return line.owner == owner; });
    if (entry->line == lines_.end()) entry->line = lines_.insert(lines_.end(), Line{owner});
    entry->where = entry->line->waiting.insert(entry->line->waiting.end(), entry);
    entry->waits = true;
  }
  place = Place(this, entry);
  return false;
}

void WaitingLines::Serve() {
  if (!waited_for_.load()) return;
  {
    MutexLock lock(&mutex_);
    freed_meanwhile_ = true;
    if (serving_) return;
    serving_ = true;
  }
  std::vector<Told> told;
  while (NextRound(told)) {
    for (const Told& tell : told) tell();
    told.clear();
  }
}

bool WaitingLines::NextRound(std::vector<Told>& told) {
  MutexLock lock(&mutex_);
  serving_ = std::exchange(freed_meanwhile_, false);
  if (!serving_) return false;
  while (ServeEach(told)) {
  }
  return true;
}

bool WaitingLines::ServeEach(std::vector<Told>& told) {
  bool any = false;
  const size_t count = lines_.size();
  auto line = lines_.begin();
  for (size_t i = 0; i < count; ++i) {
    const auto next = std::next(line);
    Place::Entry& first = *line->waiting.front();
    if (first.attempt()) {
      any = true;
      told.push_back(std::move(first.told));
      lines_.splice(lines_.end(), lines_, line);
      Drop(first);
    }
    line = next;
  }
  return any;
}

void WaitingLines::Leave(Place::Entry& entry) {
  Told told;
  MutexLock lock(&mutex_);
  if (!entry.waits) return;
  // Destroyed after the lock is released.
  told = std::move(entry.told);
  Drop(entry);
}

void WaitingLines::Drop(Place::Entry& entry) {
  entry.waits = false;
  const auto line = entry.line;
  line->waiting.erase(entry.where);
  if (line->waiting.empty()) lines_.erase(line);
  if (lines_.empty()) waited_for_.store(false);
}

namespace {

// Retry delay of a refused request. Memory becomes free within about this time, when answers have
// been sent, unless clients do not read.
constexpr int64_t kFullRetryMs = 50;

// Requests of more than kLarge bytes leave 1/kShareOfSmall of the budget to smaller ones. Otherwise
// large messages that are announced and then sent slowly would shut out all others.
constexpr int64_t kLarge = 64 << 10;
constexpr int64_t kShareOfSmall = 16;
// Limit of the memory of waiting requests: 1/kShareOfWaiting of the budget, but at least
// kLeastForWaiting bytes.
constexpr int64_t kShareOfWaiting = 16;
constexpr int64_t kLeastForWaiting = 1 << 20;
// A caller has others beside it for this long after one of them asked for memory.
constexpr int64_t kAskNs = int64_t{10} * 1'000'000'000;

// A steady clock that is some milliseconds old, and takes a quarter of the time to read: it is read
// for each request.
int64_t CoarseNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

void RequestMemory::Charge::ShrinkTo(int64_t bytes) {
  PHIMAP_CHECK(bytes >= 0 && bytes <= bytes_);
  const int64_t returned = bytes_ - bytes;
  bytes_ = bytes;
  if (returned > 0) memory_->Return(caller_.get(), returned, answer_);
}

void RequestMemory::Charge::Add(Charge other) {
  if (other.memory_ == nullptr) return;
  PHIMAP_CHECK(memory_ == nullptr || (memory_ == other.memory_ && caller_ == other.caller_));
  memory_ = other.memory_;
  caller_ = other.caller_;
  bytes_ += std::exchange(other.bytes_, 0);
}

void RequestMemory::Charge::Release() {
  if (memory_ != nullptr && bytes_ > 0) {
    memory_->Return(caller_.get(), std::exchange(bytes_, 0), answer_);
  }
  memory_ = nullptr;
  caller_ = nullptr;
}

std::optional<RequestMemory::Charge> RequestMemory::Take(const CallerPointer& caller, int64_t bytes,
                                                         int64_t held) {
  std::optional<Charge> charge = Try(caller, bytes, held);
  if (!charge.has_value()) NoteRefusal();
  return charge;
}

std::optional<RequestMemory::Charge> RequestMemory::Try(const CallerPointer& caller, int64_t bytes,
                                                        int64_t held) {
  NoteAsk(caller);
  const int64_t all = max_bytes();
  const int64_t limit = bytes > kLarge ? all - all / kShareOfSmall : all;
  const bool over = IsOverShare(caller, bytes);
  int64_t before = held_.load();
  do {
    if (before > held && (over || before + bytes > limit)) return std::nullopt;
  } while (!held_.compare_exchange_weak(before, before + bytes));
  return Charged(caller, bytes, /*answer=*/false);
}

std::optional<RequestMemory::Charge> RequestMemory::TakeForAnswer(const CallerPointer& caller,
                                                                  int64_t bytes) {
  std::optional<Charge> charge = TryForAnswer(caller, bytes);
  if (!charge.has_value()) NoteRefusal();
  return charge;
}

std::optional<RequestMemory::Charge> RequestMemory::TryForAnswer(const CallerPointer& caller,
                                                                 int64_t bytes) {
  // A small answer that fits does not count towards answers_, because it may stay unread for long.
  const bool counts = bytes > kLarge;
  const int64_t limit = IsOverShare(caller, bytes) ? 0 : max_bytes();
  int64_t before = held_.load();
  while (!counts && before + bytes <= limit) {
    if (!held_.compare_exchange_weak(before, before + bytes)) continue;
    return Charged(caller, bytes, /*answer=*/false);
  }
  // `alone`: no other answer is counted in answers_ now. Of several concurrent attempts, only the
  // first one gets true.
  int64_t none = 0;
  const bool alone = answers_.compare_exchange_strong(none, bytes);
  do {
    if (!alone && before + bytes > limit) return std::nullopt;
  } while (!held_.compare_exchange_weak(before, before + bytes));
  if (!alone) answers_.fetch_add(bytes);
  return Charged(caller, bytes, /*answer=*/true);
}

RequestMemory::Charge RequestMemory::TakeUnconditionally(const CallerPointer& caller,
                                                         int64_t bytes) {
  held_.fetch_add(bytes);
  return Charged(caller, bytes, /*answer=*/false);
}

std::optional<RequestMemory::Charge> RequestMemory::TakeOrWait(
    const CallerPointer& caller, int64_t bytes, std::shared_ptr<const std::atomic<int64_t>> held,
    Granted granted, Waiting& waiting) {
  return WaitUnless(
      caller,
      [this, caller, bytes, held = std::move(held)] { return Try(caller, bytes, held->load()); },
      std::move(granted), waiting);
}

std::optional<RequestMemory::Charge> RequestMemory::TakeForAnswerOrWait(const CallerPointer& caller,
                                                                        int64_t bytes,
                                                                        Granted granted,
                                                                        Waiting& waiting) {
  return WaitUnless(
      caller, [this, caller, bytes] { return TryForAnswer(caller, bytes); }, std::move(granted),
      waiting);
}

std::optional<RequestMemory::Charge> RequestMemory::WaitUnless(
    const CallerPointer& caller, std::function<std::optional<Charge>()> attempt, Granted granted,
    Waiting& waiting) {
  const auto charge = std::make_shared<std::optional<Charge>>();
  const bool taken = lines_.TakeOrJoin(
      caller.get(),
      [attempt = std::move(attempt), charge] {
        *charge = attempt();
        return charge->has_value();
      },
      [granted = std::move(granted), charge] { granted(*std::move(*charge)); }, waiting);
  if (!taken) return std::nullopt;
  return std::move(*charge);
}

void RequestMemory::SetMaxBytes(int64_t max_bytes) {
  max_bytes_.store(max_bytes);
  lines_.Serve();
}

void RequestMemory::NoteAsk(const CallerPointer& caller) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  if (last_asker_.load(kRelaxed) != caller.get()) {
    other_asked_ns_.store(last_asked_ns_.load(kRelaxed), kRelaxed);
    last_asker_.store(caller.get(), kRelaxed);
  }
  last_asked_ns_.store(CoarseNs(), kRelaxed);
}

bool RequestMemory::OthersAsk(const CallerUse& caller) const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const bool last = last_asker_.load(kRelaxed) == &caller;
  const int64_t asked = last ? other_asked_ns_.load(kRelaxed) : last_asked_ns_.load(kRelaxed);
  return asked != 0 && CoarseNs() - asked < kAskNs;
}

bool RequestMemory::IsOverShare(const CallerPointer& caller, int64_t bytes) const {
  return caller != nullptr && caller->memory_bytes.load() + bytes > max_bytes() / 2 &&
         OthersAsk(*caller);
}

bool RequestMemory::HoldsOverHalf(const CallerPointer& caller) const {
  return caller != nullptr && caller->memory_bytes.load() > max_bytes() / 2;
}

bool RequestMemory::HoldsTooMuch(const CallerPointer& caller) const {
  return IsOverShare(caller, 0);
}

void RequestMemory::NoteRefusal() {
  wanted_ns_.store(absl::ToUnixNanos(SteadyNow()), std::memory_order_relaxed);
}

bool RequestMemory::IsWantedSince(absl::Time since) const {
  return lines_.waited_for() ||
         wanted_ns_.load(std::memory_order_relaxed) >= absl::ToUnixNanos(since);
}

absl::Status RequestMemory::Full(const CallerPointer& caller, absl::string_view what,
                                 int64_t bytes) const {
  const int64_t limit = max_bytes();
  const std::string share =
      IsOverShare(caller, bytes)
          ? absl::StrCat("; this caller holds ", caller->memory_bytes.load(),
                         " of them, and may hold at most half while others ask")
          : "";
  return MakeError(
      absl::StatusCode::kResourceExhausted, reason::kRequestMemoryFull, "",
      absl::StrCat(what, " takes ", bytes, " bytes, but requests and answers already hold ",
                   held_.load(), " of the limit of ", limit, " (--memory_bytes)", share),
      {{"actual", absl::StrCat(bytes)}, {"limit", absl::StrCat(limit)}}, kFullRetryMs);
}

bool RequestMemory::TakeWaiting(const CallerPointer& caller, int64_t bytes) {
  const int64_t limit = std::max(max_bytes() / kShareOfWaiting, kLeastForWaiting);
  const bool within_share =
      caller == nullptr || !OthersAsk(*caller) || caller->waiting_bytes.load() + bytes <= limit / 2;
  if (within_share && waiting_.fetch_add(bytes) + bytes <= limit) {
    if (caller != nullptr) caller->waiting_bytes.fetch_add(bytes);
    return true;
  }
  if (within_share) waiting_.fetch_sub(bytes);
  return false;
}

void RequestMemory::ReturnWaiting(const CallerPointer& caller, int64_t bytes) {
  waiting_.fetch_sub(bytes);
  if (caller != nullptr) caller->waiting_bytes.fetch_sub(bytes);
}

RequestMemory::Charge RequestMemory::Charged(const CallerPointer& caller, int64_t bytes,
                                             bool answer) {
  if (caller != nullptr) caller->memory_bytes.fetch_add(bytes);
  Show();
  return Charge(this, caller, bytes, answer);
}

void RequestMemory::Return(CallerUse* caller, int64_t bytes, bool answer) {
  if (caller != nullptr) caller->memory_bytes.fetch_sub(bytes);
  if (answer) answers_.fetch_sub(bytes);
  held_.fetch_sub(bytes);
  Show();
  lines_.Serve();
}

void RequestMemory::Show() const {
  if (gauge_ != nullptr) gauge_->Set(static_cast<double>(held_.load(std::memory_order_relaxed)));
}

}  // namespace phimap
