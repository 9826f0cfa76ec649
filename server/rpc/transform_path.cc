#include "server/rpc/transform_path.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

int64_t RowBytes(const Engine& engine) {
  return engine.output_columns() * FloatTypeBytes(engine.serving_type());
}

absl::Status CheckFits(const VersionHandle& version, const RowsToMap& to_map,
                       int64_t max_message_bytes) {
  const int64_t rows = to_map.rows.rows;
  const int64_t row_bytes = RowBytes(version.engine()) + to_map.extra_row_bytes;
  const int64_t fitting = (max_message_bytes - kEnvelopeBytes) / row_bytes;
  if (rows <= fitting) return absl::OkStatus();
  return MakeError(absl::StatusCode::kResourceExhausted, "MESSAGE_TOO_LARGE", "rows",
                   absl::StrCat("the features of ", rows, " rows take ", rows * row_bytes,
                                " bytes, over the message limit of ", max_message_bytes,
                                "; send at most ", fitting, " rows at once"),
                   {{"actual", absl::StrCat(rows)}, {"limit", absl::StrCat(fitting)}});
}

}  // namespace

int64_t FeatureBytes(const VersionHandle& version, int64_t rows) {
  return rows * RowBytes(version.engine());
}

bool HasSelfValues(const VersionHandle& version, const RowsView& rows) {
  const Residual* const residual = version.residual();
  return residual == nullptr || !residual->is_external() ||
         rows.columns == version.engine().input_columns() + 1;
}

bool IsLackOfRoom(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kResourceExhausted) return false;
  const std::optional<ErrorDetail> detail = DetailOf(status);
  return detail && (detail->reason == "QUEUE_FULL" || detail->reason == "ANSWERS_FULL");
}

void MapRows(const TransformEnvironment& environment, const VersionHandle& version,
             const RowsToMap& rows, const RpcScope& scope, AnswerBudget::Held& answer,
             std::function<char*()> allocate, std::function<void(const absl::Status&)> done) {
  PHIMAP_CHECK(version.TakesColumns(rows.rows.columns));
  const absl::Status fits = CheckFits(version, rows, environment.limits.max_message_bytes);
  if (!fits.ok()) return done(WithFieldPrefix(fits, rows.field));
  const int64_t bytes =
      FeatureBytes(version, rows.rows.rows) + rows.rows.rows * rows.extra_row_bytes;
  const absl::Status room = environment.answers.CheckRoom(bytes);
  if (!room.ok()) return done(room);
  TransformWork work;
  work.engine = version.pinned_engine();
  work.rows = rows.rows;
  work.field = rows.field;
  work.deadline = rows.deadline;
  work.cancelled = scope.cancelled();
  work.received = rows.received == absl::InfinitePast() ? scope.started() : rows.received;
  work.version_rows = version.version_rows();
  // Without K(x, x) nothing is known of ρ, which drift is told by where there is one.
  if (HasSelfValues(version, rows.rows)) {
    work.drift = version.drift();
    work.residual = version.residual();
  }
  work.prepare = [view = rows.rows, allocate = std::move(allocate)]() -> absl::StatusOr<char*> {
    PHIMAP_RETURN_IF_ERROR(CheckFinite(view));
    return allocate();
  };
  work.done = [&answers = environment.answers, &answer, bytes,
               done = std::move(done)](const absl::Status& status) {
    if (status.ok()) answer = answers.Hold(bytes);  // until it is sent and the call deleted
    done(status);
  };
  environment.scheduler.Submit(std::move(work));
}

}  // namespace phimap
