#include "server/http/json_values.h"

#include <charconv>
#include <cmath>

namespace phimap {

const char* NameOf(simdjson::dom::element element) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      return "an object";
    case element_type::INT64:
    case element_type::UINT64:
    case element_type::DOUBLE:
      return "a number";
    case element_type::STRING:
      return "a text";
    case element_type::BOOL:
      return "true or false";
    case element_type::NULL_VALUE:
      return "null";
  }
  return "something else";
}

void AppendNumber(double value, std::string& text) {
  if (!std::isfinite(value)) {
    text.append(std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    return;
  }
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), value);
  text.append(digits, static_cast<size_t>(end.ptr - digits));
}

void AppendString(absl::string_view value, std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  const bool is_utf8 = simdjson::validate_utf8(value.data(), value.size());
  text.push_back('"');
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text.push_back('\\');
      text.push_back(c);
    } else if (byte < 0x20 || (byte >= 0x80 && !is_utf8)) {
      text.append("\\u00");
      text.push_back(kDigits[byte >> 4]);
      text.push_back(kDigits[byte & 15]);
    } else {
      text.push_back(c);
    }
  }
  text.push_back('"');
}

}  // namespace phimap
