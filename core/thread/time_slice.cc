#include "core/thread/time_slice.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace phimap {
namespace {

// Linux's struct sched_attr, whose header clashes with the C library's.
struct Attributes {
  uint32_t size_bytes = sizeof(Attributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t niceness = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;  // the slice of an ordinary thread
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};

bool Read(Attributes& attributes) {
  return syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0;
}

}  // namespace

void RequestTimeSlice(absl::Duration slice) {
  Attributes attributes;
  if (!Read(attributes)) return;
  attributes.runtime_ns = static_cast<uint64_t>(absl::ToInt64Nanoseconds(slice));
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

absl::Duration TimeSlice() {
  Attributes attributes;
  return Read(attributes) ? absl::Nanoseconds(attributes.runtime_ns) : absl::ZeroDuration();
}

}  // namespace phimap
