// A number of places that callers share, such as the exports at a time.
#ifndef PHIMAP_SERVER_SHARING_SHARED_PLACES_H_
#define PHIMAP_SERVER_SHARING_SHARED_PLACES_H_

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "server/sharing/caller_use.h"
#include "server/sync/mutex.h"

namespace phimap {

// Callers with the role admin may take every place. Any other caller may have at most half of them,
// and all others together leave an eighth, so that work of administration is never shut out. (With
// fewer than two places nothing can be left.) Thread-safe. Must outlive its places.
class SharedPlaces {
 public:
  // A place that is taken. The destructor gives it back.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept { *this = std::move(other); }
    Place& operator=(Place&& other) noexcept {
      std::swap(places_, other.places_);
      std::swap(caller_, other.caller_);
      return *this;
    }
    ~Place() {
      if (places_ != nullptr) places_->Return(caller_);
    }

   private:
    friend class SharedPlaces;
    Place(SharedPlaces* places, CallerPointer caller)
        : places_(places), caller_(std::move(caller)) {}

    SharedPlaces* places_ = nullptr;
    CallerPointer caller_;
  };

  explicit SharedPlaces(int places) : places_(places) {}

  // Returns nullopt if `caller` may take no place now. A null `caller` counts as one with the role
  // admin.
  std::optional<Place> Take(const CallerPointer& caller) ABSL_LOCKS_EXCLUDED(mutex_);

  int places() const { return places_; }
  // Places that `caller` may have at most, and the limits that apply to it, for messages.
  int LimitOf(const CallerPointer& caller) const;
  std::string Text(const CallerPointer& caller) const;

 private:
  // Places that are left to administration.
  int Left() const;
  void Return(const CallerPointer& caller) ABSL_LOCKS_EXCLUDED(mutex_);

  const int places_;
  Mutex mutex_;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;
  // Places of each caller that has some. Each place keeps its caller alive.
  std::unordered_map<const CallerUse*, int> of_caller_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SHARING_SHARED_PLACES_H_
