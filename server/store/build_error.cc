#include "server/store/build_error.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"

namespace phimap {

// Encodes the detail as lines: reason, field, retry delay, and then each key followed by its value.
// Each of these is C-escaped, so that it stays one line.
std::optional<std::string> EncodeErrorDetail(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return std::nullopt;
  std::string text = absl::StrCat(absl::CEscape(detail->reason), "\n", absl::CEscape(detail->field),
                                  "\n", detail->retry_delay_ms);
  for (const auto& [key, value] : detail->metadata) {
    absl::StrAppend(&text, "\n", absl::CEscape(key), "\n", absl::CEscape(value));
  }
  return text;
}

absl::Status DecodeError(absl::StatusCode code, const std::string& message,
                         const std::optional<std::string>& detail) {
  if (code == absl::StatusCode::kOk) return absl::OkStatus();
  const absl::Status plain(code, message);
  if (!detail.has_value()) return plain;
  std::vector<std::string> lines = absl::StrSplit(*detail, '\n');
  if (lines.size() < 3 || lines.size() % 2 == 0) return plain;
  for (std::string& line : lines) {
    std::string unescaped;
    if (!absl::CUnescape(line, &unescaped)) return plain;
    line = std::move(unescaped);
  }
  int64_t retry_delay_ms = 0;
  if (!absl::SimpleAtoi(lines[2], &retry_delay_ms)) return plain;
  std::map<std::string, std::string> metadata;
  for (size_t i = 3; i < lines.size(); i += 2) metadata[lines[i]] = lines[i + 1];
  // MakeError puts "field: " before the message, but the stored message already begins with it.
  absl::string_view bare = message;
  if (!lines[1].empty()) bare = absl::StripPrefix(bare, absl::StrCat(lines[1], ": "));
  return MakeError(code, lines[0], lines[1], bare, std::move(metadata), retry_delay_ms);
}

}  // namespace phimap
