#include "core/certificate/readable_text.h"

#include <cstdint>

#include "core/status/utf8.h"

namespace phimap {
namespace {

bool IsReadable(uint32_t code) {
  if (code == '\n') return true;
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  // Marks, embeddings, overrides and isolates of the bidirectional algorithm.
  const bool direction = code == 0x61c || code == 0x200e || code == 0x200f ||
                         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !direction && code <= 0x10ffff;
}

}  // namespace

bool IsReadableText(absl::string_view text) {
  while (!text.empty()) {
    if (!IsReadable(TakeUtf8Character(text))) return false;
  }
  return true;
}

}  // namespace phimap
