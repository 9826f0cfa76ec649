#include "server/mapping/mapping_to_proto.h"

#include <cmath>

#include "core/head/head.h"
#include "core/head/report.h"
#include "core/kernel/leaf_kernel.h"
#include "core/kernel/parameter.h"
#include "core/landmark/landmark_policy.h"
#include "core/learn/learner_type.h"
#include "core/mapping/spec/family.h"
#include "core/mapping/spec/mapping_parameters.h"
#include "core/plan/rows.h"
#include "proto/artifact/artifact_description.h"
#include "server/rpc/status_trailers.h"
#include "server/transform/row_messages.h"

namespace phimap {
namespace {

void DurationToProto(absl::Duration duration, google::protobuf::Duration* out) {
  const int64_t seconds = absl::ToInt64Seconds(duration);
  out->set_seconds(seconds);
  out->set_nanos(static_cast<int>(absl::ToInt64Nanoseconds(duration - absl::Seconds(seconds))));
}

FloatType ServingTypeOf(const VersionRecord& record) {
  return record.serving_type == FloatTypeName(FloatType::kFloat64) ? FloatType::kFloat64
                                                                   : FloatType::kFloat32;
}

v1::BuildJob::State StateToProto(BuildState state) {
  switch (state) {
    case BuildState::kReceiving:
      return v1::BuildJob::STATE_RECEIVING;
    case BuildState::kQueued:
      return v1::BuildJob::STATE_QUEUED;
    case BuildState::kComputing:
      return v1::BuildJob::STATE_COMPUTING;
    case BuildState::kPublishing:
      return v1::BuildJob::STATE_PUBLISHING;
    case BuildState::kDone:
      return v1::BuildJob::STATE_DONE;
    case BuildState::kFailed:
      return v1::BuildJob::STATE_FAILED;
    case BuildState::kCancelled:
      return v1::BuildJob::STATE_CANCELLED;
  }
  return v1::BuildJob::STATE_UNSPECIFIED;
}

}  // namespace

void TimeToProto(absl::Time time, google::protobuf::Timestamp* out) {
  const int64_t seconds = absl::ToUnixSeconds(time);
  out->set_seconds(seconds);
  out->set_nanos(static_cast<int>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
}

void RecordToProto(const VersionRecord& record, v1::Version* out) {
  RefToProto(record, out->mutable_ref());
  out->set_artifact_size_bytes(record.artifact_size_bytes);
  TimeToProto(record.create_time, out->mutable_create_time());
  out->set_input_columns(static_cast<int>(record.input_columns));
  out->set_output_columns(static_cast<int>(record.output_columns));
  out->set_serving_type(ServingTypeOf(record) == FloatType::kFloat64 ? v1::SERVING_TYPE_FLOAT64
                                                                     : v1::SERVING_TYPE_FLOAT32);
  out->set_spec_text(record.spec_text);
  out->set_kernel_text(record.kernel_text);
  out->set_imported(record.imported);
  if (record.ttl != absl::InfiniteDuration()) DurationToProto(record.ttl, out->mutable_ttl());
  if (record.expire_time != absl::InfiniteFuture()) {
    TimeToProto(record.expire_time, out->mutable_expire_time());
  }
}

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
  // A report of a newer release may be unreadable here; the head answers all the same.
  if (const absl::StatusOr<TrainingReport> report = DecodeReport(head.report); report.ok()) {
    ReportToProto(*report, out->mutable_report());
  }
}

}  // namespace

void VersionToProto(const CertifiedVersion& version, v1::Version* out) {
  RecordToProto(version.record, out);
  out->set_standardize(version.standardize);
  out->set_seed(version.seed);
  out->mutable_column_names()->Assign(version.column_names.begin(), version.column_names.end());
  if (version.head != nullptr) HeadToProto(*version.head, out->mutable_head());
  const VersionRecord& record = version.record;
  CertificateToProto(version.certificate,
                     {record.input_columns, record.output_columns, ServingTypeOf(record),
                      !IsServiceKernel(record.kernel_text)},
                     out->mutable_certificate());
}

void AliasToProto(const AliasRecord& alias, v1::Alias* out) {
  out->set_name(alias.name);
  out->set_version(alias.version);
  out->set_digest(alias.digest);
  out->set_previous_version(alias.previous_version);
  out->set_etag(alias.etag);
  TimeToProto(alias.move_time, out->mutable_move_time());
}

void MappingToProto(const MappingRecord& record, v1::Mapping* out) {
  out->set_name(record.name);
  out->set_newest_version(record.newest_version);
  out->set_version_count(record.version_count);
  TimeToProto(record.create_time, out->mutable_create_time());
  for (const AliasRecord& alias : record.aliases) AliasToProto(alias, out->add_aliases());
}

void BuildToProto(const BuildSnapshot& snapshot, v1::BuildJob* out) {
  out->set_name(snapshot.id.mapping);
  out->set_build_id(snapshot.id.build_id);
  out->set_state(StateToProto(snapshot.state));
  out->set_rows_received(snapshot.rows_received);
  out->set_phase(snapshot.phase);
  out->set_fraction(snapshot.fraction);
  out->set_seconds_left(snapshot.seconds_left);
  if (snapshot.version != nullptr) RefToProto(snapshot.version->record, out->mutable_version());
  if (!snapshot.error.ok()) {
    out->set_error_code(static_cast<int>(snapshot.error.code()));
    out->set_error_message(MessageForClient(snapshot.error));
  }
}

namespace {

std::string NameOf(const std::vector<std::string>& names, int64_t column) {
  return column < static_cast<int64_t>(names.size()) ? names[static_cast<size_t>(column)] : "";
}

// The core and the API use the same numbers.
static_assert(static_cast<int>(ScoreKind::kColumn) == v1::AliasDrift::Score::KIND_COLUMN);

void ScoresToProto(const AliasDrift& drift, const std::vector<std::string>& names,
                   v1::AliasDrift* out) {
  for (const auto& [function, evidence] : drift.scores) {
    v1::AliasDrift::Score& score = *out->add_scores();
    score.set_kind(static_cast<v1::AliasDrift::Score::Kind>(function.kind));
    score.set_index(function.index);
    if (function.kind == ScoreKind::kColumn) score.set_name(NameOf(names, function.index));
    score.set_location(evidence.location);
    score.set_spread(evidence.spread);
  }
}

}  // namespace

void DriftToProto(const AliasDrift& drift, const std::vector<std::string>& column_names,
                  v1::AliasDrift* out) {
  out->set_alias(drift.alias);
  out->set_version(drift.version);
  out->set_not_tested(drift.not_tested);
  if (!drift.not_tested.empty()) return;
  out->set_false_alarms(drift.promise.false_alarms);
  out->set_promised_rows(static_cast<int64_t>(drift.promise.rows));
  out->set_rows(drift.rows);
  out->set_rows_not_finite(drift.rows_not_finite);
  out->set_evidence(drift.evidence);
  if (drift.crossed.has_value()) TimeToProto(*drift.crossed, out->mutable_crossed_time());
  ScoresToProto(drift, column_names, out);
  out->set_counted_rows(drift.counted_rows);
  if (drift.shift.has_value()) {
    out->set_shift(std::sqrt(drift.shift->squared_mmd));
    out->set_shift_scale(drift.shift->scale);
  }
  out->set_beyond_range_share(drift.share_beyond);
  out->set_beyond_range_expected(drift.expected_beyond);
  for (const ColumnBeyond& column : drift.columns) {
    v1::AliasDrift::Column& beyond = *out->add_columns_beyond_range();
    beyond.set_index(static_cast<int32_t>(column.column));
    beyond.set_name(NameOf(column_names, column.column));
    beyond.set_share(column.share);
  }
}

namespace {

v1::ParameterInfo::Type TypeToProto(ParameterType type) {
  switch (type) {
    case ParameterType::kInteger:
      return v1::ParameterInfo::TYPE_INTEGER;
    case ParameterType::kNumber:
      return v1::ParameterInfo::TYPE_NUMBER;
    case ParameterType::kWord:
      return v1::ParameterInfo::TYPE_WORD;
    case ParameterType::kBoolean:
      return v1::ParameterInfo::TYPE_BOOLEAN;
    case ParameterType::kNumbers:
      return v1::ParameterInfo::TYPE_NUMBERS;
    case ParameterType::kMatrix:
      return v1::ParameterInfo::TYPE_MATRIX;
    case ParameterType::kColumns:
      return v1::ParameterInfo::TYPE_COLUMNS;
    case ParameterType::kText:
      return v1::ParameterInfo::TYPE_TEXT;
  }
  return v1::ParameterInfo::TYPE_UNSPECIFIED;
}

void ParameterToProto(const Parameter& parameter, v1::ParameterInfo* out) {
  out->set_name(std::string(parameter.name));
  out->set_type(TypeToProto(parameter.type));
  out->set_required(parameter.absent == Parameter::Absent::kRequired);
  if (parameter.absent == Parameter::Absent::kDefault) {
    out->set_default_value(std::string(parameter.default_text));
  }
  if (parameter.least > -Parameter::kInfinity) out->set_least(parameter.least);
  if (parameter.largest < Parameter::kInfinity) out->set_largest(parameter.largest);
  out->set_above_least(parameter.above_least);
  for (const absl::string_view word : parameter.words) out->add_words(std::string(word));
  out->set_unit(std::string(parameter.unit));
  out->set_line(std::string(parameter.line));
  out->set_expected(parameter.Expected());
}

void FamilyToProto(const Family& family, v1::Capability* out) {
  out->set_name(std::string(family.name));
  out->set_line(std::string(family.line));
  for (const absl::string_view name : family.parameters) {
    ParameterToProto(DescribeParameter(family, name), out->add_parameters());
  }
  out->set_kernels(std::string(family.kernels));
  for (const LeafKernel* leaf : LeafKernels()) {
    if (family.takes_leaf == nullptr || family.takes_leaf(*leaf)) {
      out->add_leaf_kernels(std::string(leaf->name));
    }
  }
  out->set_default_kernel(std::string(family.default_kernel));
  out->set_theorem(std::string(family.theorem_line));
}

void KernelToProto(const KernelCapability& kernel, v1::Capability* out) {
  out->set_name(std::string(kernel.name));
  out->set_line(std::string(kernel.line));
  out->set_formula(std::string(kernel.formula));
  for (const Parameter& parameter : kernel.parameters) {
    ParameterToProto(parameter, out->add_parameters());
  }
}

void PolicyToProto(const LandmarkPolicy& policy, v1::Capability* out) {
  out->set_name(std::string(policy.name));
  out->set_line(std::string(policy.line));
  out->set_theorem(std::string(policy.theorem));
  out->set_takes_strings(policy.no_strings.empty());
  out->set_takes_remote_kernels(policy.no_remote.empty());
}

void LearnerToProto(const LearnerType& learner, v1::Capability* out) {
  out->set_name(std::string(learner.name));
  out->set_line(std::string(learner.line));
  for (const Parameter& parameter : learner.parameters) {
    ParameterToProto(parameter, out->add_parameters());
  }
  out->set_learns_from_kernel(learner.learns_from_kernel);
  out->set_is_default(&learner == &DefaultLearnerType());
}

}  // namespace

void CapabilitiesToProto(v1::ListCapabilitiesResponse* out) {
  for (const Family* family : Families()) FamilyToProto(*family, out->add_families());
  for (const KernelCapability& kernel : KernelCapabilities()) {
    KernelToProto(kernel, out->add_kernels());
  }
  for (const LandmarkPolicy* policy : LandmarkPolicies()) {
    PolicyToProto(*policy, out->add_policies());
  }
  for (const LearnerType* learner : LearnerTypes()) LearnerToProto(*learner, out->add_learners());
}

}  // namespace phimap
