// The sample of a stream that has ended, divided by the uses of its rows.
#ifndef PHIMAP_CORE_MAPPING_SAMPLE_BUILD_SAMPLE_H_
#define PHIMAP_CORE_MAPPING_SAMPLE_BUILD_SAMPLE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/landmark/split.h"
#include "core/linalg/matrix.h"
#include "core/mapping/sample/stream_sample.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/plan.h"

namespace phimap {

struct BuildSample {
  StreamSample stream;
  // Slots of the reservoir; of a Gram matrix the held-out rows of the stream alone.
  SampleSplit split;
  // Rows before the input stage; empty for a Gram matrix.
  Matrix<double> held_out;
  // Rows that decide the number of landmarks, before the input stage; empty if the number is given.
  Matrix<double> deciding;
  // Stage before any kernel: standardisation, centring, or nothing.
  InputStage input;

  // Whether rows of every matrix are places of strings in the stream's sample.
  bool of_strings() const { return IsString(stream.kind()); }
  // Only dense rows are shifted: a shift would make sparse rows dense, so they are scaled only.
  bool shifts() const { return stream.kind() == ExampleKind::kDense; }
  // Rows that landmarks were drawn from.
  int64_t pool_rows() const;
  int64_t held_out_rows() const { return static_cast<int64_t>(split.held_out.size()); }
  // Returns the first rows of the pool before the input stage. The pool's order is random, so they
  // are a uniform sample.
  Matrix<double> FirstOfPool(int64_t at_most) const;
};

// Errors: CheckStreamRows, BuildSpec::CheckExamples, GramSample::CheckComplete,
// ColumnMoments::CheckFinite and, standardized, CheckScales.
absl::Status CheckStream(const BuildSpec& spec, const StreamSample& stream);

// REQUIRES: CheckStream is OK.
BuildSample Divide(const BuildSpec& spec, StreamSample stream);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SAMPLE_BUILD_SAMPLE_H_
