#include "core/engine/string_input.h"

#include <string>
#include <vector>

namespace phimap {

template <typename T>
struct StringInput<T>::Memory {
  std::vector<const std::string*> strings;
};

template <typename T>
TileRows<T> StringInput<T>::Run(absl::Span<const RowPlace> tile, EngineScratch& scratch) const {
  std::vector<const std::string*>& strings = scratch.Of<Memory>().strings;
  strings.clear();
  for (const RowPlace& place : tile) {
    strings.push_back(&(*place.part->rows.strings())[place.row]);
  }
  return {.count = static_cast<int64_t>(tile.size()), .strings = strings.data()};
}

template class StringInput<float>;
template class StringInput<double>;

}  // namespace phimap
