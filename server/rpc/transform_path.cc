#include "server/rpc/transform_path.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/kernel/kernel_examples.h"
#include "server/kernel/kernel_queue.h"

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
  // A service is asked for K(x, x) too.
  return residual == nullptr || !residual->is_external() || version.kernel() != nullptr ||
         rows.columns == version.engine().input_columns() + 1;
}

bool IsLackOfRoom(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kResourceExhausted) return false;
  const std::optional<ErrorDetail> detail = DetailOf(status);
  return detail && (detail->reason == "QUEUE_FULL" || detail->reason == "ANSWERS_FULL");
}

namespace {

// Rows as the engine sees them.
struct EngineRows {
  RowsView rows;
  // Where they are in the request; outlives the work.
  absl::string_view field;
  // Whether ρ can be told.
  bool self_values = true;
  // Their values, on the thread that computes.
  std::function<absl::Status()> check;
};

// What a request asks for, until its end.
struct Mapping {
  const TransformEnvironment& environment;
  VersionHandle version;
  RowsToMap wanted;
  const RpcScope& scope;
  AnswerBudget::Held& answer;
  // Of the answer.
  int64_t bytes = 0;
  std::function<char*()> allocate;
  MappedCallback done;
};

void SubmitWork(const std::shared_ptr<Mapping>& mapping, EngineRows engine_rows) {
  const VersionHandle& version = mapping->version;
  const RowsToMap& wanted = mapping->wanted;
  TransformWork work;
  work.engine = version.pinned_engine();
  work.rows = engine_rows.rows;
  work.field = engine_rows.field;
  work.deadline = wanted.deadline;
  work.cancelled = mapping->scope.cancelled();
  work.received =
      wanted.received == absl::InfinitePast() ? mapping->scope.started() : wanted.received;
  work.version_rows = version.version_rows();
  // Without K(x, x) nothing is known of ρ, which drift is told by where there is one.
  if (engine_rows.self_values) {
    work.drift = version.drift();
    work.residual = version.residual();
  }
  work.prepare = [mapping, check = std::move(engine_rows.check)]() -> absl::StatusOr<char*> {
    PHIMAP_RETURN_IF_ERROR(check());
    return mapping->allocate();
  };
  work.done = [mapping, rows = engine_rows.rows](const absl::Status& status) {
    // Until it is sent and the call deleted.
    if (status.ok()) mapping->answer = mapping->environment.answers.Hold(mapping->bytes);
    mapping->done(status, rows);
  };
  mapping->environment.scheduler.Submit(std::move(work));
}

// The engine's rows of an answer: its values, or with K(x, x) behind each row in float64.
class ServiceRows {
 public:
  ServiceRows(KernelRows values, const KernelQueue& queue)
      : values_(std::move(values)), queue_(queue), rows_(values_.values()) {
    if (values_.diagonal() == nullptr) return;
    rows_.type = FloatType::kFloat64;
    ++rows_.columns;
    numbers_.reset(new double[static_cast<size_t>(rows_.rows * rows_.columns)]);
    rows_.data = reinterpret_cast<const char*>(numbers_.get());
  }

  const RowsView& rows() const { return rows_; }

  // Fills in the rows; OK if all values are finite. On the thread that computes.
  absl::Status Fill() {
    const RowsView values = values_.values();
    for (int64_t i = 0; numbers_ != nullptr && i < values.rows; ++i) {
      double* const row = numbers_.get() + i * rows_.columns;
      values.CopyRow(i, row);
      std::memcpy(row + values.columns,
                  values_.diagonal() + i * static_cast<int64_t>(sizeof(double)), sizeof(double));
    }
    return CheckFinite(rows_).ok() ? absl::OkStatus() : Fault();
  }

 private:
  absl::Status Fault() const {
    std::vector<double> row(static_cast<size_t>(rows_.columns));
    for (int64_t i = 0; i < rows_.rows; ++i) {
      rows_.CopyRow(i, row.data());
      const auto bad =
          std::find_if(row.begin(), row.end(), [](double value) { return !std::isfinite(value); });
      if (bad != row.end()) {
        return queue_.service().NotFinite(queue_.kernel(), i, bad - row.begin(), *bad);
      }
    }
    PHIMAP_CHECK(false);
  }

  const KernelRows values_;
  const KernelQueue& queue_;  // of the version, which is pinned
  RowsView rows_;
  std::unique_ptr<double[]> numbers_;
};

// IsLackOfRoom speaks of what was refused at once: a request that has waited for its kernel values
// is told in other words.
absl::Status RefusedLate(const absl::Status& status) {
  if (!IsLackOfRoom(status)) return status;
  const ErrorDetail detail = *DetailOf(status);
  return MakeError(status.code(), "KERNEL_QUEUE_FULL", detail.field, status.message(),
                   detail.metadata, detail.retry_delay_ms);
}

// The kernel values are there, or an error is.
void GoOn(const std::shared_ptr<Mapping>& mapping, absl::StatusOr<KernelRows> values) {
  const RowsToMap& wanted = mapping->wanted;
  if (!values.ok()) {
    return mapping->done(WithFieldPrefix(values.status(), wanted.field), wanted.rows);
  }
  const auto rows = std::make_shared<ServiceRows>(*std::move(values), *mapping->version.kernel());
  mapping->done = [rows, done = std::move(mapping->done)](const absl::Status& status,
                                                          const RowsView& seen) {
    done(RefusedLate(status), seen);
  };
  SubmitWork(mapping,
             {.rows = rows->rows(),
              .field = "",
              .self_values = rows->rows().columns > mapping->version.engine().input_columns(),
              .check = [rows] { return rows->Fill(); }});
}

// Asks the version's service for kernel values, and goes on with them.
void MapByService(const std::shared_ptr<Mapping>& mapping) {
  const RowsView& examples = mapping->wanted.rows;
  if (const absl::Status finite = CheckFinite(examples); !finite.ok()) {
    return mapping->done(WithFieldPrefix(finite, mapping->wanted.field), examples);
  }
  mapping->version.kernel()->Submit(
      {.count = examples.rows,
       .bytes = examples.rows * examples.RowBytes(),
       .append = [mapping](v1::Examples& to) { AppendRows(mapping->wanted.rows, to); },
       .deadline = mapping->wanted.deadline,
       .cancelled = mapping->scope.cancelled(),
       .done = [mapping](absl::StatusOr<KernelRows> values) { GoOn(mapping, std::move(values)); }});
}

}  // namespace

void MapRows(const TransformEnvironment& environment, const VersionHandle& version,
             const RowsToMap& rows, const RpcScope& scope, AnswerBudget::Held& answer,
             std::function<char*()> allocate, MappedCallback done) {
  PHIMAP_CHECK(version.TakesColumns(rows.rows.columns));
  const absl::Status fits = CheckFits(version, rows, environment.limits.max_message_bytes);
  if (!fits.ok()) return done(WithFieldPrefix(fits, rows.field), rows.rows);
  const int64_t bytes =
      FeatureBytes(version, rows.rows.rows) + rows.rows.rows * rows.extra_row_bytes;
  const absl::Status room = environment.answers.CheckRoom(bytes);
  if (!room.ok()) return done(room, rows.rows);
  const auto mapping = std::make_shared<Mapping>(Mapping{
      environment, version, rows, scope, answer, bytes, std::move(allocate), std::move(done)});
  if (version.kernel() != nullptr) return MapByService(mapping);
  SubmitWork(mapping, {.rows = rows.rows,
                       .field = rows.field,
                       .self_values = HasSelfValues(version, rows.rows),
                       .check = [view = rows.rows] { return CheckFinite(view); }});
}

}  // namespace phimap
