#include "server/rpc/service_path.h"

#include <utility>

#include "core/status/error.h"
#include "server/kernel/kernel_examples.h"
#include "server/kernel/kernel_queue.h"
#include "server/rpc/service_rows.h"

namespace phimap {
namespace {

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
