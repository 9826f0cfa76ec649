// Runs code of tests on several threads at once.
#ifndef PHIMAP_TESTS_SUPPORT_THREADS_H_
#define PHIMAP_TESTS_SUPPORT_THREADS_H_

#include <thread>
#include <vector>

namespace phimap::testing {

// Calls work(0), work(1) … work(count - 1), each on a thread of its own. Returns when all have
// ended.
template <typename Work>
void RunTogether(int count, const Work& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([&work, t] { work(t); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_THREADS_H_
