// Numbers, times and sentences as people read them, and messages as programs do.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_TEXT_H_
#define PHIMAP_CLIENT_CLI_VIEWS_TEXT_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap::cli {

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

// Returns the words of an enumerator: "data set" for SUBJECT_DATA_SET; "unknown" for the number of
// a newer server, which has no name. Pure.
std::string EnumText(absl::string_view enumerator);

// Returns "for ever", or a text such as "7d after its last use" with the time at which the version
// expires if it is not used again. Pure.
std::string LifetimeText(const v1::Version& version);

// Appends `text`, broken between words at `width` characters (at least 40). The first line begins
// with `first`, the other lines with the same number of spaces. UTF-8. Ends with a newline.
void AppendParagraph(std::string& out, absl::string_view first, absl::string_view text, int width);

// The canonical JSON of protobuf with the names of the proto files, indented, ended by a newline.
// Fields without presence are written even if zero, so a program always finds them; absent
// `optional` fields are left out. 64-bit integers are strings, as canonical JSON requires.
absl::StatusOr<std::string> JsonText(const google::protobuf::Message& message);
// Prints JsonText.
absl::Status PrintJson(const google::protobuf::Message& message, std::ostream& out);

// Longest part of a label that is printed.
inline constexpr size_t kPrintedLabelBytes = 24;
// Returns a label in a form that can be printed: labels may be any text, which must not control the
// terminal or make a line too long.
std::string PrintableLabel(const std::string& label);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_TEXT_H_
