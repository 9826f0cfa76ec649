#include "server/calls/message_reader.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/status/check.h"

namespace phimap {
namespace {

// Minimum size of the buffer of a longer message. Most messages are shorter than this, and are
// allocated once with their exact length.
constexpr size_t kFirstBytes = 64 << 10;

}  // namespace

size_t MessageReader::TakePrefix(absl::string_view bytes) {
  const size_t taken = std::min(bytes.size(), kPrefixBytes - prefix_size_);
  std::copy_n(bytes.begin(), taken, prefix_ + prefix_size_);
  prefix_size_ += taken;
  return taken;
}

uint32_t MessageReader::length() const {
  PHIMAP_CHECK(has_prefix());
  return uint32_t{prefix_[1]} << 24 | uint32_t{prefix_[2]} << 16 | uint32_t{prefix_[3]} << 8 |
         uint32_t{prefix_[4]};
}

size_t MessageReader::TakeBody(absl::string_view bytes) {
  PHIMAP_CHECK(!too_long());
  const size_t taken = std::min<size_t>(bytes.size(), length() - size_);
  if (taken == 0) return 0;
  if (size_ + taken > capacity_) Reserve(size_ + taken);
  std::memcpy(data_.get() + size_, bytes.data(), taken);
  size_ += taken;
  return taken;
}

// Uses realloc instead of new: a large buffer then grows by remapping its pages (mremap), without a
// copy and without occupying memory twice.
void MessageReader::Reserve(size_t needed) {
  const size_t capacity = std::min<size_t>(length(), std::max(kFirstBytes, 2 * needed));
  char* grown = static_cast<char*>(std::realloc(data_.get(), capacity));
  if (grown == nullptr) throw std::bad_alloc();
  static_cast<void>(data_.release());  // realloc freed or extended it
  data_.reset(grown);
  capacity_ = capacity;
}

MessageBytes MessageReader::Release() {
  PHIMAP_CHECK(complete());
  MessageBytes message{std::move(data_), size_};
  prefix_size_ = size_ = capacity_ = 0;
  return message;
}

}  // namespace phimap
