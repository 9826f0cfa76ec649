#include "server/mapping/drift_to_proto.h"

#include <cmath>

#include "server/mapping/version_to_proto.h"

namespace phimap {
namespace {

const char* KindOfScore(ScoreKind kind) {
  switch (kind) {
    case ScoreKind::kResidualShare:
      return "residual";
    case ScoreKind::kSquaredNorm:
      return "norm";
    case ScoreKind::kDirection:
      return "direction";
    case ScoreKind::kColumn:
      return "column";
  }
  return "";
}

std::string NameOf(const std::vector<std::string>& names, int64_t column) {
  return column < static_cast<int64_t>(names.size()) ? names[static_cast<size_t>(column)] : "";
}

void ScoresToProto(const AliasDrift& drift, const std::vector<std::string>& names,
                   v1::AliasDrift* out) {
  for (const auto& [function, evidence] : drift.scores) {
    v1::AliasDrift::Score& score = *out->add_scores();
    score.set_kind(KindOfScore(function.kind));
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
