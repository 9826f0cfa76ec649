// Who calls, and how much of what callers share one of them may hold.
#ifndef PHIMAP_SERVER_ADMISSION_CALLER_SHARES_H_
#define PHIMAP_SERVER_ADMISSION_CALLER_SHARES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/thread/mutex.h"

namespace phimap {

// What one caller holds of that which callers share. A caller is known by its token or TLS
// certificate; without either, by its host.
struct CallerUse {
  // Bytes of the memory budget (RequestMemory).
  std::atomic<int64_t> memory_bytes{0};
  // Bytes of input that waits outside the budget.
  std::atomic<int64_t> waiting_bytes{0};
  // Whether the caller has the role admin.
  std::atomic<bool> administers{false};
};

// Null for a caller whose use is not limited: a client on the Unix socket of a server without
// tokens.
using CallerPointer = std::shared_ptr<CallerUse>;

// Knows the callers that hold something, and limits the number of concurrent calls of each, so that
// no caller can occupy the whole server.
//
// Thread-safe. Must outlive its shares; what callers hold may live longer.
class CallerShares {
  struct Counted : CallerUse {
    // Guarded by the mutex of CallerShares.
    int calls = 0;
  };

 public:
  // A call in progress. It is counted until its Share is destroyed.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(shares_, other.shares_);
      std::swap(use_, other.use_);
      return *this;
    }
    ~Share() {
      if (shares_ != nullptr) shares_->Return(*use_);
    }

    CallerPointer use() const { return use_; }

   private:
    friend class CallerShares;
    Share(CallerShares* shares, std::shared_ptr<Counted> use)
        : shares_(shares), use_(std::move(use)) {}

    CallerShares* shares_ = nullptr;
    std::shared_ptr<Counted> use_;
  };

  explicit CallerShares(int max_calls) : max_calls_(max_calls) {}

  // Counts a call of the caller with this token or certificate. Returns nullopt if the caller
  // already has the maximum number of calls in progress. Calls of an empty `caller` are not
  // counted.
  std::optional<Share> Take(absl::string_view caller, bool administers = false);
  // Counts a call of a caller that is known by its host only, as all callers of a server without
  // authentication are. Such callers are limited by connection, not here.
  Share TakeOfHost(absl::string_view host);

  // Calls in progress stay, even if there are more than a new limit allows.
  void SetMaxCalls(int max_calls) { max_calls_.store(max_calls); }
  int max_calls() const { return max_calls_.load(); }

 private:
  std::optional<Share> TakeKey(uint64_t key, int limit, bool administers)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void DropUnused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(Counted& use) ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<int> max_calls_;
  Mutex mutex_;
  // Keyed by a hash of the caller, so that no token is kept here. A caller that has given
  // everything back is kept until many others have come, because one that returns must not look
  // like another.
  std::unordered_map<uint64_t, std::shared_ptr<Counted>> users_ ABSL_GUARDED_BY(mutex_);
  size_t drop_at_ ABSL_GUARDED_BY(mutex_) = 64;
};

// A number of places that callers share, such as the exports at a time.
//
// Callers with the role admin may take every place. Any other caller may have at most half of them,
// and all others together leave an eighth, so that work of administration is never shut out. (With
// fewer than two places nothing can be left.) Thread-safe. Must outlive its places.
class SharedPlaces {
 public:
  // A place that is taken. The destructor gives it back.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept { *this = std::move(other); }
    Place& operator=(Place&& other) noexcept {
      std::swap(places_, other.places_);
      std::swap(caller_, other.caller_);
      return *this;
    }
    ~Place() {
      if (places_ != nullptr) places_->Return(caller_);
    }

   private:
    friend class SharedPlaces;
    Place(SharedPlaces* places, CallerPointer caller)
        : places_(places), caller_(std::move(caller)) {}

    SharedPlaces* places_ = nullptr;
    CallerPointer caller_;
  };

  explicit SharedPlaces(int places) : places_(places) {}

  // Returns nullopt if `caller` may take no place now. A null `caller` counts as one with the role
  // admin.
  std::optional<Place> Take(const CallerPointer& caller) ABSL_LOCKS_EXCLUDED(mutex_);

  // Places that are taken stay, even if there are more than a new limit allows.
  void SetPlaces(int places) { places_.store(places); }
  int places() const { return places_.load(); }
  // Places that `caller` may have at most, and the limits that apply to it, for messages.
  int LimitOf(const CallerPointer& caller) const;
  std::string Text(const CallerPointer& caller) const;

 private:
  // Places that are left to administration.
  static int Left(int places);
  void Return(const CallerPointer& caller) ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<int> places_;
  Mutex mutex_;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;
  // Places of each caller that has some. Each place keeps its caller alive.
  std::unordered_map<const CallerUse*, int> of_caller_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_CALLER_SHARES_H_
