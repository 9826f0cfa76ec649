#include "server/mapping/page_token.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/status/error.h"
#include "server/store/sha256.h"
#include "server/transform/limits.h"

namespace phimap {
namespace {

constexpr size_t kCheckDigits = 8;

// Returns a checksum that detects corrupted tokens. It is not a secret.
std::string Check(absl::string_view list, absl::string_view position) {
  return Sha256Hex(absl::StrCat(list, "\n", position)).substr(0, kCheckDigits);
}

}  // namespace

std::string EncodePageToken(absl::string_view list, absl::string_view position) {
  return absl::WebSafeBase64Escape(absl::StrCat(Check(list, position), position));
}

absl::StatusOr<std::string> DecodePageToken(absl::string_view list, absl::string_view token) {
  std::string text;
  if (absl::WebSafeBase64Unescape(token, &text) && text.size() > kCheckDigits) {
    std::string position = text.substr(kCheckDigits);
    if (text.substr(0, kCheckDigits) == Check(list, position)) return position;
  }
  return MakeError(absl::StatusCode::kInvalidArgument, "PAGE_TOKEN_INVALID", "page_token",
                   "expected the next_page_token of the previous page of this list");
}

absl::StatusOr<int> PageSize(int requested) {
  if (requested < 0) {
    return MakeError(absl::StatusCode::kInvalidArgument, "FIELD_OUT_OF_RANGE", "page_size",
                     absl::StrCat("expected 0..", kMaxPageSize, ", got ", requested),
                     {{"actual", absl::StrCat(requested)}, {"limit", absl::StrCat(kMaxPageSize)}});
  }
  return requested == 0 ? kDefaultPageSize : std::min(requested, kMaxPageSize);
}

}  // namespace phimap
