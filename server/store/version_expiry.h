// The expiry of versions: the columns for it and the statements on them, within one session.
//
// A version with a ttl expires a ttl after its last use. A version does not expire while an alias
// points at it or would point at it after a rollback. Once no alias keeps it any longer, its ttl
// begins anew.
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

  // Makes the version expire `ttl` after its last use, which is `now`, or never if `ttl` is
  // infinite.
  absl::Status SetTtl(absl::string_view mapping, int64_t number, absl::Duration ttl,
                      absl::Time now);
  // Records a use at `now`. No-op for a version that has no ttl or does not exist.
  absl::Status Use(absl::string_view mapping, int64_t number, absl::Time now);
  // Records a use of all versions at `now`.
  absl::Status UseAll(absl::Time now);
  // Returns the versions whose expiry a use at `now` would postpone by a tenth of their ttl or
  // more, by name and number.
  absl::StatusOr<std::vector<VersionName>> WorthRecording(absl::Time now);
  // Whether any version has expired.
  absl::StatusOr<bool> AnyExpired(absl::Time now);
  // Returns at most `limit` expired versions. Within a write transaction, no other process can
  // postpone their expiry before the transaction ends.
  absl::StatusOr<std::vector<VersionName>> TakeExpired(absl::Time now, int64_t limit);

 private:
  SqlSession& session_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_VERSION_EXPIRY_H_
