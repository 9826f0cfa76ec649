// Names the place in a distributed trace from which a call comes: the header traceparent of the W3C
// (https://www.w3.org/TR/trace-context/).
//
// Example:
//   traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
#ifndef PHIMAP_SERVER_OBSERVE_TRACE_PARENT_H_
#define PHIMAP_SERVER_OBSERVE_TRACE_PARENT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace phimap {

inline constexpr char kTraceParentKey[] = "traceparent";

struct TraceParent {
  // Flags: the caller records the trace; the trace id is random.
  static constexpr uint8_t kSampled = 1;
  static constexpr uint8_t kRandom = 2;

  // Neither id is zero.
  std::array<uint8_t, 16> trace_id;
  std::array<uint8_t, 8> parent_id;
  // Flags that are not defined above are dropped, as the standard requires.
  uint8_t flags;

  // Returns nullopt unless `text` is the value of a header of version 00, or begins as one and has
  // a later version. Pure; allocates nothing.
  static std::optional<TraceParent> Parse(absl::string_view text);

  bool sampled() const { return (flags & kSampled) != 0; }
  // 32 hexadecimal digits in small letters.
  std::string TraceId() const;
  // The value of a header of version 00.
  std::string ToString() const;

  friend bool operator==(const TraceParent&, const TraceParent&) = default;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_OBSERVE_TRACE_PARENT_H_
