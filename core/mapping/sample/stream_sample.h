// The part of a stream that a build keeps.
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

// Maximum total length of a sample's strings.
inline constexpr int64_t kMaxSampledStringBytes = int64_t{256} << 20;

// Returns the maximum memory of a sample of at most this many strings, in bytes.
int64_t StringSampleBytes(int64_t strings);

// Returns the number of columns of the sample, given the first block of the stream. It is 1 for
// strings, since their rows hold only the index of the string.
inline int64_t SampleColumns(const ExamplesView& first) {
  return IsString(first.kind()) ? 1 : first.columns();
}

// A uniform sample and per-column moments, in memory that does not grow with the stream. The state
// depends only on the spec and the examples, not on how the stream was cut into blocks. Dense and
// sparse forms of the same rows differ only in memory. Not thread-safe.
class StreamSample {
 public:
  // REQUIRES: spec.Validate() is OK and 1 <= columns <= kMaxColumns; columns is 1 for strings.
  StreamSample(const BuildSpec& spec, int64_t columns, ExampleKind kind = ExampleKind::kDense);
  ~StreamSample();
  StreamSample(StreamSample&&) noexcept;
  StreamSample& operator=(StreamSample&&) noexcept;

  // Adds a block. Returns INVALID_ARGUMENT, and rejects the whole block, if it differs from the
  // first block in kind (EXAMPLE_KINDS_MIXED) or columns (COLUMNS_MISMATCH), or if CheckExamples
  // fails; fields name places within the block, such as "examples.dense.rows[i].columns[j]".
  // Returns RESOURCE_EXHAUSTED (SAMPLE_TOO_LARGE) if the kept strings take more than
  // kMaxSampledStringBytes. For a Gram matrix, also returns the errors of GramSample::Add.
  absl::Status Add(const ExamplesView& examples);
  ExampleKind kind() const;
  int64_t rows() const;
  int64_t columns() const;
  // Maximum memory of the sample in bytes, including the copies of the pool that gamma=median or
  // the policy makes.
  int64_t memory_bound_bytes() const;

  // Moments and a uniform sample of all rows except the given landmarks.
  const ColumnMoments& moments() const;
  const Reservoir& reservoir() const;
  // Maximum number of rows that landmarks are drawn from.
  int64_t pool_rows() const;
  // Sample of the Gram matrix, which replaces moments and reservoir with kernel precomputed(). Null
  // for other kernels.
  const GramSample* gram() const;
  // The kept strings. A row of the sample holds an index into this vector.
  std::shared_ptr<const std::vector<std::string>> strings() const;
  // The first rows of the stream, under policy `given`: given.rows() × columns().
  ConstMatrixView<double> given() const;
  // Returns generated rows: normal numbers with each column's mean and deviation in the stream.
  Matrix<float> MadeUpRows(int64_t count, uint64_t seed) const;

 private:
  struct State;
  absl::Status CheckBlock(const ExamplesView& examples) const;
  absl::Status AddStrings(const StringsView& strings);
  std::unique_ptr<State> state_;
};

// Checks that the stream has enough rows for the spec. FAILED_PRECONDITION: STREAM_EMPTY, or
// ROWS_TOO_FEW with the expected and actual number.
absl::Status CheckStreamRows(const BuildSpec& spec, int64_t rows);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SAMPLE_STREAM_SAMPLE_H_
