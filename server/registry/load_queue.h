// The queue of references that wait to be loaded.
#ifndef PHIMAP_SERVER_REGISTRY_LOAD_QUEUE_H_
#define PHIMAP_SERVER_REGISTRY_LOAD_QUEUE_H_

#include <compare>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "server/registry/reference.h"

namespace phimap {

// Place of a load in the queue: at the end, for readers, or before all readers' loads, for
// administration.
enum class LoadPriority { kLast, kFirst };

// A reference that owns its text.
struct LoadKey {
  std::string mapping;
  // 0 if the reference is not by number.
  int64_t number = 0;
  std::string alias = {};
  std::string digest = {};

  static LoadKey Of(const Reference& reference);
  Reference reference() const;
  bool by_number() const { return number != 0; }
  friend auto operator<=>(const LoadKey& a, const LoadKey& b) = default;
};

// Not thread-safe; the registry guards it.
class LoadQueue {
 public:
  void Push(LoadKey key, LoadPriority priority) {
    (priority == LoadPriority::kFirst ? first_ : last_).push_back(std::move(key));
  }
  // Moves a waiting key to the loads of administration at the front. No-op for a key that is being
  // loaded.
  void Advance(const LoadKey& key);
  // Removes and returns the next key; empty if there is none.
  std::optional<LoadKey> Take();
  // Number of waiting keys that were pushed with kLast.
  int64_t last_size() const { return static_cast<int64_t>(last_.size()); }

 private:
  std::deque<LoadKey> first_;
  std::deque<LoadKey> last_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_LOAD_QUEUE_H_
