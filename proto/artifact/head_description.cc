#include "proto/artifact/head_description.h"

#include "absl/status/statusor.h"
#include "core/head/report.h"

namespace phimap {
namespace {

void EstimateToProto(const Estimate& estimate, v1::TrainingReport::Estimate* out) {
  out->set_value(estimate.value);
  out->set_low(estimate.low);
  out->set_high(estimate.high);
}

void ClassesToProto(const ClassFigures& figures, v1::TrainingReport::Classes* out) {
  out->set_rows(figures.rows);
  out->set_errors(figures.errors);
  EstimateToProto(figures.error, out->mutable_error());
  for (const ClassFigures::Class& from : figures.classes) {
    v1::TrainingReport::Classes::Class& to = *out->add_classes();
    to.set_rows(from.rows);
    to.set_predicted(from.predicted);
    to.set_correct(from.correct);
  }
  for (const ClassFigures::Confusion& from : figures.confusion) {
    v1::TrainingReport::Classes::Confusion& to = *out->add_confusion();
    to.set_actual(from.actual);
    to.set_predicted(from.predicted);
    to.set_count(from.count);
  }
  out->set_balanced_accuracy(figures.balanced_accuracy);
  if (figures.auc.has_value()) out->set_auc(*figures.auc);
  for (const ClassFigures::RocPoint& from : figures.roc) {
    v1::TrainingReport::Classes::RocPoint& to = *out->add_roc();
    to.set_threshold(from.threshold);
    to.set_false_positives(from.false_positives);
    to.set_true_positives(from.true_positives);
  }
  if (figures.log_loss.has_value()) out->set_log_loss(*figures.log_loss);
  if (figures.brier.has_value()) out->set_brier(*figures.brier);
  if (figures.calibration_error.has_value()) {
    out->set_calibration_error(*figures.calibration_error);
  }
  for (const ClassFigures::ReliabilityBin& from : figures.reliability) {
    v1::TrainingReport::Classes::ReliabilityBin& to = *out->add_reliability();
    to.set_bin(from.bin);
    to.set_rows(from.rows);
    to.set_correct(from.correct);
    to.set_mean_confidence(from.mean_confidence);
  }
  out->mutable_margin_quantiles()->Add(figures.margins.begin(), figures.margins.end());
}

void NumbersToProto(const NumberFigures& figures, v1::TrainingReport::Numbers* out) {
  out->set_rows(figures.rows);
  EstimateToProto(figures.rmse, out->mutable_rmse());
  EstimateToProto(figures.mae, out->mutable_mae());
  if (figures.r_squared.has_value()) {
    EstimateToProto(*figures.r_squared, out->mutable_r_squared());
  }
  out->mutable_residual_quantiles()->Add(figures.residuals.begin(), figures.residuals.end());
  if (figures.standardised_error.has_value()) {
    out->set_standardised_error(*figures.standardised_error);
  }
}

void ReportToProto(const TrainingReport& report, v1::TrainingReport* out) {
  v1::TrainingReport::Parts& parts = *out->mutable_parts();
  parts.set_train(report.parts[Part::kTrain]);
  parts.set_validate(report.parts[Part::kValidate]);
  parts.set_calibrate_link(report.parts[Part::kCalibrateLink]);
  parts.set_calibrate_sets(report.parts[Part::kCalibrateSets]);
  parts.set_test(report.parts[Part::kTest]);
  parts.set_unused(report.parts.unused);
  out->set_confidence(report.confidence);
  out->set_premise(report.premise);
  if (report.classes.has_value()) ClassesToProto(*report.classes, out->mutable_classes());
  if (report.numbers.has_value()) NumbersToProto(*report.numbers, out->mutable_numbers());
  for (const Coverage& from : report.coverage) {
    v1::TrainingReport::Coverage& to = *out->add_coverage();
    to.set_confidence(from.confidence);
    to.set_rows(from.rows);
    to.set_covered(from.covered);
    to.set_mean_size(from.mean_size);
  }
  for (const Baseline& from : report.baselines) {
    v1::TrainingReport::Baseline& to = *out->add_baselines();
    to.set_name(from.name);
    to.set_error(from.error);
  }
  if (report.choice.has_value()) {
    v1::TrainingReport::Choice& to = *out->mutable_choice();
    to.set_parameter(report.choice->parameter);
    to.set_loss(report.choice->loss);
    to.set_chosen(report.choice->chosen);
    for (const ParameterChoice::Candidate& from : report.choice->candidates) {
      to.add_candidates()->set_value(from.value);
      to.mutable_candidates()->rbegin()->set_loss(from.loss);
    }
  }
  if (report.folding.has_value()) {
    v1::TrainingReport::Folding& to = *out->mutable_folding();
    to.set_rows(report.folding->rows);
    to.set_largest_difference(report.folding->largest_difference);
    to.set_changed(report.folding->changed);
  }
  out->mutable_notes()->Add(report.notes.begin(), report.notes.end());
  for (const TuningTrial& from : report.trials) {
    v1::TrainingReport::Trial& to = *out->add_trials();
    to.set_spec(from.spec);
    to.set_kernel(from.kernel);
    to.set_standardize(from.standardize);
    to.set_learner(from.learner);
    to.set_rows(from.rows);
    if (from.loss.has_value()) to.set_loss(*from.loss);
    if (from.error.has_value()) to.set_error(*from.error);
    if (from.microseconds.has_value()) to.set_microseconds(*from.microseconds);
  }
}

}  // namespace

void HeadToProto(const HeadFacts& head, v1::Head* out) {
  out->set_task(head.task == HeadTask::kClasses ? v1::HEAD_TASK_CLASSES : v1::HEAD_TASK_NUMBERS);
  out->set_learner(head.learner_text);
  out->mutable_class_names()->Assign(head.classes.begin(), head.classes.end());
  out->set_features_digest(head.features_digest);
  out->set_folded(head.folded);
  out->set_calibration_rows(head.calibration_rows);
  out->set_class_conditional(head.class_conditional);
  out->set_has_deviations(head.has_variance);
  out->set_has_probabilities(head.has_probabilities);
  if (const absl::StatusOr<TrainingReport> report = DecodeReport(head.report); report.ok()) {
    ReportToProto(*report, out->mutable_report());
  }
}

}  // namespace phimap
