// The sample of a complete stream, divided into pool, held-out rows and deciding rows.
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
  // Slots of the reservoir. For a Gram matrix, only `held_out` is set, to positions in the stream.
  SampleSplit split;
  // Held-out rows before the input stage; empty for a Gram matrix.
  Matrix<double> held_out;
  // Deciding rows before the input stage; empty if the number of landmarks is given.
  Matrix<double> deciding;
  // Input stage: standardisation, centring, or nothing.
  InputStage input;

  // Whether examples are strings. Then each row is an index into StreamSample::strings().
  bool of_strings() const { return IsString(stream.kind()); }
  // Whether the input stage may shift rows. A shift would make sparse rows dense, so sparse rows
  // are only scaled.
  bool shifts() const { return stream.kind() == ExampleKind::kDense; }
  // Number of rows that landmarks are drawn from.
  int64_t pool_rows() const;
  int64_t held_out_rows() const { return static_cast<int64_t>(split.held_out.size()); }
  // Returns the first held-out rows before the input stage. They are in random order, so the first
  // are a uniform sample of them.
  Matrix<double> FirstHeldOut(int64_t at_most) const;
};

// Checks that a mapping can be built from the stream. Errors: those of CheckStreamRows,
// BuildSpec::CheckExamples, GramSample::CheckComplete, ColumnMoments::CheckFinite and, if
// standardized, ColumnMoments::CheckScales.
absl::Status CheckStream(const BuildSpec& spec, const StreamSample& stream);

// Divides the sample at random (StreamId::kSplit). REQUIRES: CheckStream is OK.
BuildSample Divide(const BuildSpec& spec, StreamSample stream);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SAMPLE_BUILD_SAMPLE_H_
