#include "server/mapping/mapping_to_proto.h"

#include <cmath>

#include "core/plan/rows.h"
#include "proto/artifact/artifact_description.h"
#include "proto/artifact/head_description.h"
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
  out->set_made_by(record.made_by);
}

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
  out->set_moved_by(alias.moved_by);
}

void MappingToProto(const MappingRecord& record, v1::Mapping* out) {
  out->set_name(record.name);
  out->set_newest_version(record.newest_version);
  out->set_version_count(record.version_count);
  TimeToProto(record.create_time, out->mutable_create_time());
  for (const AliasRecord& alias : record.aliases) AliasToProto(alias, out->add_aliases());
}

void AuditEntryToProto(const AuditEntry& entry, v1::AuditEntry* out) {
  out->set_number(entry.number);
  TimeToProto(entry.time, out->mutable_time());
  out->set_method(entry.method);
  out->set_principal(entry.principal);
  out->set_peer(entry.peer);
  out->set_request_id(entry.request_id);
  out->set_mapping(entry.mapping);
  out->set_alias(entry.alias);
  out->set_build_id(entry.build_id);
  out->set_previous_version(entry.previous_version);
  out->set_previous_digest(entry.previous_digest);
  out->set_version(entry.version);
  out->set_digest(entry.digest);
  out->set_outcome(entry.outcome);
  out->set_reason(entry.reason);
  out->set_detail(entry.detail);
}

void BuildToProto(const BuildSnapshot& snapshot, v1::BuildJob* out) {
  out->set_owner(snapshot.owner);
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

}  // namespace phimap
