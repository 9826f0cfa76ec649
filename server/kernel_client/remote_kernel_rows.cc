#include "server/kernel_client/remote_kernel_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/status/check.h"

namespace phimap {

RemoteKernelRows::RemoteKernelRows(KernelRows values, const KernelQueue& queue)
    : values_(std::move(values)), queue_(queue), rows_(values_.values()) {
  if (values_.diagonal() == nullptr) return;
  rows_.type = FloatType::kFloat64;
  ++rows_.columns;
  numbers_.reset(new double[static_cast<size_t>(rows_.rows * rows_.columns)]);
  rows_.data = reinterpret_cast<const char*>(numbers_.get());
}

absl::Status RemoteKernelRows::Fill() {
  const RowsView values = values_.values();
  for (int64_t i = 0; numbers_ != nullptr && i < values.rows; ++i) {
    double* const row = numbers_.get() + i * rows_.columns;
    values.CopyRow(i, row);
    std::memcpy(row + values.columns, values_.diagonal() + i * static_cast<int64_t>(sizeof(double)),
                sizeof(double));
  }
  return CheckFinite(rows_).ok() ? absl::OkStatus() : Fault();
}

absl::Status RemoteKernelRows::Fault() const {
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

}  // namespace phimap
