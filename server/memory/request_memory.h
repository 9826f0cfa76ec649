// The memory of requests and answers: one budget for the process.
//
// Every byte counts from before it arrives until it is sent: a message before its body is read,
// what its parse will occupy before it is parsed, an answer before it is computed. A request is let
// in whatever it takes when nothing is held, and an answer when no other is there beyond the
// budget: messages have a limit of their own. So requests that hold the whole budget and wait for
// room for their answers are answered one by one, and never wait for each other. Large requests
// leave a sixteenth to small ones. Beside the budget there are at most one answer, what is small
// and must be told (an error's text, a reply of a few words), and, of what streams sent that wait
// for room, a sixteenth or 1 MiB.
//
// Thread-safe, lock-free but for those who wait.
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
#include "server/memory/room_watch.h"

namespace phimap {

class RequestMemory {
 public:
  // A share of the budget, given back on destruction: that calls those who wait for room, so no
  // lock of theirs may be held.
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
    // Takes over what `other` holds. REQUIRES: both are of requests of the same budget, or empty.
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

  // `gauge` shows what is held; it outlives the budget, and may be null.
  RequestMemory(int64_t max_bytes, prometheus::Gauge* gauge)
      : max_bytes_(max_bytes), gauge_(gauge) {}
  // REQUIRES: nothing is held.
  ~RequestMemory() = default;
  RequestMemory(const RequestMemory&) = delete;
  RequestMemory& operator=(const RequestMemory&) = delete;

  // nullopt: there is no room now. `held` are bytes that the one who asks holds already: alone with
  // them, any amount is let in.
  std::optional<Charge> Take(int64_t bytes, int64_t held = 0);
  // The same for an answer.
  std::optional<Charge> TakeForAnswer(int64_t bytes);
  // Charges what is small whether there is room or not: what was done must be told.
  Charge TakeAnyway(int64_t bytes);
  // Counts bytes of those who wait for room, beside the budget; false if they are too many.
  bool TakeWaiting(int64_t bytes);
  void ReturnWaiting(int64_t bytes) { waiting_.fetch_sub(bytes); }
  // RESOURCE_EXHAUSTED (reason MEMORY_FULL, with a retry delay) for who cannot wait. `what` begins
  // the message: "the request".
  absl::Status Full(absl::string_view what, int64_t bytes) const;

  // Whether anyone waits for room, or was refused for want of it since `since`.
  bool IsWantedSince(absl::Time since) const;
  // Tells when there may be room again.
  RoomWatch& room() { return room_; }

  int64_t held_bytes() const { return held_.load(); }
  int64_t max_bytes() const { return max_bytes_; }

 private:
  void Return(int64_t bytes, bool answer);
  void Show() const;
  std::nullopt_t NoRoom();

  const int64_t max_bytes_;
  prometheus::Gauge* const gauge_;
  RoomWatch room_;
  std::atomic<int64_t> held_{0};
  // Of these, by answers over 64 KiB, and those that found no room.
  std::atomic<int64_t> answers_{0};
  std::atomic<int64_t> waiting_{0};
  // When somebody found no room last, in steady nanoseconds.
  std::atomic<int64_t> wanted_ns_{0};
};

// Whether `status` says that room lacked at the moment.
bool IsLackOfRoom(const absl::Status& status);

}  // namespace phimap

#endif  // PHIMAP_SERVER_MEMORY_REQUEST_MEMORY_H_
