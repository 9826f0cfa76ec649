// Cancels calls from another thread.
#ifndef PHIMAP_CLIENT_CPP_CANCEL_TOKEN_H_
#define PHIMAP_CLIENT_CPP_CANCEL_TOKEN_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "absl/time/time.h"

namespace phimap::client {

// A flag that changes once, from "running" to "cancelled". Calls that were given the token then
// stop soon.
//
// Thread-safe. Cancel takes a lock, so it must not be called from a signal handler.
class CancelToken {
 public:
  // Keeps a callback registered. When its destructor returns the callback is not running and will
  // not run.
  class Registration {
   public:
    Registration(CancelToken* token, int64_t id) : token_(token), id_(id) {}
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration();

   private:
    CancelToken* token_;
    int64_t id_;
  };

  void Cancel();
  bool cancelled() const;
  // Blocks until Cancel is called, for at most `duration`. Returns true if the token is cancelled.
  bool WaitFor(absl::Duration duration) const;
  // Runs `callback` once: when Cancel is called, or immediately if the token is already cancelled.
  // The callback runs under the token's lock: it must not block and must not use the token.
  [[nodiscard]] Registration OnCancel(std::function<void()> callback);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool cancelled_ = false;
  int64_t next_id_ = 0;
  std::map<int64_t, std::function<void()>> callbacks_;
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_CANCEL_TOKEN_H_
