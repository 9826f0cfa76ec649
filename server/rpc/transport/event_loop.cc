#include "server/rpc/transport/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <new>
#include <utility>

#include "core/thread/start_thread.h"
#include "core/thread/steady_time.h"

namespace phimap {

namespace {

int64_t Read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

SpinPolicy::Times SpinPolicy::Now() {
  return {.wall = Read(CLOCK_MONOTONIC),
          .process = Read(CLOCK_PROCESS_CPUTIME_ID),
          .thread = Read(CLOCK_THREAD_CPUTIME_ID)};
}

void SpinPolicy::NoteTimes(const Times& now) {
  const int64_t others = (now.process - last_.process) - (now.thread - last_.thread);
  const int64_t wall = now.wall - last_.wall;
  core_free_ = static_cast<double>(others) <= kMostInUse * others_ * static_cast<double>(wall);
  last_ = now;
}

namespace {

// Maximum events per poll. Given the time that each event may take, the loop polls again within
// 5 ms.
constexpr int kEventsPerPoll = 16;
// Time for which an idle loop polls its sockets before it sleeps. This saves a third of the latency
// for a caller that waits for each answer (F2 with 512 landmarks: 88 us instead of 138 us). A loop
// that is rarely called spends this much CPU time for each call.
constexpr int64_t kSpinNanoseconds = 100'000;
// Maximum time to read in a round. Without this limit, a few connections that are always readable
// could delay all other answers for kEventsPerRound times their share.
constexpr absl::Duration kRound = absl::Milliseconds(1);

int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

EventLoop::EventLoop()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wakeup_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timers_(SteadyNow()),
      now_(SteadyNow()) {
  epoll_event event = {.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (epoll_ < 0 || wakeup_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_, &event) != 0) {
    EndForLackOf("the descriptors of an event loop", errno,
                 "see the limit of open files (RLIMIT_NOFILE, ulimit -n) and "
                 "/proc/sys/fs/epoll/max_user_watches");
  }
  handling_.reserve(kEventsPerPoll);
}

EventLoop::~EventLoop() {
  close(wakeup_);
  close(epoll_);
}

void EventLoop::Run() {
  thread_.store(std::this_thread::get_id());
  while (!stopped_.load(std::memory_order_relaxed)) {
    int handled = 0;
    bool wait = true;
    absl::Time began;
    while (true) {
      const bool work = !again_.empty() || !strangers_.empty() || !at_end_.empty() ||
                        (staged_ != nullptr && !staged_->empty());
      const int events = Poll(wait && !work ? timers_.Next() : absl::InfinitePast());
      if (wait) began = now_;
      handled += events;
      NoteMemoryFailures(timers_.Advance(now_));
      RunPosted();
      RunAgain();
      if (stopped_.load(std::memory_order_relaxed)) break;
      wait = false;
      if (events == 0 || handled >= kEventsPerRound || SteadyNow() - began >= kRound) break;
      if (staged_ != nullptr && staged_->full()) break;
    }
    RunStrangers();
    EndRound();
  }
  RunPosted();
  EndRound();
  thread_.store(std::thread::id());
  std::vector<Task> dropped;  // destroyed without the lock
  {
    MutexLock lock(&mutex_);
    ended_ = true;
    dropped.swap(posted_);
  }
}

void EventLoop::EndRound() {
  if (staged_ != nullptr && !staged_->empty()) {
    try {
      staged_->Run();
    } catch (const std::bad_alloc&) {
      NoteMemoryFailures(1);
    }
  }
  // Objects added during this loop are called in the next round. Otherwise connections that keep
  // reading and answering would keep the loop here.
  const size_t count = at_end_.size();
  for (size_t i = 0; i < count; ++i) {
    Pollable* const pollable = std::exchange(at_end_[i], nullptr);
    if (pollable == nullptr) continue;
    pollable->at_end_ = false;
    Call(*pollable, 0);
  }
  at_end_.erase(at_end_.begin(), at_end_.begin() + static_cast<std::ptrdiff_t>(count));
}

int EventLoop::TimeoutMs(absl::Time wait_until) const {
  if (wait_until == absl::InfinitePast()) return 0;
  if (wait_until == absl::InfiniteFuture()) return -1;
  const int64_t ms = absl::ToInt64Milliseconds(wait_until - SteadyNow()) + 1;
  return static_cast<int>(std::clamp<int64_t>(ms, 0, 60'000));
}

void EventLoop::NotePoll(bool waits) {
  const int64_t now = SteadyNanoseconds();
  const int64_t since = busy_since_.load(std::memory_order_relaxed);
  if (since != 0 && now - since > longest_gap_.load(std::memory_order_relaxed)) {
    longest_gap_.store(now - since, std::memory_order_relaxed);
  }
  if (since != 0) {
    busy_time_.store(busy_time_.load(std::memory_order_relaxed) + now - since,
                     std::memory_order_relaxed);
  }
  busy_since_.store(waits ? 0 : now, std::memory_order_relaxed);
}

int EventLoop::Poll(absl::Time wait_until) {
  std::array<epoll_event, kEventsPerPoll> events;
  const int timeout = TimeoutMs(wait_until);
  NotePoll(/*waits=*/true);
  int count = 0;
  if (timeout != 0) {
    // A client that was just answered often sends its next request soon. Sleeping and waking would
    // take longer than polling a few more times.
    if (std::exchange(had_events_, false)) idle_since_ = SteadyNanoseconds();
    if (spin_.IsDue(idle_since_)) spin_.NoteTimes(SpinPolicy::Now());
    const int64_t until = spin_.pays() ? idle_since_ + kSpinNanoseconds : 0;
    while (count == 0 && SteadyNanoseconds() < until) {
      count = epoll_wait(epoll_, events.data(), kEventsPerPoll, 0);
    }
  }
  if (count == 0) count = epoll_wait(epoll_, events.data(), kEventsPerPoll, timeout);
  NotePoll(/*waits=*/false);
  now_ = SteadyNow();
  if (count <= 0) return 0;
  if (timeout != 0) spin_.NoteWait(SteadyNanoseconds() - idle_since_ <= kSpinNanoseconds);
  had_events_ = true;
  handling_.clear();
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr == nullptr) {
      DrainWakeup();
    } else {
      const uint32_t ready = events[i].events;  // a packed field
      handling_.emplace_back(static_cast<Pollable*>(events[i].data.ptr), ready);
    }
  }
  for (size_t i = 0; i < handling_.size(); ++i) {
    const auto [pollable, ready] = handling_[i];
    if (pollable == nullptr) continue;
    Deliver(*pollable, ready);
  }
  handling_.clear();
  return count;
}

void EventLoop::Deliver(Pollable& pollable, uint32_t events) {
  if (!pollable.stranger()) return Call(pollable, events);
  try {
    Queue(pollable, events);
  } catch (const std::bad_alloc&) {
    Failed(pollable);
  }
}

void EventLoop::Call(Pollable& pollable, uint32_t events) {
  try {
    pollable.OnReady(events);
  } catch (const std::bad_alloc&) {
    Failed(pollable);
  }
}

void EventLoop::Failed(Pollable& pollable) {
  NoteMemoryFailures(1);
  pollable.OnOutOfMemory();
}

void EventLoop::DrainWakeup() const {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wakeup_, &count, sizeof(count));
}

void EventLoop::RunPosted() {
  {
    MutexLock lock(&mutex_);
    running_.swap(posted_);
  }
  for (Task& task : running_) {
    try {
      task();
    } catch (const std::bad_alloc&) {
      NoteMemoryFailures(1);
    }
  }
  running_.clear();
}

void EventLoop::RunAgain() {
  if (again_.empty()) return;
  // The objects are moved to another list, from which Forget can remove one that has not been
  // called yet.
  called_again_.swap(again_);
  for (Pollable* const pollable : called_again_) {
    if (pollable != nullptr) pollable->again_ = false;
  }
  for (size_t i = 0; i < called_again_.size(); ++i) {
    if (called_again_[i] != nullptr) Call(*called_again_[i], 0);
  }
  called_again_.clear();
}

void EventLoop::Stop() {
  stopped_.store(true);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(wakeup_, &one, sizeof(one));
}

void EventLoop::Post(Task task) {
  bool first = false;
  {
    MutexLock lock(&mutex_);
    if (ended_) return;
    first = posted_.empty();
    posted_.push_back(std::move(task));
  }
  // The loop takes all posted tasks at once, so only the first one must wake it.
  if (!first) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(wakeup_, &one, sizeof(one));
}

bool EventLoop::Add(int fd, uint32_t events, Pollable& pollable) {
  for (std::vector<Pollable*>* const list : {&at_end_, &again_, &called_again_}) {
    if (list->capacity() <= watched_) list->reserve(2 * (watched_ + kEventsPerPoll));
  }
  pollable.fd_ = fd;
  pollable.watched_ = events;
  if (!Arm(EPOLL_CTL_ADD, pollable)) {
    pollable.fd_ = -1;
    return false;
  }
  ++watched_;
  return true;
}

bool EventLoop::Change(int fd, uint32_t events, Pollable& pollable) {
  pollable.fd_ = fd;
  pollable.watched_ = events;
  return pollable.in_queue_ || Arm(EPOLL_CTL_MOD, pollable);
}

bool EventLoop::Arm(int operation, Pollable& pollable) {
  const uint32_t once = pollable.stranger() ? uint32_t{EPOLLONESHOT} : 0;
  epoll_event event = {.events = pollable.watched_ | once, .data = {.ptr = &pollable}};
  return epoll_ctl(epoll_, operation, pollable.fd_, &event) == 0;
}

void EventLoop::Queue(Pollable& stranger, uint32_t events) {
  stranger.late_events_ |= events;
  if (stranger.in_queue_) return;
  strangers_.push_back(&stranger);
  stranger.in_queue_ = true;
}

void EventLoop::RunStrangers() {
  const absl::Time until = SteadyNow() + kRound;
  for (size_t left = strangers_.size(); left > 0; --left) {
    turn_ = strangers_.front();
    strangers_.pop_front();
    if (turn_ == nullptr) continue;
    turn_->in_queue_ = false;
    Call(*turn_, std::exchange(turn_->late_events_, 0));
    // Its events are watched again, unless OnReady has ended it.
    if (turn_ != nullptr && turn_->fd_ >= 0 && !Arm(EPOLL_CTL_MOD, *turn_)) Failed(*turn_);
    if (SteadyNow() >= until) break;
  }
  turn_ = nullptr;
}

void EventLoop::Remove(int fd, Pollable& pollable) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  if (pollable.fd_ >= 0) --watched_;
  pollable.fd_ = -1;
  Forget(pollable);
}

void EventLoop::Forget(Pollable& pollable) {
  if (turn_ == &pollable) turn_ = nullptr;
  pollable.late_events_ = 0;
  if (std::exchange(pollable.in_queue_, false)) {
    std::replace(strangers_.begin(), strangers_.end(), &pollable, static_cast<Pollable*>(nullptr));
  }
  for (auto& handled : handling_) {
    if (handled.first == &pollable) handled.first = nullptr;
  }
  std::replace(called_again_.begin(), called_again_.end(), &pollable,
               static_cast<Pollable*>(nullptr));
  if (std::exchange(pollable.at_end_, false)) {
    std::replace(at_end_.begin(), at_end_.end(), &pollable, static_cast<Pollable*>(nullptr));
  }
  if (std::exchange(pollable.again_, false)) {
    std::replace(again_.begin(), again_.end(), &pollable, static_cast<Pollable*>(nullptr));
  }
}

void EventLoop::AtEndOfRound(Pollable& pollable) {
  if (pollable.at_end_) return;
  at_end_.push_back(&pollable);
  pollable.at_end_ = true;
}

void EventLoop::Again(Pollable& pollable) {
  if (pollable.stranger()) return Queue(pollable, 0);
  if (pollable.again_) return;
  again_.push_back(&pollable);
  pollable.again_ = true;
}

absl::Duration EventLoop::TakeLongestGap() {
  return absl::Nanoseconds(longest_gap_.exchange(0, std::memory_order_relaxed));
}

absl::Duration EventLoop::BusyFor() const {
  const int64_t since = busy_since_.load(std::memory_order_relaxed);
  return since == 0 ? absl::ZeroDuration() : absl::Nanoseconds(SteadyNanoseconds() - since);
}

namespace {

constexpr absl::Duration kBetweenLooks = absl::Seconds(1);
constexpr int kLooksOfAWindow = 15;

}  // namespace

// Reads a loop's longest gap every second, into `longest_gap`. The loop owns the timer.
class LoopWatch::GapTimer final : public Timer {
 public:
  GapTimer(EventLoop& loop, std::shared_ptr<std::atomic<int64_t>> longest_gap)
      : loop_(loop), longest_gap_(std::move(longest_gap)) {}

  void OnTime() override {
    this_window_ = std::max(this_window_, loop_.TakeLongestGap());
    longest_gap_->store(absl::ToInt64Nanoseconds(std::max(this_window_, last_window_)),
                        std::memory_order_relaxed);
    if (++looks_ % kLooksOfAWindow == 0) {
      last_window_ = this_window_;
      this_window_ = absl::ZeroDuration();
    }
    loop_.timers().Set(*this, SteadyNow() + kBetweenLooks);
  }

 private:
  EventLoop& loop_;
  const std::shared_ptr<std::atomic<int64_t>> longest_gap_;
  absl::Duration this_window_ = absl::ZeroDuration();
  absl::Duration last_window_ = absl::ZeroDuration();
  int looks_ = 0;
};

void LoopWatch::Add(EventLoop& loop) {
  auto longest_gap = std::make_shared<std::atomic<int64_t>>(0);
  {
    MutexLock lock(&mutex_);
    loops_.push_back({loop.shared_from_this(), longest_gap});
  }
  loop.Post([&loop, longest_gap = std::move(longest_gap)] {
    auto timer = std::make_unique<GapTimer>(loop, longest_gap);
    timer->OnTime();
    loop.Keep(std::move(timer));
  });
}

int LoopWatch::count() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(loops_.size());
}

absl::Duration LoopWatch::BusyTime() const {
  absl::Duration time = absl::ZeroDuration();
  MutexLock lock(&mutex_);
  for (const Watched& watched : loops_) time += watched.loop->BusyTime();
  return time;
}

int64_t LoopWatch::MemoryFailures() const {
  int64_t failures = 0;
  MutexLock lock(&mutex_);
  for (const Watched& watched : loops_) failures += watched.loop->memory_failures();
  return failures;
}

absl::Duration LoopWatch::BusyFor() const {
  absl::Duration longest = absl::ZeroDuration();
  MutexLock lock(&mutex_);
  for (const Watched& watched : loops_) longest = std::max(longest, watched.loop->BusyFor());
  return longest;
}

absl::Duration LoopWatch::LongestGap() const {
  absl::Duration longest = BusyFor();  // a loop that stalls now does not call its timer
  MutexLock lock(&mutex_);
  for (const Watched& watched : loops_) {
    longest = std::max(longest, absl::Nanoseconds(watched.longest_gap->load()));
  }
  return longest;
}

}  // namespace phimap
