#include "server/learning/evaluation_job.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/remote_kernel.h"
#include "core/learn/learner_spec.h"
#include "core/plan/artifact.h"
#include "core/plan/plan.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/build/build_error.h"

namespace phimap {
namespace {

// Bytes per label: its number, the sorted copy, and the spare capacity of growing vectors.
constexpr int64_t kLabelBytes = 24;
// Number of copies of an artifact in memory for a learner on the kernel: the bytes, the plan, and
// the packed plan.
constexpr int64_t kCopies = 3;
// Number of rows whose scores are in memory at one time, besides the scores in kernel blocks.
constexpr double kScoredRows = 1024;

EvaluationRows::Keep KeepFor(const LearnerSpec& learner) {
  return learner.is_kernel_learner() ? EvaluationRows::Keep::kRows
                                     : EvaluationRows::Keep::kFeatures;
}

// Maps rows that have already passed a version's input stage to the version's features.
class StagedRowMap final : public RowMap {
 public:
  static absl::StatusOr<std::shared_ptr<const RowMap>> Of(Plan plan) {
    const int64_t columns = plan.input.output_columns();
    plan.input = {.columns = columns, .shift = {}, .scale = {}, .projection = {}};
    PHIMAP_ASSIGN_OR_RETURN(std::unique_ptr<const Engine> engine, Engine::Load(plan));
    return std::make_shared<const StagedRowMap>(std::move(engine));
  }
  explicit StagedRowMap(std::unique_ptr<const Engine> engine) : engine_(std::move(engine)) {}

  int64_t input_columns() const override { return engine_->input_columns(); }
  int64_t output_columns() const override { return engine_->output_columns(); }
  absl::Status Map(ConstMatrixView<double> rows, MatrixView<double> out) const override {
    return engine_->serving_type() == FloatType::kFloat32 ? MapAs<float>(rows, out)
                                                          : MapAs<double>(rows, out);
  }

 private:
  template <typename T>
  absl::Status MapAs(ConstMatrixView<double> rows, MatrixView<double> out) const {
    EngineScratch scratch;
    Matrix<T> features = Matrix<T>::Uninit(1, engine_->output_columns());
    for (int64_t i = 0; i < rows.rows(); ++i) {
      const RowsView row{reinterpret_cast<const char*>(rows.row(i)), FloatType::kFloat64, 1,
                         rows.cols()};
      TransformPart part{row, features.data(), absl::OkStatus()};
      engine_->Transform(absl::MakeSpan(&part, 1), scratch);
      PHIMAP_RETURN_IF_ERROR(part.status);
      std::copy_n(features.data(), features.size(), out.row(i));
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<const Engine> engine_;
};

// Replaces `rows` by the output of the version's input stage, and returns the kernel and, if the
// learner needs it, the map from the replaced rows to features.
absl::StatusOr<KernelInput> StageRows(Store& store, const VersionHandle& version,
                                      const LearnerSpec& learner, Matrix<double>& rows) {
  PHIMAP_ASSIGN_OR_RETURN(const std::string bytes, store.ReadArtifact(version.record().digest));
  PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(bytes));
  rows = AfterInputStage(artifact.plan.input, rows.view());
  KernelInput input;
  PHIMAP_ASSIGN_OR_RETURN(input.kernel, KernelExpression::Parse(artifact.provenance.kernel_text));
  if (learner.needs_row_map()) {
    PHIMAP_ASSIGN_OR_RETURN(input.map, StagedRowMap::Of(std::move(artifact.plan)));
  }
  return input;
}

// Extends the field of an error from the path in the learner or the evaluation to the path in the
// request.
absl::Status InRequest(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return status;
  if (detail->field == "labels") return WithFieldPrefix(status, "examples.");
  if (detail->field == "folds") return WithFieldPrefix(status, "spec.");
  return status;
}

}  // namespace

absl::Status InLearner(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return status;
  if (!detail->field.empty()) return WithFieldPrefix(status, "spec.");
  return MakeError(status.code(), detail->reason, "spec.learner", status.message(),
                   detail->metadata, detail->retry_delay_ms);
}

absl::Status CheckLearner(const LearnerSpec& learner) {
  if (learner.is_kernel_learner()) return absl::OkStatus();
  return MakeLearner(learner).status();
}

absl::Status CheckVersion(const LearnerSpec& learner, const VersionHandle& version) {
  const VersionRecord& record = version.record();
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<RemoteKernel> remote,
                          RemoteKernel::Parse(record.kernel_text));
  if (!remote.has_value()) {
    if (!learner.is_kernel_learner() || !version.engine().takes_strings()) return absl::OkStatus();
    return MakeError(
        absl::StatusCode::kFailedPrecondition, reason::kKernelNotAvailable, "learner",
        absl::StrCat(learner.ToText(),
                     " compares rows by the version's kernel, but the kernel of version ",
                     record.number, " of \"", record.mapping,
                     "\" compares strings; choose a learner on features"));
  }
  if (!learner.is_kernel_learner()) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition, reason::kKernelNotAvailable, "learner",
      absl::StrCat(
          learner.ToText(), " compares rows by the version's kernel, but the kernel of version ",
          record.number, " of \"", record.mapping, "\" is remote",
          remote->source == RemoteKernel::Source::kService ? ": a service computes it"
                                                           : ": its values come with the rows",
          "; choose a learner on features"));
}

int64_t LearningBytes(const LearnerSpec& learner, const LearningSize& size) {
  const auto n = static_cast<double>(size.rows);
  const auto p = static_cast<double>(size.columns);
  const auto d = static_cast<double>(size.features);
  const auto classes = static_cast<double>(size.classes);
  double bytes = learner.type->training_bytes(
      learner.values, {.rows = n, .columns = p, .features = d, .classes = classes});
  // The model, the confusion matrix, the scores, and the order and margins of the rows.
  bytes += 32 * p * classes + 8 * classes * classes + 8 * kScoredRows * classes + 80 * n;
  if (learner.is_kernel_learner()) bytes += 8 * (n * p + kScoredRows * (n + d));
  constexpr double kMost = 9e18;
  return bytes >= kMost ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(bytes);
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
  if (const absl::Status classes = labels_.CheckClasses(); !classes.ok()) return InRequest(classes);
  LabelIndex::Classes classes = labels_.Take();
  EvaluationOutcome outcome;
  outcome.classes = std::move(classes.names);
  LabeledRows labeled;
  labeled.rows = rows_.TakeRows();
  labeled.labels = std::move(classes.numbers);
  labeled.class_count = static_cast<int32_t>(outcome.classes.size());
  labeled.self_kernel = rows_.TakeSelfKernel();
  labeled.rounding = rows_.TakeRounding();
  KernelInput input;
  if (spec_.learner.is_kernel_learner()) {
    PHIMAP_ASSIGN_OR_RETURN(input, StageRows(store, version_, spec_.learner, labeled.rows));
  }
  absl::StatusOr<std::unique_ptr<const Learner>> learner = MakeLearner(spec_.learner, input);
  if (!learner.ok()) return learner.status();
  absl::StatusOr<Evaluation> evaluation = Evaluate(**learner, labeled, spec_.options, monitor);
  if (!evaluation.ok()) return InRequest(evaluation.status());
  outcome.evaluation = *std::move(evaluation);
  return outcome;
}

}  // namespace phimap
