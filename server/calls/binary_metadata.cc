#include "server/calls/binary_metadata.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"

namespace phimap {
namespace {

// absl's decoder skips white space and takes '.' for padding; a header may hold neither.
bool DecodeOne(absl::string_view base64, std::string& bytes) {
  const size_t padding = base64.find('=');
  const absl::string_view digits = base64.substr(0, padding);
  const bool known = std::all_of(digits.begin(), digits.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '+' || c == '/';
  });
  if (!known || base64.find_first_not_of('=', digits.size()) != base64.npos) return false;
  return absl::Base64Unescape(base64, &bytes);
}

}  // namespace

bool DecodeBinaryMetadata(absl::string_view value, std::vector<std::string>& values) {
  const size_t before = values.size();
  for (absl::string_view part : absl::StrSplit(value, ',')) {
    std::string bytes;
    if (!DecodeOne(absl::StripAsciiWhitespace(part), bytes)) {
      values.resize(before);
      return false;
    }
    values.push_back(std::move(bytes));
  }
  return true;
}

std::string EncodeBinaryMetadata(absl::string_view bytes) {
  std::string encoded = absl::Base64Escape(bytes);
  encoded.erase(std::min(encoded.size(), encoded.find('=')));
  return encoded;
}

}  // namespace phimap
