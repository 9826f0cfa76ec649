#include "server/learning/evaluation_job.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "proto/calls/evaluation.h"
#include "proto/error/request_errors.h"
#include "server/build/build_error.h"

namespace phimap {
namespace {

// Bytes per label: its number, the sorted copy, and the spare capacity of growing vectors.
constexpr int64_t kLabelBytes = 24;
// Number of copies of an artifact in memory for a learner on the kernel: the bytes, the plan, and
// the packed plan.
constexpr int64_t kCopies = 3;

}  // namespace

absl::Status CheckVersion(const LearnerSpec& learner, const VersionHandle& version) {
  const VersionRecord& record = version.record();
  return CheckHasKernelFor(learner, record.kernel_text, version.engine().takes_strings(),
                           absl::StrCat("version ", record.number, " of \"", record.mapping, "\""));
}

EvaluationJob::EvaluationJob(VersionHandle version, EvaluationSpec spec, MemoryBudget& memory)
    : version_(std::move(version)),
      spec_(std::move(spec)),
      memory_(memory),
      rows_(version_.engine(), version_.residual(), KeepFor(spec_.learner)) {}

int64_t EvaluationJob::KeptBytes(int64_t rows) const {
  return rows * (rows_.row_bytes() + kLabelBytes);
}

int64_t EvaluationJob::LearningNeeds(int64_t rows) const {
  const int64_t learner = LearningBytes(
      spec_.learner,
      {rows, rows_.columns(), version_.engine().output_columns(), labels_.class_count()});
  const int64_t artifact =
      spec_.learner.is_kernel_learner() ? kCopies * version_.record().artifact_size_bytes : 0;
  return std::min(learner, std::numeric_limits<int64_t>::max() - artifact) + artifact;
}

void EvaluationJob::Drop() {
  rows_.Drop();
  labels_ = LabelIndex();
  reserved_ = MemoryBudget::Reservation();
}

absl::Status EvaluationJob::Add(const ExamplesView& rows,
                                absl::FunctionRef<absl::string_view(int64_t)> label,
                                EvaluationRows::Checkpoint checkpoint) {
  absl::Status taken =
      CatchOutOfMemory<absl::Status>([&] { return TakeRows(rows, label, checkpoint); });
  if (!taken.ok()) Drop();
  return taken;
}

absl::Status EvaluationJob::TakeRows(const ExamplesView& rows,
                                     absl::FunctionRef<absl::string_view(int64_t)> label,
                                     EvaluationRows::Checkpoint checkpoint) {
  const int64_t before = rows_.rows();
  const int64_t after = before + rows.rows();
  const int64_t kept = KeptBytes(after);
  PHIMAP_RETURN_IF_ERROR(memory_.CheckEverFits(
      std::min(LearningNeeds(after), std::numeric_limits<int64_t>::max() - kept) + kept));
  PHIMAP_RETURN_IF_ERROR(memory_.Grow(reserved_, kept - KeptBytes(before)));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    PHIMAP_RETURN_IF_ERROR(labels_.Add(label(i)));
  }
  return InStream(WithFieldPrefix(rows_.Add(rows, checkpoint),
                                  absl::StrCat("examples.", rows.kind_name(), ".")),
                  before);
}

absl::StatusOr<EvaluationOutcome> EvaluationJob::Run(Store& store, EvaluationMonitor monitor) {
  absl::StatusOr<EvaluationOutcome> outcome =
      CatchOutOfMemory<absl::StatusOr<EvaluationOutcome>>([&] { return Learn(store, monitor); });
  // Frees the rows, which are large and no longer needed.
  Drop();
  return outcome;
}

absl::StatusOr<EvaluationOutcome> EvaluationJob::Learn(Store& store, EvaluationMonitor monitor) {
  PHIMAP_RETURN_IF_ERROR(memory_.Grow(reserved_, LearningNeeds(rows_.rows())));
  absl::StatusOr<EvaluationOutcome> outcome = RunEvaluation(
      spec_, rows_, labels_, [&] { return store.ReadArtifact(version_.record().digest); }, monitor);
  if (!outcome.ok()) return InEvaluateRequest(outcome.status());
  return outcome;
}

}  // namespace phimap
