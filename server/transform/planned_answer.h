// An answer that is laid out before its features are computed. The engine then writes the features
// directly into the message.
//
// A response message consists of bytes that are known beforehand (version, shapes, tags and lengths
// of fields) and a few large fields that are computed. The steps are: lay out the answer, charge it
// to the budget, allocate it when the request is about to run, and let the engine write into it.
#ifndef PHIMAP_SERVER_TRANSFORM_PLANNED_ANSWER_H_
#define PHIMAP_SERVER_TRANSFORM_PLANNED_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"
#include "server/observe/metrics.h"
#include "server/rpc/call.h"
#include "server/rpc/framed_message.h"

namespace phimap {

// Not thread-safe.
class PlannedAnswer {
 public:
  // Adds bytes in wire format.
  void AddBytes(absl::string_view bytes);
  // Adds a field of `size` bytes whose content is written later. Returns the place of the field.
  int AddField(int number, size_t size);
  // Adds the tag and length of a field whose content, of `size` bytes, is added next.
  void AddFieldHead(int number, size_t size);
  // Returns the size in bytes of the tag and length that AddFieldHead adds.
  static size_t FieldHeadBytes(int number, size_t size);

  // Adds memory that computing the answer takes in addition to the message. It stays charged until
  // the message is sent.
  void AddScratch(size_t size) { scratch_ += size; }

  // Size of the whole message.
  size_t size() const { return size_; }

  // Charges for the whole answer. RESOURCE_EXHAUSTED (REQUEST_MEMORY_FULL) if there is no capacity
  // at the moment.
  absl::Status Charge(RequestMemory& memory, const CallerPointer& caller);
  // Charges for the whole answer, and returns whether there was capacity. If not, `granted` is
  // called with the charge later, on any thread; Accept must then be called with it.
  bool ChargeOrWait(RequestMemory& memory, const CallerPointer& caller,
                    RequestMemory::Granted granted, RequestMemory::Waiting& waiting);
  void Accept(RequestMemory::Charge charge) { charge_ = std::move(charge); }
  // Creates the message, complete except for the fields to be written. Throws std::bad_alloc.
  // Records in `metrics` the time until the last byte is sent. REQUIRES: the answer is
  // charged.
  void Allocate(const TransformMetrics& metrics);
  // Creates the message from a response that was made after the charge, in place of Allocate. It is
  // within the charge if what it takes was added as scratch. Throws std::bad_alloc.
  void Write(const google::protobuf::MessageLite& response, const TransformMetrics& metrics);
  // Destination of a field's content. REQUIRES: Allocate.
  char* field(int place) const;
  // Returns the message, which must not be written to afterwards. REQUIRES: Allocate or Write.
  std::shared_ptr<const OutputBytes> Release() { return std::move(message_); }

 private:
  // Literal bytes that precede a field, and the field's size.
  struct Part {
    size_t literal_end;
    size_t field_size;
  };
  int64_t bytes() const { return static_cast<int64_t>(size_ + scratch_); }

  std::string literals_;
  std::vector<Part> parts_;
  size_t size_ = 0;
  size_t scratch_ = 0;
  RequestMemory::Charge charge_;
  std::shared_ptr<FramedMessage> message_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_PLANNED_ANSWER_H_
