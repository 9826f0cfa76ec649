// Numbers as people read them.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_NUMBER_TEXT_H_
#define PHIMAP_CLIENT_CLI_VIEWS_NUMBER_TEXT_H_

#include <cstdint>
#include <string>

namespace phimap::cli {

// 1234567 → "1,234,567".
std::string WithThousands(int64_t number);
// 1258291 → "1.2 MiB"; under 1 KiB "17 bytes".
std::string SizeText(int64_t size_bytes);
// Three significant digits, "0.0123" or "1.23e-07".
std::string ShortNumber(double number);
// Two digits, and never less than the number: for upper bounds.
std::string UpperNumber(double number);
// "12 s", "3:05" over a minute, "1:02:03" over an hour. REQUIRES: seconds >= 0.
std::string DurationText(double seconds);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_NUMBER_TEXT_H_
