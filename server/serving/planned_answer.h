// An answer that is laid out before its features are computed, so that they are written in place.
//
// A response message consists of bytes that are known beforehand (version, shapes, the tags and
// lengths of fields) and a few large fields that are computed. So the answer is laid out first,
// charged to the budget, and allocated when the request is about to run; the engine writes straight
// into the message.
#ifndef PHIMAP_SERVER_SERVING_PLANNED_ANSWER_H_
#define PHIMAP_SERVER_SERVING_PLANNED_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/calls/framed_message.h"
#include "server/calls/method.h"
#include "server/observe/transform_metrics.h"

namespace phimap {

// Not thread-safe.
class PlannedAnswer {
 public:
  // Adds bytes in wire format.
  void AddBytes(absl::string_view bytes);
  // A field of `size` bytes with that number, whose content is written later; returns its place.
  int AddField(int number, size_t size);
  // Adds the tag and length of a field whose content, of `size` bytes, is added next.
  void AddFieldHead(int number, size_t size);
  // Size of that head in bytes.
  static size_t FieldHeadBytes(int number, size_t size);

  // Memory beside the message that computing it takes. It stays charged until the message is sent.
  void AddScratch(size_t size) { scratch_ += size; }

  // Size of the whole message.
  size_t size() const { return size_; }

  // Charges it. RESOURCE_EXHAUSTED (REQUEST_MEMORY_FULL) when there is no capacity at the moment.
  absl::Status Charge(RequestMemory& memory);
  // Makes the message, complete except for the fields to be written. Throws std::bad_alloc.
  // Measures the time until the last byte is sent for `metrics`. REQUIRES: the message was charged.
  void Allocate(const TransformMetrics& metrics);
  // Destination of a field's content. REQUIRES: Allocate.
  char* field(int place) const;
  // Returns the message, which must not be written to afterwards. REQUIRES: Allocate.
  std::shared_ptr<const OutputBytes> Release() { return std::move(message_); }

 private:
  // Literal bytes that precede a field, and the field's size.
  struct Part {
    size_t literal_end;
    size_t field_size;
  };
  std::string literals_;
  std::vector<Part> parts_;
  size_t size_ = 0;
  size_t scratch_ = 0;
  RequestMemory::Charge charge_;
  std::shared_ptr<FramedMessage> message_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_SERVING_PLANNED_ANSWER_H_
