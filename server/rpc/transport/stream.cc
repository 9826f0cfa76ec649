#include "server/rpc/transport/stream.h"

namespace phimap {

void RequestHead::Add(absl::string_view name, absl::string_view value) {
  places_.push_back({static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(name.size()),
                     static_cast<uint32_t>(value.size())});
  text_.append(name.data(), name.size());
  text_.append(value.data(), value.size());
}

Header RequestHead::at(size_t i) const {
  const Place& place = places_[i];
  const absl::string_view text(text_);
  return {text.substr(place.begin, place.name_size),
          text.substr(place.begin + place.name_size, place.value_size)};
}

absl::string_view RequestHead::Find(absl::string_view name) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    if (const Header header = at(i); header.name == name) return header.value;
  }
  return {};
}

int RequestHead::Count(absl::string_view name) const {
  int count = 0;
  for (size_t i = 0; i < places_.size(); ++i) count += at(i).name == name ? 1 : 0;
  return count;
}

}  // namespace phimap
