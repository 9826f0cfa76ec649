// The references that wait to be loaded, in their order.
#ifndef PHIMAP_SERVER_REGISTRY_LOAD_LINE_H_
#define PHIMAP_SERVER_REGISTRY_LOAD_LINE_H_

#include <compare>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "server/registry/reference.h"

namespace phimap {

// Place of a load in the line: behind all others, as for readers, or before them, as for
// administration.
enum class LoadPriority { kLast, kFirst };

// A reference with its own text.
struct LoadKey {
  std::string mapping;
  // 0: not by number.
  int64_t number = 0;
  std::string alias = {};
  std::string digest = {};

  static LoadKey Of(const Reference& reference);
  Reference reference() const;
  bool by_number() const { return number != 0; }
  friend auto operator<=>(const LoadKey& a, const LoadKey& b) = default;
};

// Not thread-safe; the registry guards it.
class LoadLine {
 public:
  void Push(LoadKey key, LoadPriority priority) {
    (priority == LoadPriority::kFirst ? first_ : last_).push_back(std::move(key));
  }
  // Moves a key to the front part of the line, that of administration. No effect on a key that is
  // being loaded.
  void Advance(const LoadKey& key);
  // The next key, which leaves the line; empty if there is none.
  std::optional<LoadKey> Take();
  // Keys that were pushed with kLast, and wait.
  int64_t last_size() const { return static_cast<int64_t>(last_.size()); }

 private:
  std::deque<LoadKey> first_;
  std::deque<LoadKey> last_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_LOAD_LINE_H_
