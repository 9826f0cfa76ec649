#include "server/http/json_values.h"

#include <charconv>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/utf8.h"
#include "server/http/http_status.h"

namespace phimap {
namespace {

// Whether a number of these digits, without leading zeros, needs over 64 bits.
bool NeedsFloat(absl::string_view digits, bool negative) {
  const absl::string_view most = negative ? "9223372036854775808" : "18446744073709551615";
  return digits.size() > most.size() || (digits.size() == most.size() && digits > most);
}

// Returns the text with an exponent behind each integer that needs it, or "" if there is none.
std::string WithExponents(absl::string_view text) {
  std::string all;
  size_t copied = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string && absl::ascii_isdigit(static_cast<unsigned char>(text[i]))) {
      const size_t begin = i;
      while (i < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[i]))) ++i;
      const bool whole = i == text.size() || !absl::StrContains(".eE", text[i]);
      const bool negative = begin > 0 && text[begin - 1] == '-';
      if (whole && NeedsFloat(text.substr(begin, i - begin), negative)) {
        absl::StrAppend(&all, text.substr(copied, i - copied), "e0");
        copied = i;
      }
      // Digits behind a point or an exponent are no number of their own.
      while (i < text.size() && absl::StrContains("0123456789.eE+-", text[i])) ++i;
      --i;
    }
  }
  if (copied > 0) absl::StrAppend(&all, text.substr(copied));
  return all;
}

}  // namespace

absl::Status ParseObject(simdjson::dom::parser& parser, absl::string_view body,
                         simdjson::dom::object& object) {
  simdjson::dom::element document;
  simdjson::error_code error = parser.parse(body.data(), body.size()).get(document);
  if (error == simdjson::NUMBER_ERROR) {
    const std::string text = WithExponents(body);
    if (!text.empty()) error = parser.parse(text.data(), text.size()).get(document);
  }
  if (error != simdjson::SUCCESS) {
    const bool number = error == simdjson::NUMBER_ERROR || error == simdjson::TAPE_ERROR;
    return MalformedHttp(
        "body",
        absl::StrCat("the body is no JSON object: ", simdjson::error_message(error),
                     number ? "; JSON has no NaN, no Infinity and no number over 1.8e308" : ""));
  }
  if (document.get_object().get(object) == simdjson::SUCCESS) return absl::OkStatus();
  return MalformedHttp("body", absl::StrCat("expected a JSON object, got ", NameOf(document)));
}

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
  const bool is_utf8 = IsUtf8(value);
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
