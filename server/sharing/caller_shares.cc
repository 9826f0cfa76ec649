#include "server/sharing/caller_shares.h"

#include <algorithm>
#include <limits>

#include "absl/hash/hash.h"

namespace phimap {
namespace {

// Sets the hashes of hosts apart from those of tokens.
constexpr int kHost = 1;

}  // namespace

std::optional<CallerShares::Share> CallerShares::Take(absl::string_view caller, bool administers) {
  if (caller.empty()) return Share();
  return TakeKey(absl::HashOf(caller), max_calls_, administers);
}

CallerShares::Share CallerShares::TakeOfHost(absl::string_view host) {
  if (host.empty()) return Share();
  return *TakeKey(absl::HashOf(kHost, host), std::numeric_limits<int>::max(),
                  /*administers=*/true);
}

std::optional<CallerShares::Share> CallerShares::TakeKey(uint64_t key, int limit,
                                                         bool administers) {
  MutexLock lock(&mutex_);
  std::shared_ptr<Counted>& known = users_[key];
  if (known == nullptr) known = std::make_shared<Counted>();
  std::shared_ptr<Counted> use = known;
  if (use->calls >= limit) return std::nullopt;
  ++use->calls;
  use->administers.store(administers, std::memory_order_relaxed);
  if (users_.size() >= drop_at_) DropUnused();
  return Share(this, std::move(use));
}

void CallerShares::DropUnused() {
  std::erase_if(users_, [](const auto& user) { return user.second.use_count() == 1; });
  drop_at_ = std::max<size_t>(64, 2 * users_.size());
}

void CallerShares::Return(Counted& use) {
  MutexLock lock(&mutex_);
  --use.calls;
}

}  // namespace phimap
