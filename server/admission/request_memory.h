// The memory of requests and answers: one budget for the process.
//
// Memory is charged before it is used, and stays charged until the answer is sent. A message is
// charged before its body is read, its parsed form before it is parsed, and an answer before it is
// computed. A separate limit applies to the size of one message. Therefore a request of any size is
// admitted while no memory is held. One answer is admitted beyond the budget if no other answer is
// counted in answers_. So if requests hold the whole budget and wait for capacity for their
// answers, they are answered one by one, and never wait for each other. Large requests leave a
// sixteenth of the budget to small ones. Outside the budget there are at most: one answer; small
// messages that must be sent (an error's text, a reply of a few words); and input of waiting
// streams, up to a sixteenth of the budget or 1 MiB, whichever is more.
//
// A caller may hold more than half of the budget, and more than half of what may wait beside it,
// only while no other has asked for memory for ten seconds, or while nobody else holds any.
//
// Thread-safe; lock-free except for waiting.
#ifndef PHIMAP_SERVER_ADMISSION_REQUEST_MEMORY_H_
#define PHIMAP_SERVER_ADMISSION_REQUEST_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/thread/mutex.h"
#include "prometheus/gauge.h"
#include "server/admission/caller_shares.h"

namespace phimap {

// Callers that wait for capacity, in one line for each owner. The lines are served in turns, and
// only as many are woken as get what they wait for.
//
// Thread-safety: all methods may be called from any thread, also from within a Told.
class WaitingLines {
 public:
  // Takes the capacity that is waited for, if there is enough of it. Returns whether it was taken.
  // Is called with a lock held, so it must neither block nor call WaitingLines.
  using Attempt = std::function<bool()>;
  // Is called once, when an attempt has succeeded, on the thread of that call or of a concurrent
  // call of Serve, without locks. Must not block.
  using Told = std::function<void()>;

  // A place in a line. The destructor leaves the line. An attempt that has succeeded by then is
  // told nevertheless.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept { *this = std::move(other); }
    Place& operator=(Place&& other) noexcept {
      std::swap(lines_, other.lines_);
      std::swap(entry_, other.entry_);
      return *this;
    }
    ~Place() {
      if (lines_ != nullptr) lines_->Leave(*entry_);
    }

   private:
    friend class WaitingLines;
    struct Entry;
    Place(WaitingLines* lines, std::shared_ptr<Entry> entry)
        : lines_(lines), entry_(std::move(entry)) {}

    WaitingLines* lines_ = nullptr;
    std::shared_ptr<Entry> entry_;
  };

  WaitingLines();
  // REQUIRES: no place is left.
  ~WaitingLines();

  // Makes the attempt. If it fails, joins the line of `owner`, which may be null. Returns whether
  // the attempt succeeded now; `told` is then not called, and `place` not changed.
  bool TakeOrJoin(const void* owner, Attempt attempt, Told told, Place& place)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether somebody waits.
  bool waited_for() const { return waited_for_.load(); }

  // Serves those who wait, because capacity has become free. Costs one atomic load if nobody waits.
  // Capacity that a Told itself frees is given away after that Told has returned, so calls of Told
  // never nest.
  void Serve() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Line;

  // Moves what must be told to `told`. Returns false, and ends the current Serve, if no capacity
  // became free since the last call.
  bool NextRound(std::vector<Told>& told) ABSL_LOCKS_EXCLUDED(mutex_);
  // Serves each line once at most. Returns whether an attempt succeeded.
  bool ServeEach(std::vector<Told>& told) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(Place::Entry& entry) ABSL_LOCKS_EXCLUDED(mutex_);
  void Drop(Place::Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Whether lines_ is not empty. Its operations, like those of the budget's accounting, are
  // sequentially consistent. So if one thread frees capacity while another begins to wait, at least
  // one of the two sees what the other has written.
  std::atomic<bool> waited_for_{false};
  Mutex mutex_;
  // The line that was served last is at the end.
  std::list<Line> lines_ ABSL_GUARDED_BY(mutex_);
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  bool freed_meanwhile_ ABSL_GUARDED_BY(mutex_) = false;
};

class RequestMemory {
 public:
  // A share of the budget. The destructor returns it and then wakes waiting callers. So the thread
  // that destroys it must hold no lock that they take.
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&& other) noexcept { *this = std::move(other); }
    Charge& operator=(Charge&& other) noexcept {
      std::swap(memory_, other.memory_);
      std::swap(caller_, other.caller_);
      std::swap(bytes_, other.bytes_);
      std::swap(answer_, other.answer_);
      return *this;
    }
    ~Charge() { Release(); }

    int64_t bytes() const { return bytes_; }
    // Gives back all but `bytes`. REQUIRES: 0 <= bytes <= bytes().
    void ShrinkTo(int64_t bytes);
    // Takes over the share of `other`. REQUIRES: both are charges of the same caller for requests
    // of the same budget, or empty.
    void Add(Charge other);
    void Release();

   private:
    friend class RequestMemory;
    Charge(RequestMemory* memory, CallerPointer caller, int64_t bytes, bool answer)
        : memory_(memory), caller_(std::move(caller)), bytes_(bytes), answer_(answer) {}

    RequestMemory* memory_ = nullptr;
    CallerPointer caller_;
    int64_t bytes_ = 0;
    bool answer_ = false;
  };

  // Called with the charge that was waited for. Must not block.
  using Granted = std::function<void(Charge)>;
  // The destructor ends the wait. A charge that has been granted by then is delivered nevertheless.
  using Waiting = WaitingLines::Place;

  // `gauge` shows the bytes held. It must outlive the budget, and may be null.
  RequestMemory(int64_t max_bytes, prometheus::Gauge* gauge)
      : max_bytes_(max_bytes), gauge_(gauge) {}
  // REQUIRES: nothing is held, and nobody waits.
  ~RequestMemory() = default;
  RequestMemory(const RequestMemory&) = delete;
  RequestMemory& operator=(const RequestMemory&) = delete;

  // `caller` may be null in all functions, for a caller whose share is not limited.

  // Charges for a request. Returns nullopt if there is no capacity now. `held` is the number of
  // bytes that the call already holds. If nobody else holds any bytes, any amount is admitted.
  std::optional<Charge> Take(const CallerPointer& caller, int64_t bytes, int64_t held = 0);
  // Charges for an answer. Returns nullopt if there is no capacity now.
  std::optional<Charge> TakeForAnswer(const CallerPointer& caller, int64_t bytes);
  // Charges a small message even without capacity, because the result of a finished action must be
  // reported.
  Charge TakeUnconditionally(const CallerPointer& caller, int64_t bytes);
  // Like Take and TakeForAnswer. Without capacity they wait: `granted` is called once there is, on
  // any thread. `*held` may change meanwhile.
  std::optional<Charge> TakeOrWait(const CallerPointer& caller, int64_t bytes,
                                   std::shared_ptr<const std::atomic<int64_t>> held,
                                   Granted granted, Waiting& waiting);
  std::optional<Charge> TakeForAnswerOrWait(const CallerPointer& caller, int64_t bytes,
                                            Granted granted, Waiting& waiting);
  // Counts bytes of waiting streams, which are outside the budget. Returns false if there are too
  // many.
  bool TakeWaiting(const CallerPointer& caller, int64_t bytes);
  void ReturnWaiting(const CallerPointer& caller, int64_t bytes);
  // Returns RESOURCE_EXHAUSTED (reason REQUEST_MEMORY_FULL, with a retry delay) for callers that
  // cannot wait. `what` begins the message, such as "the request".
  absl::Status Full(const CallerPointer& caller, absl::string_view what, int64_t bytes) const;

  // Whether a caller waits for capacity, or was refused for lack of it after `since`.
  bool IsWantedSince(absl::Time since) const;
  // Whether `caller` holds more than half of the budget.
  bool HoldsOverHalf(const CallerPointer& caller) const;
  // Whether it does although others ask.
  bool HoldsTooMuch(const CallerPointer& caller) const;

  int64_t held_bytes() const { return held_.load(); }
  // What is held stays, even if it is more than a new limit allows. A higher limit serves callers
  // that wait.
  void SetMaxBytes(int64_t max_bytes);
  int64_t max_bytes() const { return max_bytes_.load(std::memory_order_relaxed); }

 private:
  std::optional<Charge> Try(const CallerPointer& caller, int64_t bytes, int64_t held);
  std::optional<Charge> TryForAnswer(const CallerPointer& caller, int64_t bytes);
  std::optional<Charge> WaitUnless(const CallerPointer& caller,
                                   std::function<std::optional<Charge>()> attempt, Granted granted,
                                   Waiting& waiting);
  void NoteAsk(const CallerPointer& caller);
  bool OthersAsk(const CallerUse& caller) const;
  // Whether `bytes` more would be over the caller's share.
  bool IsOverShare(const CallerPointer& caller, int64_t bytes) const;
  Charge Charged(const CallerPointer& caller, int64_t bytes, bool answer);
  void Return(CallerUse* caller, int64_t bytes, bool answer);
  void Show() const;
  void NoteRefusal();

  std::atomic<int64_t> max_bytes_;
  prometheus::Gauge* const gauge_;
  WaitingLines lines_;
  std::atomic<int64_t> held_{0};
  // Bytes of held_ that belong to answers over 64 KiB, and to small answers that exceeded the
  // budget.
  std::atomic<int64_t> answers_{0};
  std::atomic<int64_t> waiting_{0};
  // Time of the last refusal for lack of capacity, in nanoseconds of the steady clock.
  std::atomic<int64_t> wanted_ns_{0};
  // The caller that asked last, when it did, and when another one last did, in nanoseconds. Only
  // compared: the caller may be gone. Calls on other threads may see a mixture of two moments,
  // which moves the ten seconds a little.
  std::atomic<const CallerUse*> last_asker_{nullptr};
  std::atomic<int64_t> last_asked_ns_{0};
  std::atomic<int64_t> other_asked_ns_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_REQUEST_MEMORY_H_
