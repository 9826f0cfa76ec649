#include "server/observe/request_id.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace phimap {

namespace {

// A permutation of the 64-bit numbers: the last steps of SplitMix64, each of which is invertible.
uint64_t Scramble(uint64_t number) {
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

uint64_t RandomStart() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Returns a number that is different at every call within a process, and never 0.
uint64_t NextNumber() {
  static std::atomic<uint64_t> next{RandomStart()};
  while (true) {
    const uint64_t number = Scramble(next.fetch_add(1, std::memory_order_relaxed));
    if (number != 0) return number;
  }
}

}  // namespace

bool IsRequestId(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxRequestIdBytes && text.front() != ' ' &&
         text.back() != ' ' && std::all_of(text.begin(), text.end(), absl::ascii_isprint);
}

std::string RequestId::Text() const {
  if (from_caller()) return from_caller_.request_id;
  uint64_t number = number_.load(std::memory_order_relaxed);
  if (number == 0) {
    const uint64_t mine = NextNumber();
    // If two threads ask at once, both use the number of the first.
    if (number_.compare_exchange_strong(number, mine, std::memory_order_relaxed)) number = mine;
  }
  return absl::StrCat(absl::Hex(number, absl::kZeroPad16));
}

}  // namespace phimap
