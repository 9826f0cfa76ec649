#include "server/transport/output_queue.h"

#include <algorithm>
#include <utility>

namespace phimap {
namespace {

// Maximum size of a piece into which small pieces are copied.
constexpr size_t kPieceBytes = 16384;

}  // namespace

void OutputQueue::Append(absl::string_view bytes) {
  size_ += bytes.size();
  const bool fits = !pieces_.empty() && pieces_.back().owner == nullptr &&
                    pieces_.back().copy.size() + bytes.size() <= kPieceBytes;
  if (!fits) {
    pieces_.emplace_back();
    pieces_.back().copy = std::move(spare_);
    spare_ = std::string();
    pieces_.back().copy.clear();
  }
  pieces_.back().copy.append(bytes.data(), bytes.size());
}

void OutputQueue::Append(std::shared_ptr<const OutputBytes> owner, absl::string_view bytes) {
  if (bytes.size() < kCopiedBytes) return Append(bytes);
  size_ += bytes.size();
  pieces_.push_back({std::move(owner), std::string(), bytes});
}

int OutputQueue::Front(absl::Span<iovec> pieces) const {
  const size_t count = std::min(pieces.size(), pieces_.size());
  for (size_t i = 0; i < count; ++i) {
    absl::string_view bytes = pieces_[i].bytes();
    if (i == 0) bytes.remove_prefix(sent_);
    pieces[i] = {const_cast<char*>(bytes.data()), bytes.size()};
  }
  return static_cast<int>(count);
}

void OutputQueue::Pop(size_t bytes) {
  size_ -= bytes;
  sent_ += bytes;
  while (!pieces_.empty() && sent_ >= pieces_.front().bytes().size()) {
    sent_ -= pieces_.front().bytes().size();
    if (pieces_.front().owner == nullptr) spare_ = std::move(pieces_.front().copy);
    pieces_.pop_front();
  }
}

}  // namespace phimap
