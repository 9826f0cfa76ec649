#include "server/rpc/transform_path.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "server/rpc/row_mapping.h"
#include "server/rpc/service_path.h"

namespace phimap {
namespace {

int64_t RowBytes(const Engine& engine) {
  return engine.output_columns() * FloatTypeBytes(engine.serving_type());
}

absl::Status CheckFits(const VersionHandle& version, const RowsToMap& to_map,
                       int64_t max_message_bytes) {
  const int64_t rows = to_map.rows.rows();
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

bool HasSelfValues(const VersionHandle& version, const ExamplesView& rows) {
  const Residual* const residual = version.residual();
  // A service is asked for K(x, x) too.
  return residual == nullptr || !residual->is_external() || version.kernel() != nullptr ||
         rows.columns() == version.engine().input_columns() + 1;
}

bool IsLackOfRoom(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kResourceExhausted) return false;
  const std::optional<ErrorDetail> detail = DetailOf(status);
  return detail && (detail->reason == "QUEUE_FULL" || detail->reason == "ANSWERS_FULL");
}

void MapRows(const TransformEnvironment& environment, const VersionHandle& version,
             const RowsToMap& rows, const RpcScope& scope, AnswerBudget::Held& answer,
             std::function<char*()> allocate, MappedCallback done) {
  PHIMAP_CHECK(version.CheckTakes(rows.rows).ok());
  const absl::Status fits = CheckFits(version, rows, environment.limits.max_message_bytes);
  if (!fits.ok()) return done(WithFieldPrefix(fits, rows.field), rows.rows);
  const int64_t bytes =
      FeatureBytes(version, rows.rows.rows()) + rows.rows.rows() * rows.extra_row_bytes;
  const absl::Status room = environment.answers.CheckRoom(bytes);
  if (!room.ok()) return done(room, rows.rows);
  const auto mapping = std::make_shared<RowMapping>(RowMapping{
      environment, version, rows, scope, answer, bytes, std::move(allocate), std::move(done)});
  if (version.kernel() != nullptr) return MapByService(mapping);
  SubmitRows(mapping, {.rows = rows.rows,
                       .field = rows.field,
                       .self_values = HasSelfValues(version, rows.rows),
                       .check = [view = rows.rows] { return CheckExamples(view); }});
}

}  // namespace phimap
