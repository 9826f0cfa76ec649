#include "server/sharing/shared_places.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace phimap {
namespace {

// Share of the places that is left to administration.
constexpr int kShareOfAdmins = 8;

bool Administers(const CallerPointer& caller) {
  return caller == nullptr || caller->administers.load(std::memory_order_relaxed);
}

}  // namespace

int SharedPlaces::Left() const { return places_ < 2 ? 0 : std::max(1, places_ / kShareOfAdmins); }

int SharedPlaces::LimitOf(const CallerPointer& caller) const {
  return Administers(caller) ? places_ : std::max(1, places_ / 2);
}

std::string SharedPlaces::Text(const CallerPointer& caller) const {
  if (Administers(caller)) return absl::StrCat(places_);
  return absl::StrCat(places_, ", of which a caller without the role admin may have ",
                      LimitOf(caller), ", and ", Left(), " are left to callers with it");
}

std::optional<SharedPlaces::Place> SharedPlaces::Take(const CallerPointer& caller) {
  const int left = Administers(caller) ? 0 : Left();
  MutexLock lock(&mutex_);
  if (taken_ >= places_ - left) return std::nullopt;
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
