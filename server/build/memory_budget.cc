#include "server/build/memory_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/landmark/split.h"
#include "core/status/error.h"

namespace phimap {
namespace {

constexpr int64_t kRetryDelayMs = 5000;

}  // namespace

// Every mapping has a matrix of numbers in float64 and in the artifact, three times over there
// (plan, bytes, packed); landmarks and orthonormal rows a Gram matrix and its factor; and what is
// measured on held-out rows: the rows and their features, served and exact, with a copy of each
// while it is converted.
int64_t ComputeBytes(const MappingSpec& spec, int64_t columns) {
  const int64_t features = spec.dimensions > 0 ? spec.dimensions : spec.landmarks;
  const int64_t measured = 3 * 8 * kMaxHeldOutRows * (features + columns);
  if (spec.has_landmarks()) {
    const int64_t d = spec.landmarks;
    const int64_t artifact = 8 * d * (columns + std::max(d / 2, spec.dimensions));
    return 16 * d * d + 3 * artifact + measured;
  }
  const int64_t d = spec.dimensions;
  const bool orthonormal = spec.projection == ProjectionKind::kOrthonormal;
  return 8 * d * columns * (orthonormal ? 5 : 4) + (orthonormal ? 8 * d * d : 0) + measured;
}

MemoryBudget::Reservation::~Reservation() {
  if (budget_ != nullptr) budget_->Return(bytes_);
}

absl::StatusOr<MemoryBudget::Reservation> MemoryBudget::Reserve(int64_t bytes) {
  MutexLock lock(&mutex_);
  if (bytes > max_bytes_ - reserved_bytes_) {
    return MakeError(
        absl::StatusCode::kResourceExhausted, "BUILD_MEMORY", "",
        absl::StrCat("this may need ", bytes, " bytes of memory; other builds and ",
                     "imports hold ", reserved_bytes_, " of the limit of ", max_bytes_),
        {{"needed", absl::StrCat(bytes)}, {"limit", absl::StrCat(max_bytes_)}},
        bytes <= max_bytes_ ? kRetryDelayMs : 0);
  }
  reserved_bytes_ += bytes;
  gauge_->Set(static_cast<double>(reserved_bytes_));
  return Reservation(this, bytes);
}

void MemoryBudget::Return(int64_t bytes) {
  MutexLock lock(&mutex_);
  reserved_bytes_ -= bytes;
  gauge_->Set(static_cast<double>(reserved_bytes_));
}

}  // namespace phimap
