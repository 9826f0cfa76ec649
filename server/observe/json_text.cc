#include "server/observe/json_text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/status/utf8.h"

namespace phimap {
namespace {

constexpr absl::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace

void AppendJsonText(absl::string_view text, std::string& out) {
  out.push_back('"');
  while (!text.empty()) {
    const absl::string_view before = text;
    const uint32_t character = TakeUtf8Character(text);
    if (character == kNoCharacter) {
      // Skips only one byte of an invalid character, wherever the decoder stopped.
      text = before.substr(1);
      absl::StrAppend(&out, kReplacementCharacter);
    } else if (character < 0x20) {
      absl::StrAppend(&out, "\\u", absl::Hex(character, absl::kZeroPad4));
    } else {
      if (character == '"' || character == '\\') out.push_back('\\');
      out.append(before.data(), before.size() - text.size());
    }
  }
  out.push_back('"');
}

}  // namespace phimap
