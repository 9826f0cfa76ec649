// The threads that compute features. Their number is fixed: the number of cores that the process
// may use.
#ifndef PHIMAP_SERVER_SCHEDULE_COMPUTE_POOL_H_
#define PHIMAP_SERVER_SCHEDULE_COMPUTE_POOL_H_

#include <functional>
#include <thread>
#include <vector>

namespace phimap {

// Runs `body` on each thread. The destructor joins the threads, so the owner must first make `body`
// return (TransformScheduler::Drain).
class ComputePool {
 public:
  ComputePool(int threads, const std::function<void()>& body);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SCHEDULE_COMPUTE_POOL_H_
