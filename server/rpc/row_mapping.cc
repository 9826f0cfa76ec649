#include "server/rpc/row_mapping.h"

#include <utility>

#include "absl/status/statusor.h"
#include "core/status/status_macros.h"

namespace phimap {

void SubmitRows(const std::shared_ptr<RowMapping>& mapping, EngineRows rows) {
  const VersionHandle& version = mapping->version;
  const RowsToMap& wanted = mapping->wanted;
  TransformWork work;
  work.engine = version.pinned_engine();
  work.rows = rows.rows;
  work.field = rows.field;
  work.deadline = wanted.deadline;
  work.cancelled = mapping->scope.cancelled();
  work.received =
      wanted.received == absl::InfinitePast() ? mapping->scope.started() : wanted.received;
  work.version_rows = version.version_rows();
  // Without K(x, x) nothing is known of ρ, which drift is told by where there is one.
  if (rows.self_values) {
    work.drift = version.drift();
    work.residual = version.residual();
  }
  work.prepare = [mapping, check = std::move(rows.check)]() -> absl::StatusOr<char*> {
    PHIMAP_RETURN_IF_ERROR(check());
    return mapping->allocate();
  };
  work.done = [mapping, seen = rows.rows](const absl::Status& status) {
    // Until it is sent and the call deleted.
    if (status.ok()) mapping->answer = mapping->environment.answers.Hold(mapping->bytes);
    mapping->done(status, seen);
  };
  mapping->environment.scheduler.Submit(std::move(work));
}

}  // namespace phimap
