// Records as texts, to keep them outside the tables that they came from: one line of fields that
// are separated by tabs.
#ifndef PHIMAP_SERVER_STORE_RECORD_TEXT_H_
#define PHIMAP_SERVER_STORE_RECORD_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/records.h"

namespace phimap {

// Every field of a record that is stored. DATA_LOSS (DATABASE_DAMAGED) for a text that the same
// function did not write.
std::string TextOf(const AliasRecord& alias);
std::string TextOf(const VersionRecord& version);
absl::StatusOr<AliasRecord> AliasFrom(absl::string_view text);
absl::StatusOr<VersionRecord> VersionFrom(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_RECORD_TEXT_H_
