#include "server/rpc/service_path.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/status/check.h"
#include "core/status/error.h"
#include "server/kernel/kernel_examples.h"
#include "server/kernel/kernel_queue.h"

namespace phimap {
namespace {

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
void GoOn(const std::shared_ptr<RowMapping>& mapping, absl::StatusOr<KernelRows> values) {
  const RowsToMap& wanted = mapping->wanted;
  if (!values.ok()) {
    return mapping->done(WithFieldPrefix(values.status(), wanted.field), wanted.rows);
  }
  const auto rows = std::make_shared<ServiceRows>(*std::move(values), *mapping->version.kernel());
  mapping->done = [rows, done = std::move(mapping->done)](const absl::Status& status,
                                                          const ExamplesView& seen) {
    done(RefusedLate(status), seen);
  };
  SubmitRows(mapping,
             {.rows = rows->rows(),
              .field = "",
              .self_values = rows->rows().columns > mapping->version.engine().input_columns(),
              .check = [rows] { return rows->Fill(); }});
}

}  // namespace

void MapByService(const std::shared_ptr<RowMapping>& mapping) {
  const ExamplesView& examples = mapping->wanted.rows;
  if (const absl::Status good = CheckExamples(examples); !good.ok()) {
    return mapping->done(WithFieldPrefix(good, mapping->wanted.field), examples);
  }
  KernelQueue& kernel = *mapping->version.kernel();
  kernel.Submit(
      {.count = examples.rows(),
       .bytes = AppendedBytes(examples, kernel.kind()),
       .append = [mapping, as = kernel.kind()](
                     v1::Examples& to) { AppendExamples(mapping->wanted.rows, as, to); },
       .deadline = mapping->wanted.deadline,
       .cancelled = mapping->scope.cancelled(),
       .done = [mapping](absl::StatusOr<KernelRows> values) { GoOn(mapping, std::move(values)); }});
}

}  // namespace phimap
