#include "server/rpc/version_to_proto.h"

#include <string>

#include "server/rpc/version_ref_to_proto.h"

namespace phimap {
namespace {

void TimeToProto(absl::Time time, google::protobuf::Timestamp* out) {
  const int64_t seconds = absl::ToUnixSeconds(time);
  out->set_seconds(seconds);
  out->set_nanos(static_cast<int>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
}

void ErrorToProto(const MeasuredError& error, v1::Certificate::Error* out) {
  out->set_mean(error.mean);
  out->set_max(error.max);
  out->set_scale(error.scale);
  out->set_count(error.count);
}

v1::BuildJob::State StateToProto(BuildState state) {
  switch (state) {
    case BuildState::kReceiving:
      return v1::BuildJob::RECEIVING;
    case BuildState::kQueued:
      return v1::BuildJob::QUEUED;
    case BuildState::kComputing:
      return v1::BuildJob::COMPUTING;
    case BuildState::kPublishing:
      return v1::BuildJob::PUBLISHING;
    case BuildState::kDone:
      return v1::BuildJob::DONE;
    case BuildState::kFailed:
      return v1::BuildJob::FAILED;
    case BuildState::kCancelled:
      return v1::BuildJob::CANCELLED;
  }
  return v1::BuildJob::STATE_UNSPECIFIED;
}

}  // namespace

void RecordToProto(const VersionRecord& record, v1::Version* out) {
  RefToProto(record, out->mutable_ref());
  out->set_artifact_size_bytes(record.artifact_size_bytes);
  TimeToProto(record.create_time, out->mutable_create_time());
  out->set_input_columns(static_cast<int>(record.input_columns));
  out->set_output_columns(static_cast<int>(record.output_columns));
  out->set_serving_type(record.serving_type == "float64" ? v1::SERVING_TYPE_FLOAT64
                                                         : v1::SERVING_TYPE_FLOAT32);
  out->set_mapping_text(record.mapping_text);
  out->set_kernel_text(record.kernel_text);
  out->set_imported(record.imported);
}

void CertificateToProto(const Certificate& certificate, v1::Certificate* out) {
  out->set_stream_rows(certificate.stream_rows);
  out->set_pool_rows(certificate.pool_rows);
  out->set_held_out_rows(certificate.held_out_rows);
  out->set_landmarks(certificate.landmarks);
  if (certificate.rank) out->set_rank(*certificate.rank);
  if (certificate.tolerance) out->set_tolerance(*certificate.tolerance);
  if (certificate.largest_residual) out->set_largest_residual(*certificate.largest_residual);
  if (certificate.trace_residual) out->set_trace_residual(*certificate.trace_residual);
  if (certificate.held_out_trace_residual) {
    out->set_held_out_trace_residual(*certificate.held_out_trace_residual);
  }
  if (certificate.kernel_error) {
    ErrorToProto(*certificate.kernel_error, out->mutable_kernel_error());
  }
  if (certificate.serving_error) {
    ErrorToProto(*certificate.serving_error, out->mutable_serving_error());
  }
  out->set_policy(certificate.policy);
  out->set_theorem(certificate.theorem);
  for (const std::string& warning : certificate.warnings) out->add_warnings(warning);
  out->mutable_pivots()->Add(certificate.pivots.begin(), certificate.pivots.end());
}

void SelfCheckToProto(const SelfCheck& check, const VersionRecord& record, v1::SelfCheck* out) {
  v1::DenseRows& rows = *out->mutable_rows();
  rows.set_rows(static_cast<int>(check.rows));
  rows.set_columns(static_cast<int>(record.input_columns));
  rows.set_float32_le(check.rows_float32_le);
  v1::DenseRows& features = *out->mutable_features();
  features.set_rows(static_cast<int>(check.rows));
  features.set_columns(static_cast<int>(record.output_columns));
  if (record.serving_type == "float64") {
    features.set_float64_le(check.features_le);
  } else {
    features.set_float32_le(check.features_le);
  }
}

void VersionToProto(const CertifiedVersion& version, v1::Version* out) {
  RecordToProto(version.record, out);
  CertificateToProto(version.certificate, out->mutable_certificate());
  if (version.certificate.self_check.has_value()) {
    SelfCheckToProto(*version.certificate.self_check, version.record,
                     out->mutable_certificate()->mutable_self_check());
  }
}

void AliasToProto(const AliasRecord& alias, v1::Alias* out) {
  out->set_name(alias.name);
  out->set_version(alias.version);
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
  out->set_mapping(snapshot.id.mapping);
  out->set_build_id(snapshot.id.build_id);
  out->set_state(StateToProto(snapshot.state));
  out->set_rows_received(snapshot.rows_received);
  out->set_phase(snapshot.phase);
  out->set_fraction(snapshot.fraction);
  if (snapshot.version != nullptr) RefToProto(snapshot.version->record, out->mutable_version());
  if (!snapshot.error.ok()) {
    out->set_error_code(static_cast<int>(snapshot.error.code()));
    out->set_error_message(std::string(snapshot.error.message()));
  }
}

}  // namespace phimap
