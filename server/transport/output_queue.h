// Output of a connection. Small pieces are copied into the queue; large pieces are referenced.
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
  // Pieces smaller than this are copied, because holding a reference would cost more.
  static constexpr size_t kCopiedBytes = 4096;

  void Append(absl::string_view bytes);
  // `bytes` must be part of `owner`'s bytes.
  void Append(std::shared_ptr<const OutputBytes> owner, absl::string_view bytes);

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Fills `pieces` from the front of the queue; returns the number of pieces filled.
  int Front(absl::Span<iovec> pieces) const;
  // Removes the first `bytes` bytes, once they are sent.
  void Pop(size_t bytes);

 private:
  struct Piece {
    std::shared_ptr<const OutputBytes> owner;
    // If `owner` is null, the bytes are in `copy`. Otherwise `shared` refers to bytes of `owner`.
    std::string copy;
    absl::string_view shared;
    absl::string_view bytes() const { return owner == nullptr ? absl::string_view(copy) : shared; }
  };
  std::deque<Piece> pieces_;
  // Bytes of the first piece that have been sent.
  size_t sent_ = 0;
  size_t size_ = 0;
  // A string that has been sent, kept so that its allocation can be reused.
  std::string spare_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_OUTPUT_QUEUE_H_
