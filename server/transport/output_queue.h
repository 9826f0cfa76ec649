// Output of a connection: copied small pieces, and large ones where they lie.
//
// Not thread-safe.
#ifndef PHIMAP_SERVER_TRANSPORT_OUTPUT_QUEUE_H_
#define PHIMAP_SERVER_TRANSPORT_OUTPUT_QUEUE_H_

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "server/transport/output_bytes.h"

namespace phimap {

class OutputQueue {
 public:
  // Pieces smaller than this are copied: a reference costs more.
  static constexpr size_t kCopiedBytes = 4096;

  void Append(absl::string_view bytes);
  // `bytes` are part of `owner`'s.
  void Append(std::shared_ptr<const OutputBytes> owner, absl::string_view bytes);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Fills `pieces` with the front of the queue; returns their number.
  int Front(absl::Span<iovec> pieces) const;
  // Removes `bytes` bytes, which were sent.
  void Pop(size_t bytes);

 private:
  struct Piece {
    std::shared_ptr<const OutputBytes> owner;
    // Without an owner.
    std::string copy;
    absl::string_view shared;
    absl::string_view bytes() const { return owner == nullptr ? absl::string_view(copy) : shared; }
  };
  std::deque<Piece> pieces_;
  // Bytes of the first piece that are sent.
  size_t sent_ = 0;
  size_t size_ = 0;
  // A string whose room is used again.
  std::string spare_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_OUTPUT_QUEUE_H_
