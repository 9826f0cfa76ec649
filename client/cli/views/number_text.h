// Numbers as people read them.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_NUMBER_TEXT_H_
#define PHIMAP_CLIENT_CLI_VIEWS_NUMBER_TEXT_H_

#include <cstdint>
#include <string>

namespace phimap::cli {

// Formats an integer with separators: 1234567 → "1,234,567".
std::string WithThousands(int64_t number);
// Formats a size: 1258291 → "1.2 MiB"; under 1 KiB "17 bytes".
std::string SizeText(int64_t size_bytes);
// Formats a number with three significant digits: "0.0123" or "1.23e-07".
std::string ShortNumber(double number);
// Formats a share with two decimals: "3.20 %"; positive ones below 0.01 % as ShortPercent.
std::string PercentText(double share);
// Formats a share with three significant digits: "3.2 %" or "0.0012 %".
std::string ShortPercent(double share);
// Formats an upper bound with two digits, rounded up.
std::string UpperNumber(double number);
// Formats a duration: "12 s", "3:05" from a minute on, "1:02:03" from an hour on. REQUIRES: seconds
// >= 0.
std::string DurationText(double seconds);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_NUMBER_TEXT_H_
