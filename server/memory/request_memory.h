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
// Thread-safe; lock-free except for waiting.
#ifndef PHIMAP_SERVER_MEMORY_REQUEST_MEMORY_H_
#define PHIMAP_SERVER_MEMORY_REQUEST_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "prometheus/gauge.h"
#include "server/memory/capacity_watch.h"

namespace phimap {

class RequestMemory {
 public:
  // A share of the budget. The destructor returns it and then runs callbacks of waiting callers. So
  // the thread that destroys it must hold no lock that these callbacks take.
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&& other) noexcept { *this = std::move(other); }
    Charge& operator=(Charge&& other) noexcept {
      std::swap(memory_, other.memory_);
      std::swap(bytes_, other.bytes_);
      std::swap(answer_, other.answer_);
      return *this;
    }
    ~Charge() { Release(); }

    int64_t bytes() const { return bytes_; }
    // Gives back all but `bytes`. REQUIRES: 0 <= bytes <= bytes().
    void ShrinkTo(int64_t bytes);
    // Takes over the share of `other`. REQUIRES: both are charges for requests of the same budget,
    // or empty.
    void Add(Charge other);
    void Release();

   private:
    friend class RequestMemory;
    Charge(RequestMemory* memory, int64_t bytes, bool answer)
        : memory_(memory), bytes_(bytes), answer_(answer) {}

    RequestMemory* memory_ = nullptr;
    int64_t bytes_ = 0;
    bool answer_ = false;
  };

  // `gauge` shows the bytes held. It must outlive the budget, and may be null.
  RequestMemory(int64_t max_bytes, prometheus::Gauge* gauge)
      : max_bytes_(max_bytes), gauge_(gauge) {}
  // REQUIRES: nothing is held.
  ~RequestMemory() = default;
  RequestMemory(const RequestMemory&) = delete;
  RequestMemory& operator=(const RequestMemory&) = delete;

  // Charges for a request. Returns nullopt if there is no capacity now. `held` is the number of
  // bytes that the caller already holds. If nobody else holds any bytes, any amount is admitted.
  std::optional<Charge> Take(int64_t bytes, int64_t held = 0);
  // Charges for an answer. Returns nullopt if there is no capacity now.
  std::optional<Charge> TakeForAnswer(int64_t bytes);
  // Charges a small message even without capacity, because the result of a finished action must be
  // reported.
  Charge TakeUnconditionally(int64_t bytes);
  // Counts bytes of waiting streams, which are outside the budget. Returns false if there are too
  // many.
  bool TakeWaiting(int64_t bytes);
  void ReturnWaiting(int64_t bytes) { waiting_.fetch_sub(bytes); }
  // Returns RESOURCE_EXHAUSTED (reason REQUEST_MEMORY_FULL, with a retry delay) for callers that
  // cannot wait. `what` begins the message, such as "the request".
  absl::Status Full(absl::string_view what, int64_t bytes) const;

  // Whether a caller waits for capacity, or was refused for lack of it after `since`.
  bool IsWantedSince(absl::Time since) const;
  // Notifies callers when there may be capacity again.
  CapacityWatch& capacity() { return capacity_; }

  int64_t held_bytes() const { return held_.load(); }
  int64_t max_bytes() const { return max_bytes_; }

 private:
  void Return(int64_t bytes, bool answer);
  void Show() const;
  std::nullopt_t NoCapacity();

  const int64_t max_bytes_;
  prometheus::Gauge* const gauge_;
  CapacityWatch capacity_;
  std::atomic<int64_t> held_{0};
  // Bytes of held_ that belong to answers over 64 KiB, and to small answers that exceeded the
  // budget.
  std::atomic<int64_t> answers_{0};
  std::atomic<int64_t> waiting_{0};
  // Time of the last refusal for lack of capacity, in nanoseconds of the steady clock.
  std::atomic<int64_t> wanted_ns_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_MEMORY_REQUEST_MEMORY_H_
