#include "client/cli/views/text.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/cli/arguments/flags.h"
#include "core/status/status_macros.h"

namespace phimap::cli {

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

std::string EnumText(absl::string_view enumerator) {
  if (enumerator.empty()) return "unknown";
  const std::string words = absl::StrReplaceAll(enumerator, {{"_", " "}});
  return absl::AsciiStrToLower(words.substr(words.find(' ') + 1));
}

std::string LifetimeText(const v1::Version& version) {
  if (!version.has_ttl()) return "for ever";
  const absl::Duration ttl =
      absl::Seconds(version.ttl().seconds()) + absl::Nanoseconds(version.ttl().nanos());
  const std::string length = absl::StrCat(DurationArgumentText(ttl), " after its last use");
  if (!version.has_expire_time()) return absl::StrCat(length, ", and while an alias points to it");
  return absl::StrCat(
      length, ", so far until ",
      absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixSeconds(version.expire_time().seconds()),
                       absl::UTCTimeZone()));
}

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

absl::StatusOr<std::string> JsonText(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) return absl::InternalError(status.ToString());
  return text;
}

absl::Status PrintJson(const google::protobuf::Message& message, std::ostream& out) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string text, JsonText(message));
  out << text;
  return absl::OkStatus();
}

std::string PrintableLabel(const std::string& label) {
  std::string text;
  for (const char c : label) {
    if (text.size() >= kPrintedLabelBytes) break;
    text += absl::ascii_iscntrl(static_cast<unsigned char>(c)) ? '?' : c;
  }
  // Drops a character that was cut in two.
  if (text.size() < label.size()) {
    while (!text.empty() && (static_cast<unsigned char>(label[text.size()]) & 0xC0) == 0x80) {
      text.pop_back();
    }
    text += "...";
  }
  return text.empty() ? "''" : text;
}

}  // namespace phimap::cli
