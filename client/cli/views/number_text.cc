#include "client/cli/views/number_text.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace phimap::cli {

std::string WithThousands(int64_t number) {
  std::string text = absl::StrCat(number);
  const int first_digit = number < 0 ? 1 : 0;
  for (int i = static_cast<int>(text.size()) - 3; i > first_digit; i -= 3)
    text.insert(text.begin() + i, ',');
  return text;
}

std::string SizeText(int64_t size_bytes) {
  if (size_bytes < 1024) return absl::StrCat(size_bytes, " bytes");
  double size = static_cast<double>(size_bytes) / 1024;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (size < 1024) break;
    size /= 1024;
    unit = larger;
  }
  return absl::StrFormat("%.1f %s", size, unit);
}

std::string ShortNumber(double number) { return absl::StrFormat("%.3g", number); }

std::string PercentText(double share) {
  const bool would_be_zero = share > 0 && share < 1e-4;
  return would_be_zero ? ShortPercent(share) : absl::StrFormat("%.2f %%", 100 * share);
}

std::string ShortPercent(double share) { return absl::StrCat(ShortNumber(100 * share), " %"); }

std::string UpperNumber(double number) {
  if (!(number > 0) || !std::isfinite(number)) return ShortNumber(number);
  std::string text = absl::StrFormat("%.2g", number);
  double shown = 0;
  if (!absl::SimpleAtod(text, &shown) || shown >= number) return text;
  // One unit of the second digit.
  const double step = std::pow(10.0, std::floor(std::log10(number)) - 1);
  return absl::StrFormat("%.2g", shown + step);
}

std::string DurationText(double seconds) {
  const int64_t whole = static_cast<int64_t>(seconds);
  if (whole < 60) return absl::StrCat(whole, " s");
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace phimap::cli
