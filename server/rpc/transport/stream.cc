#include "server/rpc/transport/stream.h"

namespace phimap {

void RequestHead::Add(absl::string_view name, absl::string_view value) {
  if (places_.empty()) {  // as much as gRPC's clients send, so that it need not grow
    text_.reserve(512);
    places_.reserve(16);
  }
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

// A call looks for some ten names, and most headers have another length than the name.
absl::string_view RequestHead::Find(absl::string_view name) const {
  for (const Place& place : places_) {
    if (place.name_size != name.size()) continue;
    const char* const begin = text_.data() + place.begin;
    if (name == absl::string_view(begin, place.name_size)) {
      return {begin + place.name_size, place.value_size};
    }
  }
  return {};
}

int RequestHead::Count(absl::string_view name) const {
  int count = 0;
  for (const Place& place : places_) {
    if (place.name_size != name.size()) continue;
    count += name == absl::string_view(text_.data() + place.begin, place.name_size) ? 1 : 0;
  }
  return count;
}

}  // namespace phimap
