#include "server/calls/caller_shares.h"

#include "absl/hash/hash.h"

namespace phimap {

std::optional<CallerShares::Share> CallerShares::Take(absl::string_view caller) {
  if (caller.empty()) return Share();
  const uint64_t key = absl::HashOf(caller);
  MutexLock lock(&mutex_);
  int& calls = calls_[key];
  if (calls >= max_calls_) return std::nullopt;
  ++calls;
  return Share(this, key);
}

void CallerShares::Return(uint64_t caller) {
  MutexLock lock(&mutex_);
  const auto found = calls_.find(caller);
  if (--found->second == 0) calls_.erase(found);
}

}  // namespace phimap
