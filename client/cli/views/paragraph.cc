#include "client/cli/views/paragraph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace phimap::cli {
namespace {

constexpr int kMinWidth = 40;

// Returns the number of characters, not bytes: all bytes but the continuation bytes of UTF-8.
int Length(absl::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

void AppendParagraph(std::string& out, absl::string_view first, absl::string_view text, int width) {
  const int room = std::max(width, kMinWidth);
  const std::string indent(Length(first), ' ');
  std::string line(first);
  bool empty = true;
  for (absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    if (!empty && Length(line) + 1 + Length(word) > room) {
      absl::StrAppend(&out, line, "\n");
      line = indent;
      empty = true;
    }
    absl::StrAppend(&line, empty ? "" : " ", word);
    empty = false;
  }
  absl::StrAppend(&out, line, "\n");
}

}  // namespace phimap::cli
