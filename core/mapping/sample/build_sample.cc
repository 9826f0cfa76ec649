#include "core/mapping/sample/build_sample.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/status/status_macros.h"

namespace phimap {
namespace {

InputStage InputOf(const BuildSpec& spec, const BuildSample& sample) {
  const ColumnMoments& moments = sample.stream.moments();
  InputStage input{.columns = sample.stream.columns(), .shift = {}, .scale = {}, .projection = {}};
  // Centred columns keep more digits in float32. The shift does not change a kernel that depends
  // only on x − y.
  const bool centre = sample.shifts() && (spec.standardize || spec.mapping.kind->sees_differences);
  for (int64_t j = 0; j < input.columns; ++j) {
    if (centre) input.shift.push_back(moments.mean(j));
    if (spec.standardize) input.scale.push_back(moments.StandardScale(j));
  }
  return input;
}

}  // namespace

int64_t BuildSample::pool_rows() const {
  return stream.gram() != nullptr ? stream.pool_rows() : static_cast<int64_t>(split.pool.size());
}

Matrix<double> BuildSample::FirstHeldOut(int64_t at_most) const {
  return Converted<double, double>(held_out.view().Rows(0, std::min(at_most, held_out.rows())));
}

absl::Status CheckStream(const BuildSpec& spec, const StreamSample& stream) {
  PHIMAP_RETURN_IF_ERROR(CheckStreamRows(spec, stream.rows()));
  PHIMAP_RETURN_IF_ERROR(spec.CheckExamples(stream.kind(), stream.columns()));
  if (stream.gram() != nullptr) return stream.gram()->CheckComplete();
  if (IsString(stream.kind())) return absl::OkStatus();
  PHIMAP_RETURN_IF_ERROR(stream.moments().CheckFinite());
  return spec.standardize ? stream.moments().CheckScales() : absl::OkStatus();
}

BuildSample Divide(const BuildSpec& spec, StreamSample stream) {
  BuildSample sample{
      .stream = std::move(stream), .split = {}, .held_out = {}, .deciding = {}, .input = {}};
  if (sample.stream.gram() != nullptr) {
    sample.input.columns = sample.stream.columns();
    sample.split.held_out = sample.stream.gram()->rows_of(RemotePart::kHeldOut);
    return sample;
  }
  const Reservoir& reservoir = sample.stream.reservoir();
  // The landmarks of policy `given` are not in the reservoir.
  sample.split = SplitSample(reservoir.rows_seen(), reservoir.size(),
                             spec.mapping.least_landmarks() - spec.mapping.given_rows(),
                             sample.stream.pool_rows(), spec.seed);
  std::vector<int64_t>& held_out = sample.split.held_out;
  // The rows that are left out are not put into the pool: the landmarks do not depend on how many
  // rows are measured.
  if (sample.held_out_rows() > spec.MostHeldOutRows()) {
    held_out.resize(static_cast<size_t>(spec.MostHeldOutRows()));
  }
  sample.held_out = reservoir.Gather(held_out);
  if (spec.mapping.count_rule != nullptr) {
    SetDecidingApart(sample.split);
    sample.deciding = reservoir.Gather(sample.split.deciding);
  }
  sample.input = InputOf(spec, sample);
  return sample;
}

}  // namespace phimap
