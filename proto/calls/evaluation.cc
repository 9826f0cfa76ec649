#include "proto/calls/evaluation.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

void Copy(const std::vector<double>& from, google::protobuf::RepeatedField<double>* to) {
  to->Add(from.begin(), from.end());
}

void ClassesToProto(const EvaluationOutcome& outcome, v1::Evaluation* out) {
  const Evaluation& evaluation = outcome.evaluation;
  for (size_t i = 0; i < outcome.classes.size(); ++i) {
    const Evaluation::Class& from = evaluation.classes[i];
    v1::Evaluation::Class& to = *out->add_classes();
    to.set_label(outcome.classes[i]);
    to.set_rows(from.rows);
    to.set_tested_rows(from.tested_rows);
    to.set_predicted(from.predicted);
    to.set_correct(from.correct);
  }
  for (const Evaluation::Confusion& from : evaluation.confusion) {
    v1::Evaluation::Confusion& to = *out->add_confusion();
    to.set_actual(from.actual);
    to.set_predicted(from.predicted);
    to.set_count(from.count);
  }
}

void FoldsToProto(const Evaluation& evaluation, v1::Evaluation* out) {
  int64_t without = 0;
  for (const Evaluation::Fold& from : evaluation.folds) {
    v1::Evaluation::Fold& to = *out->add_folds();
    to.set_trained_rows(from.trained_rows);
    to.set_tested_rows(from.tested_rows);
    to.set_errors(from.errors);
    to.set_unseen_classes(from.unseen_classes);
    to.set_summary(from.summary);
    if (from.unseen_classes > 0) ++without;
  }
  if (without == 0) return;
  out->add_warnings(absl::StrCat(
      "in ", without, " of ", evaluation.folds.size(),
      " splits, a class has no rows to learn from; its tested rows in these splits count as "
      "errors"));
}

}  // namespace

void EvaluationToProto(const EvaluationSpec& spec, const EvaluationOutcome& outcome,
                       v1::Evaluation* out) {
  const Evaluation& evaluation = outcome.evaluation;
  out->set_learner(spec.learner.ToText());
  out->set_seed(spec.options.seed);
  if (spec.options.folds == 0) out->set_held_out(spec.options.held_out);
  out->set_rows(evaluation.rows);
  out->set_tested_rows(evaluation.tested_rows);
  out->set_errors(evaluation.errors);
  out->set_error(evaluation.error);
  out->set_error_standard_error(evaluation.error_standard_error);
  out->set_error_low(evaluation.error_interval.low);
  out->set_error_high(evaluation.error_interval.high);
  out->set_error_premise(evaluation.error_premise);
  ClassesToProto(outcome, out);
  FoldsToProto(evaluation, out);
  Copy(evaluation.margins, out->mutable_margin_quantiles());
  Copy(evaluation.unnormalised_margins, out->mutable_unnormalised_margin_quantiles());
  Copy(evaluation.kernel_margins, out->mutable_kernel_margin_quantiles());
  out->set_intercept_scale(evaluation.intercept_scale);
  for (const CertifiedMargin& from : evaluation.certified) {
    v1::Evaluation::CertifiedMargin& to = *out->add_certified_margins();
    to.set_alpha(from.alpha);
    to.set_rows_margin(from.rows_margin);
    if (from.margin.has_value()) to.set_margin(*from.margin);
  }
  out->set_confidence(spec.options.confidence);
}

absl::Status InEvaluateRequest(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return status;
  if (detail->field == "labels") return WithFieldPrefix(status, "examples.");
  if (detail->field == "folds") return WithFieldPrefix(status, "spec.");
  return status;
}

}  // namespace phimap
