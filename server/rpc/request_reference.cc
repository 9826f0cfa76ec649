#include "server/rpc/request_reference.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace phimap {

namespace {

// Length of the longest name of a mapping or an alias, and of a digest.
constexpr size_t kMaxNameBytes = 63;
constexpr size_t kMaxDigestBytes = 64;
// Bytes of a UUID.
constexpr size_t kBuildIdBytes = 36;

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && absl::ascii_islower(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
         });
}

bool IsDigest(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxDigestBytes &&
         std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

}  // namespace

LoggedReference ReferenceForLog(absl::string_view reference) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(reference, absl::MaxSplits('@', 1));
  LoggedReference out;
  if (!IsName(parts.first)) return out;
  out.mapping = parts.first;
  absl::string_view version = parts.second;
  int64_t number = 0;
  if (IsName(version)) {
    out.alias = version;
  } else if (absl::ConsumePrefix(&version, "sha256:")) {
    if (IsDigest(version)) out.digest = version;
  } else if (absl::SimpleAtoi(version, &number) && number > 0) {
    out.version = number;
  }
  return out;
}

absl::string_view AliasForLog(absl::string_view text) { return IsName(text) ? text : ""; }

absl::string_view BuildIdForLog(absl::string_view text) {
  const bool is_id = text.size() <= kBuildIdBytes &&
                     std::all_of(text.begin(), text.end(),
                                 [](char c) { return absl::ascii_isxdigit(c) || c == '-'; });
  return is_id ? text : "";
}

}  // namespace phimap
