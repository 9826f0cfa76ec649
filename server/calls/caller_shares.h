// Limits the number of concurrent calls of each caller, so that no caller can occupy the whole
// server.
//
// A caller is identified by its token or TLS certificate. Callers without either are limited only
// per connection, as are all callers of a server without authentication. Thread-safe.
#ifndef PHIMAP_SERVER_CALLS_CALLER_SHARES_H_
#define PHIMAP_SERVER_CALLS_CALLER_SHARES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/sync/mutex.h"

namespace phimap {

class CallerShares {
 public:
  // A call in progress. It is counted until its Share is destroyed.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(shares_, other.shares_);
      std::swap(caller_, other.caller_);
      return *this;
    }
    ~Share() {
      if (shares_ != nullptr) shares_->Return(caller_);
    }

   private:
    friend class CallerShares;
    Share(CallerShares* shares, uint64_t caller) : shares_(shares), caller_(caller) {}

    CallerShares* shares_ = nullptr;
    uint64_t caller_ = 0;
  };

  explicit CallerShares(int max_calls) : max_calls_(max_calls) {}

  // Counts a call of `caller`. Returns nullopt if the caller already has the maximum number of
  // calls in progress. Calls of an empty `caller` are not counted.
  std::optional<Share> Take(absl::string_view caller);

  int max_calls() const { return max_calls_; }

 private:
  void Return(uint64_t caller);

  const int max_calls_;
  Mutex mutex_;
  // Keyed by a hash of the caller, so that no token is kept here.
  absl::flat_hash_map<uint64_t, int> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_CALLS_CALLER_SHARES_H_
