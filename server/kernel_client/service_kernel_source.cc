#include "server/kernel_client/service_kernel_source.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "core/thread/mutex.h"
#include "phimap/v1/examples.pb.h"

namespace phimap {
namespace {

constexpr auto kLook = std::chrono::milliseconds(50);

// Passes an answer from the thread that receives it to the thread that waits for it.
class Mailbox {
 public:
  void Put(KernelService::Answer answer) {
    MutexLock lock(&mutex_);
    answer_ = std::move(answer);
    put_.NotifyAll();
  }
  // Waits for the answer. If `alive` returns an error, cancels the call once, keeps waiting for its
  // end, and returns that error.
  KernelService::Answer Wait(KernelSource::Alive alive, const KernelService::Cancel& cancel) {
    while (!WaitAWhile()) {
      const absl::Status gone = alive();
      if (gone.ok()) continue;
      cancel();
      while (!WaitAWhile()) {
      }
      return gone;
    }
    MutexLock lock(&mutex_);
    return *std::move(answer_);
  }

 private:
  bool WaitAWhile() {
    MutexLock lock(&mutex_);
    const auto until = std::chrono::steady_clock::now() + kLook;
    while (!answer_.has_value() && put_.WaitUntil(&mutex_, until)) {
    }
    return answer_.has_value();
  }

  Mutex mutex_;
  CondVar put_;
  std::optional<KernelService::Answer> answer_ ABSL_GUARDED_BY(mutex_);
};

absl::Status CheckSize(const ExamplesView& examples, int64_t limit) {
  const int64_t bytes = AppendedBytes(examples, examples.kind());
  // Each side of a block may take half of a message.
  if (bytes <= limit / 2) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kKernelExamplesTooLarge, "landmarks",
      absl::StrCat(CountOf(examples.rows(), "example"), examples.rows() == 1 ? " takes " : " take ",
                   bytes, " bytes, but a kernel service receives at most ", limit / 2,
                   " at once; request fewer landmarks, or shorten the examples"),
      {{"limit", absl::StrCat(limit / 2)}, {"actual", absl::StrCat(bytes)}});
}

// Returns the address of a block's data. Different parts of the same memory have different
// addresses.
const void* PlaceOf(const ExamplesView& examples) {
  if (examples.strings() != nullptr) return examples.strings()->values;
  if (examples.sparse() != nullptr) return examples.sparse()->offsets;
  return examples.dense()->data;
}

}  // namespace

absl::Status ServiceKernelSource::Block(const ExamplesView& left, const ExamplesView& right,
                                        MatrixView<double> out, double* diagonal, Alive alive) {
  const int64_t limit = service_.max_message_bytes();
  PHIMAP_RETURN_IF_ERROR(CheckSize(left, limit));
  if (right_ == nullptr || right_place_ != PlaceOf(right) || right_rows_ != right.rows()) {
    PHIMAP_RETURN_IF_ERROR(CheckSize(right, limit));
    right_ = KernelExamples::Of(right);
    right_place_ = PlaceOf(right);
    right_rows_ = right.rows();
  }
  KernelBlockRequest request{.kernel = kernel_,
                             .left = std::make_shared<v1::Examples>(),
                             .left_count = left.rows(),
                             .right = right_,
                             .want_diagonal = diagonal != nullptr};
  AppendExamples(left, left.kind(), *request.left);
  const auto mailbox = std::make_shared<Mailbox>();
  const KernelService::Cancel cancel = service_.Compute(
      std::move(request),
      [mailbox](KernelService::Answer answer) { mailbox->Put(std::move(answer)); });
  PHIMAP_ASSIGN_OR_RETURN(const std::shared_ptr<const KernelBlockAnswer> answer,
                          mailbox->Wait(alive, cancel));
  return Take(*answer, out, diagonal);
}

absl::Status ServiceKernelSource::Take(const KernelBlockAnswer& answer, MatrixView<double> out,
                                       double* diagonal) {
  const RowsView values = answer.values();
  if (values.type == FloatType::kFloat32) unit_ = 0x1p-24;
  for (int64_t i = 0; i < values.rows; ++i) {
    double* const row = out.row(i);
    values.CopyRow(i, row);
    for (int64_t j = 0; j < values.columns; ++j) {
      if (!std::isfinite(row[j])) return service_.NotFinite(kernel_, i, j, row[j]);
    }
    if (diagonal == nullptr) continue;
    std::memcpy(&diagonal[i], answer.diagonal() + i * static_cast<int64_t>(sizeof(double)),
                sizeof(double));
    if (!std::isfinite(diagonal[i])) return service_.NotFinite(kernel_, i, i, diagonal[i]);
  }
  return absl::OkStatus();
}

}  // namespace phimap
