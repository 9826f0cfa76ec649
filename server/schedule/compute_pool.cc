#include "server/schedule/compute_pool.h"

namespace phimap {

ComputePool::ComputePool(int threads, const std::function<void()>& body) {
  threads_.reserve(threads);
  for (int i = 0; i < threads; ++i) threads_.emplace_back(body);
}

ComputePool::~ComputePool() {
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace phimap
