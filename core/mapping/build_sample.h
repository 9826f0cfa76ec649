// The sample of a stream that has ended, divided by what its rows are for.
#ifndef PHIMAP_CORE_MAPPING_BUILD_SAMPLE_H_
#define PHIMAP_CORE_MAPPING_BUILD_SAMPLE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/landmark/split.h"
#include "core/linalg/matrix.h"
#include "core/mapping/build_spec.h"
#include "core/mapping/stream_sample.h"
#include "core/plan/plan.h"

namespace phimap {

struct BuildSample {
  StreamSample stream;
  // Slots of the reservoir; of a Gram matrix the held-out rows of the stream alone.
  SampleSplit split;
  // As they came; of a Gram matrix none.
  Matrix<double> held_out;
  // What rows go through before any kernel sees them: standardisation, centring, or nothing.
  InputStage input;

  // Strings stand in every matrix by their places in the stream's sample.
  bool of_strings() const { return IsString(stream.kind()); }
  // A shift would make zeros other numbers, and sparse rows dense: they are scaled only.
  bool shifts() const { return stream.kind() == ExampleKind::kDense; }
  // Rows that landmarks were drawn from.
  int64_t pool_rows() const;
  int64_t held_out_rows() const { return static_cast<int64_t>(split.held_out.size()); }
  // The first rows of the pool, whose order is random: a uniform sample of it, as they came.
  Matrix<double> FirstOfPool(int64_t at_most) const;
};

// Errors: CheckStreamRows, BuildSpec::CheckExamples, GramSample::CheckComplete,
// ColumnMoments::CheckFinite and, standardized, CheckScales.
absl::Status CheckStream(const BuildSpec& spec, const StreamSample& stream);

// REQUIRES: CheckStream is OK.
BuildSample Divide(const BuildSpec& spec, StreamSample stream);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_SAMPLE_H_
