#include "server/store/catalog_errors.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/status/error.h"
#include "core/status/words.h"

namespace phimap {

using Code = absl::StatusCode;

namespace {

constexpr size_t kDigestDigits = 64;

std::string NamesOf(const std::vector<AliasRecord>& aliases) {
  return absl::StrJoin(aliases, ", ",
                       [](std::string* out, const AliasRecord& alias) { *out += alias.name; });
}

}  // namespace

absl::Status NoSuchMapping(absl::string_view mapping) {
  return MakeError(Code::kNotFound, reason::kMappingNotFound, "",
                   absl::StrCat("no mapping is named \"", mapping, "\""),
                   {{"mapping", std::string(mapping)}});
}

absl::Status NoSuchVersion(absl::string_view mapping, std::optional<int64_t> number) {
  return MakeError(Code::kNotFound, reason::kVersionNotFound, "",
                   number.has_value()
                       ? absl::StrCat("mapping \"", mapping, "\" has no version ", *number)
                       : absl::StrCat("every version of mapping \"", mapping, "\" was deleted"),
                   {{"mapping", std::string(mapping)}});
}

absl::Status NoSuchDigest(absl::string_view mapping, absl::string_view digest) {
  return MakeError(Code::kNotFound, reason::kVersionNotFound, "reference",
                   absl::StrCat("mapping \"", mapping, "\" has no version whose digest is ",
                                digest.size() < kDigestDigits ? "of the form " : "",
                                "sha256:", digest, digest.size() < kDigestDigits ? "…" : ""),
                   {{"mapping", std::string(mapping)}, {"digest", std::string(digest)}});
}

absl::Status AmbiguousDigest(absl::string_view mapping, absl::string_view digest,
                             const std::vector<std::string>& candidates, bool more) {
  const std::string all = absl::StrJoin(candidates, ", ");
  return MakeError(
      Code::kInvalidArgument, reason::kDigestAmbiguous, "reference",
      absl::StrCat("several versions of mapping \"", mapping,
                   "\" have digests that begin with sha256:", digest, ": ", all,
                   more ? " and more" : "", "; give more digits"),
      {{"mapping", std::string(mapping)}, {"digest", std::string(digest)}, {"candidates", all}});
}

absl::Status NotEmpty(absl::string_view mapping, int64_t versions) {
  return MakeError(Code::kFailedPrecondition, reason::kMappingNotEmpty, "only_if_empty",
                   absl::StrCat("mapping \"", mapping, "\" has ", CountOf(versions, "version"),
                                "; delete them first, or unset only_if_empty"),
                   {{"mapping", std::string(mapping)}, {"versions", absl::StrCat(versions)}});
}

absl::Status NoSuchAlias(absl::string_view mapping, absl::string_view alias,
                         absl::string_view field) {
  return MakeError(Code::kNotFound, reason::kAliasNotFound, field,
                   absl::StrCat("mapping \"", mapping, "\" has no alias \"", alias, "\""),
                   {{"mapping", std::string(mapping)}, {"alias", std::string(alias)}});
}

absl::Status EtagMismatch(absl::string_view mapping, absl::string_view alias,
                          absl::string_view expected, const AliasRecord* current) {
  const std::string etag(current == nullptr ? std::string(kNoEtag) : current->etag);
  const std::string state = current == nullptr ? absl::StrCat("there is no ", mapping, "@", alias)
                                               : absl::StrCat(mapping, "@", alias, " is version ",
                                                              current->version, ", etag ", etag);
  return MakeError(Code::kAborted, reason::kEtagMismatch, "etag",
                   absl::StrCat("expected ", Quoted(expected), "; ", state,
                                "; read the alias again before you decide"),
                   {{"expected", std::string(expected)},
                    {"etag", etag},
                    {"version", absl::StrCat(current == nullptr ? 0 : current->version)}});
}

absl::Status InUse(absl::string_view mapping, std::optional<int64_t> number,
                   const std::vector<AliasRecord>& aliases) {
  const std::string names = NamesOf(aliases);
  if (!number.has_value()) {
    return MakeError(
        Code::kFailedPrecondition, reason::kMappingInUse, "",
        absl::StrCat("mapping \"", mapping, "\" has the aliases ", names, "; delete them first"),
        {{"mapping", std::string(mapping)}, {"aliases", names}});
  }
  return MakeError(
      Code::kFailedPrecondition, reason::kVersionInUse, "",
      absl::StrCat("version ", *number, " of \"", mapping, "\" is the target of ", names,
                   "; move or delete the alias first"),
      {{"mapping", std::string(mapping)}, {"version", absl::StrCat(*number)}, {"aliases", names}});
}

absl::Status RolledBackTo(absl::string_view mapping, int64_t number,
                          const std::vector<AliasRecord>& aliases) {
  const std::string names = NamesOf(aliases);
  return MakeError(
      Code::kFailedPrecondition, reason::kVersionRollbackTarget, "give_up_rollback",
      absl::StrCat("version ", number, " of \"", mapping, "\" is the rollback target of ", names,
                   "; to delete it anyway, give up the rollback"),
      {{"mapping", std::string(mapping)}, {"version", absl::StrCat(number)}, {"aliases", names}});
}

absl::Status TooManyAliases(absl::string_view mapping) {
  return MakeError(
      Code::kResourceExhausted, reason::kAliasLimitReached, "",
      absl::StrCat("mapping \"", mapping, "\" has ", kMaxAliases, " aliases, the maximum"),
      {{"limit", absl::StrCat(kMaxAliases)}});
}

absl::Status ArtifactRemoved(absl::string_view digest) {
  return MakeError(Code::kUnavailable, reason::kArtifactRemoved, "",
                   absl::StrCat("artifact ", digest,
                                " was removed from the store while it was written; try again"),
                   {{"digest", std::string(digest)}}, /*retry_delay_ms=*/1000);
}

bool IsArtifactRemoved(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  return detail.has_value() && detail->reason == reason::kArtifactRemoved;
}

}  // namespace phimap
