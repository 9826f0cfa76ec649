#include "core/learn/evaluation_run.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/engine/engine.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/remote_kernel.h"
#include "core/learn/learner_type.h"
#include "core/plan/artifact.h"
#include "core/plan/plan.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Number of rows whose scores are in memory at one time, besides the scores in kernel blocks.
constexpr double kScoredRows = 1024;

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

// Replaces `rows` by the output of the artifact's input stage, and returns the kernel and, if the
// learner needs it, the map from the replaced rows to features.
absl::StatusOr<KernelInput> StageRows(absl::string_view bytes, const LearnerSpec& learner,
                                      Matrix<double>& rows) {
  PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(bytes));
  rows = AfterInputStage(artifact.plan.input, rows.view());
  KernelInput input;
  PHIMAP_ASSIGN_OR_RETURN(input.kernel, KernelExpression::Parse(artifact.provenance.kernel_text));
  if (learner.needs_row_map()) {
    PHIMAP_ASSIGN_OR_RETURN(input.map, StagedRowMap::Of(std::move(artifact.plan)));
  }
  return input;
}

}  // namespace

absl::Status CheckLearner(const LearnerSpec& learner) {
  if (learner.is_kernel_learner()) return absl::OkStatus();
  return MakeLearner(learner).status();
}

absl::Status CheckHasKernelFor(const LearnerSpec& learner, absl::string_view kernel_text,
                               bool takes_strings, absl::string_view owner) {
  if (!learner.is_kernel_learner()) return absl::OkStatus();
  PHIMAP_ASSIGN_OR_RETURN(const std::optional<RemoteKernel> remote,
                          RemoteKernel::Parse(kernel_text));
  if (!remote.has_value() && !takes_strings) return absl::OkStatus();
  const absl::string_view why = !remote.has_value() ? " compares strings"
                                : remote->source == RemoteKernel::Source::kService
                                    ? " is remote: a service computes it"
                                    : " is remote: its values come with the rows";
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kKernelNotAvailable, "learner",
                   absl::StrCat(learner.ToText(), " compares rows by a kernel, but that of ", owner,
                                why, "; choose a learner on features"));
}

EvaluationRows::Keep KeepFor(const LearnerSpec& learner) {
  return learner.is_kernel_learner() ? EvaluationRows::Keep::kRows
                                     : EvaluationRows::Keep::kFeatures;
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

absl::StatusOr<EvaluationOutcome> RunEvaluation(
    const EvaluationSpec& spec, EvaluationRows& rows, LabelIndex& labels,
    absl::FunctionRef<absl::StatusOr<std::string>()> artifact, EvaluationMonitor monitor) {
  PHIMAP_RETURN_IF_ERROR(labels.CheckClasses());
  LabelIndex::Classes classes = labels.Take();
  EvaluationOutcome outcome;
  outcome.classes = std::move(classes.names);
  LabeledRows labeled;
  labeled.rows = rows.TakeRows();
  labeled.labels = std::move(classes.numbers);
  labeled.class_count = static_cast<int32_t>(outcome.classes.size());
  labeled.self_kernel = rows.TakeSelfKernel();
  labeled.rounding = rows.TakeRounding();
  KernelInput input;
  if (spec.learner.is_kernel_learner()) {
    PHIMAP_ASSIGN_OR_RETURN(const std::string bytes, artifact());
    PHIMAP_ASSIGN_OR_RETURN(input, StageRows(bytes, spec.learner, labeled.rows));
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<const Learner> learner,
                          MakeLearner(spec.learner, input));
  PHIMAP_ASSIGN_OR_RETURN(outcome.evaluation, Evaluate(*learner, labeled, spec.options, monitor));
  return outcome;
}

}  // namespace phimap
