// Identifies one call among all others, in the log and in the answer that its client gets.
#ifndef PHIMAP_SERVER_OBSERVE_REQUEST_ID_H_
#define PHIMAP_SERVER_OBSERVE_REQUEST_ID_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/observe/trace_parent.h"

namespace phimap {

// The header or the metadata in which a caller sends its id of a call, and gets the id of the call.
inline constexpr char kRequestIdKey[] = "x-request-id";
inline constexpr size_t kMaxRequestIdBytes = 128;

// Whether a caller's id of a call can be used: 1 to 128 printable characters of ASCII, without a
// space at either end, which HTTP would strip.
bool IsRequestId(absl::string_view text);

// What a caller says about its call, so that its own log and traces can be compared with this log.
struct CallerIds {
  // "" if the caller sent none, or none that can be used.
  std::string request_id;
  std::optional<TraceParent> trace_parent;
};

// An id of a request: that of the caller, if it sent one, or 16 hexadecimal digits. These are made
// on first use, so a successful call has none. Those of one process are all different. Those of two
// processes are equal with probability 2^-64. They do not reveal the number of calls, and are not
// secret. Thread-safe.
class RequestId {
 public:
  RequestId() : RequestId(CallerIds()) {}
  explicit RequestId(CallerIds from_caller) : from_caller_(std::move(from_caller)) {}
  RequestId(const RequestId&) = delete;
  RequestId& operator=(const RequestId&) = delete;

  // Returns the same text at every call.
  std::string Text() const;
  // Whether the id is that of the caller.
  bool from_caller() const { return !from_caller_.request_id.empty(); }
  const std::optional<TraceParent>& trace_parent() const { return from_caller_.trace_parent; }
  // The id of the trace that the call belongs to; "" if the caller sent none.
  std::string TraceId() const {
    return trace_parent().has_value() ? trace_parent()->TraceId() : std::string();
  }

 private:
  const CallerIds from_caller_;
  // 0 until the first call of Text.
  mutable std::atomic<uint64_t> number_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_REQUEST_ID_H_
