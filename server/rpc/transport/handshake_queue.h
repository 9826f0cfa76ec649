// The thread that computes TLS handshakes, and the steps that wait for it.
//
// A step takes about a millisecond, so a single client that sends one hello after another would
// keep all others from connecting. Therefore hosts take turns: each host's oldest step is computed
// before any host's second. Thread-safe.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_HANDSHAKE_QUEUE_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_HANDSHAKE_QUEUE_H_

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <unordered_map>

#include "core/thread/mutex.h"

namespace phimap {

class HandshakeQueue {
 public:
  struct Step {
    std::function<void()> run;
    // Called instead of `run` if the step is dropped, on any thread.
    std::function<void()> drop;
  };

  explicit HandshakeQueue(int max_steps);
  // Drops the steps that wait.
  ~HandshakeQueue();
  HandshakeQueue(const HandshakeQueue&) = delete;
  HandshakeQueue& operator=(const HandshakeQueue&) = delete;

  // Adds a step of `host`. If too many wait, drops the newest step of the host that has most of
  // them, which may be this one.
  void Add(const std::string& host, Step step) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  Step TakeNewestOfLongest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_steps_;
  Mutex mutex_;
  CondVar changed_;
  // The steps of each host that has one, oldest first, and these hosts in the order of their turns.
  std::unordered_map<std::string, std::deque<Step>> steps_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> turns_ ABSL_GUARDED_BY(mutex_);
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_HANDSHAKE_QUEUE_H_
