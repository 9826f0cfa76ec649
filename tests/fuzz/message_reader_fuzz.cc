// Checks that a stream of gRPC messages gives the same messages no matter how it is divided into
// chunks, and that it takes memory only as its bytes arrive. The first byte of an input is the seed
// of the division, and the rest is the stream.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "server/rpc/framed_message.h"

namespace phimap {
namespace {

constexpr int64_t kMaxMessageBytes = int64_t{1} << 30;

// Returns the messages of a stream, and how it ended. `cuts` is the seed of the random division
// into chunks. If it is 0, the stream arrives in one piece.
std::vector<std::string> Read(absl::string_view stream, int cuts) {
  std::mt19937 random(cuts);
  MessageReader reader(kMaxMessageBytes);
  std::vector<std::string> messages;
  size_t arrived = 0;  // bytes of the current message
  while (!stream.empty()) {
    const size_t most = std::max<size_t>(1, stream.size() / (1 + random() % 8));
    absl::string_view chunk = stream.substr(0, cuts == 0 ? stream.size() : 1 + random() % most);
    stream.remove_prefix(chunk.size());
    while (!chunk.empty()) {
      chunk.remove_prefix(reader.TakePrefix(chunk));
      if (!reader.has_prefix()) break;
      if (reader.too_long()) {
        messages.push_back("too long");
        return messages;
      }
      const size_t taken = reader.TakeBody(chunk);
      chunk.remove_prefix(taken);
      arrived += taken;
      PHIMAP_CHECK(reader.capacity() <= std::max<size_t>(64 << 10, 2 * arrived));
      PHIMAP_CHECK(reader.capacity() <= reader.length());
      if (!reader.complete()) continue;
      messages.push_back(reader.compressed() ? "compressed " : "plain ");
      absl::StrAppend(&messages.back(), reader.Release().view());
      PHIMAP_CHECK(reader.at_boundary());
      arrived = 0;
    }
  }
  messages.push_back(reader.at_boundary() ? "whole" : "cut");
  return messages;
}

}  // namespace
}  // namespace phimap

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  PHIMAP_CHECK(phimap::Read(stream, 0) == phimap::Read(stream, 1 + data[0]));
  return 0;
}
