#include "server/admission/caller_shares.h"

#include <algorithm>
#include <limits>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"

namespace phimap {

namespace {

// Sets the hashes of hosts apart from those of tokens.
constexpr int kHost = 1;

// Share of the places that is left to administration.
constexpr int kShareOfAdmins = 8;

bool Administers(const CallerPointer& caller) {
  return caller == nullptr || caller->administers.load(std::memory_order_relaxed);
}

}  // namespace

std::optional<CallerShares::Share> CallerShares::Take(absl::string_view caller, bool administers) {
  if (caller.empty()) return Share();
  return TakeKey(absl::HashOf(caller), max_calls(), administers);
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

int SharedPlaces::Left(int places) { return places < 2 ? 0 : std::max(1, places / kShareOfAdmins); }

int SharedPlaces::LimitOf(const CallerPointer& caller) const {
  const int all = places();
  return Administers(caller) ? all : std::max(1, all / 2);
}

std::string SharedPlaces::Text(const CallerPointer& caller) const {
  const int all = places();
  if (Administers(caller)) return absl::StrCat(all);
  return absl::StrCat(all, ", of which a caller without the role admin may have ", LimitOf(caller),
                      ", and ", Left(all), " are left to callers with it");
}

std::optional<SharedPlaces::Place> SharedPlaces::Take(const CallerPointer& caller) {
  const int all = places();
  const int left = Administers(caller) ? 0 : Left(all);
  MutexLock lock(&mutex_);
  if (taken_ >= all - left) return std::nullopt;
  int& own = of_caller_[caller.get()];
  if (own >= LimitOf(caller)) return std::nullopt;
  ++own;
  ++taken_;
  return Place(this, caller);
}

void SharedPlaces::Return(const CallerPointer& caller) {
  MutexLock lock(&mutex_);
  --taken_;
  const auto found = of_caller_.find(caller.get());
  if (--found->second == 0) of_caller_.erase(found);
}

}  // namespace phimap
