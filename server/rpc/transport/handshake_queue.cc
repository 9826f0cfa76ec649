#include "server/rpc/transport/handshake_queue.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "core/thread/start_thread.h"

namespace phimap {

HandshakeQueue::HandshakeQueue(int max_steps)
    : max_steps_(static_cast<size_t>(max_steps)),
      thread_(StartThread("handshakes", [this] { Run(); })) {}

HandshakeQueue::~HandshakeQueue() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
  MutexLock lock(&mutex_);
  for (auto& [host, steps] : steps_) {
    for (const Step& step : steps) step.drop();
  }
}

void HandshakeQueue::Add(const std::string& host, Step step) {
  std::optional<Step> dropped;
  {
    MutexLock lock(&mutex_);
    std::deque<Step>& steps = steps_[host];
    steps.push_back(std::move(step));
    if (steps.size() == 1) {
      try {
        turns_.push_back(host);
      } catch (const std::bad_alloc&) {
        steps_.erase(host);
        throw;
      }
    }
    ++count_;
    if (count_ > max_steps_) dropped = TakeNewestOfLongest();
    changed_.NotifyAll();
  }
  if (dropped.has_value()) dropped->drop();
}

HandshakeQueue::Step HandshakeQueue::TakeNewestOfLongest() {
  const auto longest = std::max_element(
      steps_.begin(), steps_.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  Step newest = std::move(longest->second.back());
  longest->second.pop_back();
  --count_;
  if (longest->second.empty()) {
    turns_.erase(std::find(turns_.begin(), turns_.end(), longest->first));
    steps_.erase(longest);
  }
  return newest;
}

void HandshakeQueue::Run() {
  while (true) {
    Step step;
    {
      MutexLock lock(&mutex_);
      while (turns_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      const auto found = steps_.find(turns_.front());
      step = std::move(found->second.front());
      found->second.pop_front();
      --count_;
      // The host comes last now, if it has more.
      if (found->second.empty()) {
        steps_.erase(found);
      } else {
        turns_.push_back(turns_.front());
      }
      turns_.pop_front();
    }
    step.run();
  }
}

}  // namespace phimap
