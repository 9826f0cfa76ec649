// Part that a build keeps of its stream.
#ifndef PHIMAP_CORE_MAPPING_SAMPLE_STREAM_SAMPLE_H_
#define PHIMAP_CORE_MAPPING_SAMPLE_STREAM_SAMPLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/landmark/moments.h"
#include "core/landmark/reservoir.h"
#include "core/linalg/matrix.h"
#include "core/mapping/sample/gram_sample.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/examples.h"

namespace phimap {

// Most bytes of strings that a sample holds.
inline constexpr int64_t kMaxSampledStringBytes = int64_t{256} << 20;

// Bytes of memory that a sample of at most so many strings may grow to.
int64_t StringSampleBytes(int64_t strings);

// Columns of the sample of a stream that begins with such a block: 1 for strings, of which each is
// known by its slot.
inline int64_t SampleColumns(const ExamplesView& first) {
  return IsString(first.kind()) ? 1 : first.columns();
}

// A uniform sample and per-column moments, in memory that does
// not grow with the stream. Its state depends on spec and examples, not on how they were cut into
// blocks; dense and sparse forms of the same rows differ in nothing but memory. Not thread-safe.
class StreamSample {
 public:
  // REQUIRES: spec.Validate() is OK and 1 <= columns <= kMaxColumns; of strings 1.
  StreamSample(const BuildSpec& spec, int64_t columns, ExampleKind kind = ExampleKind::kDense);
  ~StreamSample();
  StreamSample(StreamSample&&) noexcept;
  StreamSample& operator=(StreamSample&&) noexcept;

  // Takes a block. INVALID_ARGUMENT for another kind than the first (EXAMPLE_KINDS_MIXED), another
  // number of columns, or an error of CheckExamples: places are named within the block, such as
  // "examples.dense.rows[i].columns[j]", and the whole block is refused. RESOURCE_EXHAUSTED
  // (SAMPLE_TOO_LARGE) when the strings that are kept take more than kMaxSampledStringBytes.
  absl::Status Add(const ExamplesView& examples);
  ExampleKind kind() const;
  int64_t rows() const;
  int64_t columns() const;
  // Bytes of memory that the sample may grow to, with the copies of the pool that gamma=median
  // takes.
  int64_t memory_bound_bytes() const;

  // Moments of all rows but the given landmarks; and a uniform sample of these rows.
  const ColumnMoments& moments() const;
  const Reservoir& reservoir() const;
  // Maximum number of the reservoir's rows that landmarks are drawn from.
  int64_t pool_rows() const;
  // With kernel precomputed(), in the place of all these; null otherwise.
  const GramSample* gram() const;
  // For strings: the kept ones, each at the place that its number names.
  std::shared_ptr<const std::vector<std::string>> strings() const;
  // The first rows of the stream, under policy `given`: given.rows() × columns().
  ConstMatrixView<double> given() const;
  // Rows of normal numbers with each column's mean and deviation: like the stream's, but generated.
  Matrix<float> MadeUpRows(int64_t count, uint64_t seed) const;

 private:
  struct State;
  absl::Status CheckBlock(const ExamplesView& examples) const;
  absl::Status AddStrings(const StringsView& strings);
  std::unique_ptr<State> state_;
};

// Whether a stream of `rows` rows is enough for the spec: FAILED_PRECONDITION (STREAM_EMPTY,
// ROWS_TOO_FEW with both numbers) if it is not.
absl::Status CheckStreamRows(const BuildSpec& spec, int64_t rows);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SAMPLE_STREAM_SAMPLE_H_
