// When versions expire: the rows of it and the statements on them, within one session.
//
// A version with a ttl expires a ttl after its last use. A version does not expire while an alias
// points at it or would be rolled back to it; when the alias lets go of it, its ttl begins anew.
#ifndef PHIMAP_SERVER_STORE_VERSION_EXPIRY_H_
#define PHIMAP_SERVER_STORE_VERSION_EXPIRY_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/store/records.h"
#include "server/store/sql_database.h"

namespace phimap {

// Cheap to make; must not outlive its session. Errors: those of the database.
class VersionExpiry {
 public:
  explicit VersionExpiry(SqlSession& session) : session_(session) {}

  // From now on the version expires `ttl` after its last use, which is `now`; infinite: never.
  absl::Status SetTtl(absl::string_view mapping, int64_t number, absl::Duration ttl,
                      absl::Time now);
  // A use at `now`. Nothing happens to a version without a ttl, or one that is not there.
  absl::Status Use(absl::string_view mapping, int64_t number, absl::Time now);
  // All versions are used at `now`.
  absl::Status UseAll(absl::Time now);
  // The versions whose expiry a use at `now` would postpone by a tenth of their ttl or more, by
  // name and number.
  absl::StatusOr<std::vector<VersionName>> WorthRecording(absl::Time now);
  // Whether any version has expired.
  absl::StatusOr<bool> AnyExpired(absl::Time now);
  // Some that have expired, at most `limit`. Within a write transaction, no other process postpones
  // their expiry before it ends.
  absl::StatusOr<std::vector<VersionName>> TakeExpired(absl::Time now, int64_t limit);

 private:
  SqlSession& session_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_VERSION_EXPIRY_H_
