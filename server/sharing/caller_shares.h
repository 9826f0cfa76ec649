// Knows the callers that hold something, and limits the number of concurrent calls of each, so that
// no caller can occupy the whole server.
#ifndef PHIMAP_SERVER_SHARING_CALLER_SHARES_H_
#define PHIMAP_SERVER_SHARING_CALLER_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/sharing/caller_use.h"
#include "server/sync/mutex.h"

namespace phimap {

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

  int max_calls() const { return max_calls_; }

 private:
  std::optional<Share> TakeKey(uint64_t key, int limit, bool administers)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void DropUnused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Return(Counted& use) ABSL_LOCKS_EXCLUDED(mutex_);

  const int max_calls_;
  Mutex mutex_;
  // Keyed by a hash of the caller, so that no token is kept here. A caller that has given
  // everything back is kept until many others have come, because one that returns must not look
  // like another.
  std::unordered_map<uint64_t, std::shared_ptr<Counted>> users_ ABSL_GUARDED_BY(mutex_);
  size_t drop_at_ ABSL_GUARDED_BY(mutex_) = 64;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SHARING_CALLER_SHARES_H_
