#include "client/cpp/uuid.h"

#include <array>
#include <cstdint>
#include <random>

#include "absl/strings/str_format.h"

namespace phimap::client {

std::string RandomUuid() {
  std::random_device entropy;
  std::array<uint32_t, 4> words;
  for (uint32_t& word : words) word = entropy();
  words[1] = (words[1] & 0xffff0fff) | 0x00004000;  // version 4
  words[2] = (words[2] & 0x3fffffff) | 0x80000000;  // variant 1
  return absl::StrFormat("%08x-%04x-%04x-%04x-%04x%08x", words[0], words[1] >> 16,
                         words[1] & 0xffff, words[2] >> 16, words[2] & 0xffff, words[3]);
}

}  // namespace phimap::client
