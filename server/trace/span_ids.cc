#include "server/trace/span_ids.h"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <random>

#include "core/random/random_stream.h"

namespace phimap {
namespace {

// Returns 128 random bits, other ones at every call in this process. Two processes have the same
// key, and then the same bits, with probability 2^-64.
PhiloxBlock NextBlock() {
  static const PhiloxKey key = [] {
    std::random_device device;
    return PhiloxKey{device(), device()};
  }();
  static std::atomic<uint64_t> next{0};
  const uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
  return Philox4x32(key,
                    {static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0});
}

template <size_t size>
std::array<uint8_t, size> NewId() {
  static_assert(size <= sizeof(PhiloxBlock));
  constexpr std::array<uint8_t, size> kNone = {};  // zero means "no id"
  std::array<uint8_t, size> id = kNone;
  while (id == kNone) {
    const PhiloxBlock bits = NextBlock();
    std::memcpy(id.data(), bits.data(), size);
  }
  return id;
}

}  // namespace

TraceId NewTraceId() { return NewId<16>(); }

SpanId NewSpanId() { return NewId<8>(); }

bool IsChosen(const TraceId& id, double ratio) {
  uint64_t number = 0;
  for (size_t i = 8; i < id.size(); ++i) number = (number << 8) | id[i];
  // 63 bits, as the rule has it. They are exact in neither side's double, so integers are compared.
  if (ratio >= 1) return true;
  return (number >> 1) < static_cast<uint64_t>(ratio * 0x1p63);
}

}  // namespace phimap
