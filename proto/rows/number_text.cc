#include "proto/rows/number_text.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace phimap {

std::string QuotedCell(absl::string_view text) {
  constexpr size_t kMaxQuotedText = 40;
  if (text.size() <= kMaxQuotedText) return absl::StrCat("'", text, "'");
  return absl::StrCat("'", text.substr(0, kMaxQuotedText), "…'");
}

NumberError ParseNumber(absl::string_view text, double& value) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return NumberError::kEmpty;
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) {
    return NumberError::kNotNumber;
  }
  if (error == std::errc::result_out_of_range) return NumberError::kRange;
  return std::isfinite(value) ? NumberError::kNone : NumberError::kNotFinite;
}

std::string ExplainNumber(NumberError error, absl::string_view cell) {
  switch (error) {
    case NumberError::kEmpty:
      return "expected a number, got an empty cell";
    case NumberError::kNotFinite:
      return absl::StrCat("expected a finite number, got ", QuotedCell(cell));
    case NumberError::kRange:
      return absl::StrCat("expected a number in the range of float64, got ", QuotedCell(cell));
    case NumberError::kNone:
    case NumberError::kNotNumber:
      break;
  }
  return absl::StrCat("expected a number, got ", QuotedCell(cell));
}

}  // namespace phimap
