#include "server/registry/reference.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/rpc/call.h"
#include "server/store/store.h"

namespace phimap {
namespace {

constexpr size_t kMaxNameBytes = 63;

bool IsNameByte(char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-'; }

// Accepts lower-case digits only, because stored digests are lower-case: an upper-case digest would
// not be found.
bool IsDigestByte(char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); }

bool IsDigest(absl::string_view text) {
  return text.size() >= kLeastDigestDigits && text.size() <= kDigestDigits &&
         std::all_of(text.begin(), text.end(), IsDigestByte);
}

std::string ExpectedDigest() {
  return absl::StrCat(kLeastDigestDigits, " to ", kDigestDigits,
                      " lower-case hexadecimal digits of a digest");
}

absl::Status BadReference(absl::string_view text) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kReferenceInvalid, "reference",
      absl::StrCat("expected \"name\", \"name@7\", \"name@alias\" or \"name@", kDigestPrefix,
                   "…\" with ", ExpectedDigest(), "; got ", Quoted(text)));
}

absl::Status BadName(absl::string_view text, absl::string_view field, absl::string_view end) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kNameInvalid, field,
      absl::StrCat("expected a lower-case letter, then up to 62 letters, digits and hyphens", end,
                   "; got ", Quoted(text)));
}

}  // namespace

bool IsAliasName(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && absl::ascii_islower(text[0]) &&
         std::all_of(text.begin(), text.end(), IsNameByte);
}

bool IsMappingName(absl::string_view text) { return IsAliasName(text) && text.back() != '-'; }

absl::Status CheckMappingName(absl::string_view text, absl::string_view field) {
  return IsMappingName(text) ? absl::OkStatus() : BadName(text, field, ", no hyphen at the end");
}

absl::Status CheckAliasName(absl::string_view text, absl::string_view field) {
  return IsAliasName(text) ? absl::OkStatus() : BadName(text, field, "");
}

absl::StatusOr<Reference> ParseReference(absl::string_view text) {
  Reference reference;
  const size_t at = text.find('@');
  reference.mapping = text.substr(0, at);
  if (!IsMappingName(reference.mapping)) return BadReference(text);
  if (at == absl::string_view::npos) return reference;
  const absl::string_view which = text.substr(at + 1);
  if (IsAliasName(which)) {
    reference.alias = which;
    return reference;
  }
  if (absl::StartsWith(which, kDigestPrefix)) {
    reference.digest = which.substr(kDigestPrefix.size());
    if (!IsDigest(reference.digest)) return BadReference(text);
    return reference;
  }
  // Checks for digits first, because SimpleAtoi would accept signs and spaces.
  int64_t number = 0;
  if (which.empty() || which[0] == '0' ||
      !std::all_of(which.begin(), which.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(which, &number)) {
    return BadReference(text);
  }
  reference.number = number;
  return reference;
}

absl::Status CheckReference(Call& call, absl::string_view text) {
  // Whether the rest of it is right is found when it is looked up.
  if (call.Allows(text.substr(0, text.find('@')))) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const Reference reference, ParseReference(text));
  return call.CheckMapping(reference.mapping);
}

absl::StatusOr<VersionRecord> LookUpVersion(Store& store, const Reference& reference) {
  if (!reference.alias.empty()) return store.GetAliasedVersion(reference.mapping, reference.alias);
  if (!reference.digest.empty()) {
    return store.GetVersionByDigest(reference.mapping, reference.digest);
  }
  absl::StatusOr<VersionRecord> found = store.GetVersion(reference.mapping, reference.number);
  if (found.ok() || !reference.number.has_value()) return found;
  std::optional<ErrorDetail> detail = DetailOf(found.status());
  if (!detail.has_value() || detail->reason != reason::kVersionNotFound) return found;
  // The store does not know which field a number came from.
  return MakeError(found.status().code(), detail->reason, "reference", found.status().message(),
                   std::move(detail->metadata));
}

}  // namespace phimap
