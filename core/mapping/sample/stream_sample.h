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

// A uniform sample of a stream of examples, and moments of each column. The memory does not grow
// with the stream.
//
// The state depends only on the spec and the examples: neither the division of the stream into
// blocks nor the choice of a dense or sparse form changes it. (The two forms take different amounts
// of memory.) Not thread-safe.
class StreamSample {
 public:
  // REQUIRES: spec.Validate() is OK and 1 <= columns <= kMaxColumns; columns is 1 for strings.
  StreamSample(const BuildSpec& spec, int64_t columns, ExampleKind kind = ExampleKind::kDense);
  ~StreamSample();
  StreamSample(StreamSample&&) noexcept;
  StreamSample& operator=(StreamSample&&) noexcept;

  // Adds a block. If there is an error, rejects the whole block.
  //
  // Errors: INVALID_ARGUMENT if the block differs from the first block in its kind of examples
  // (EXAMPLE_KINDS_MIXED) or its number of columns (COLUMNS_MISMATCH), or if CheckExamples fails.
  // RESOURCE_EXHAUSTED (SAMPLE_TOO_LARGE) if the kept strings take more than
  // kMaxSampledStringBytes. For a Gram matrix, also the errors of GramSample::Add. The field of an
  // error is a path within the block, such as "examples.dense.rows[i].columns[j]".
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
  // Sample of the Gram matrix with kernel precomputed(), used instead of moments and reservoir.
  // Null for other kernels.
  const GramSample* gram() const;
  // The kept strings. A row of the sample holds an index into this vector.
  std::shared_ptr<const std::vector<std::string>> strings() const;
  // Returns the landmarks of policy `given`, a matrix with columns() columns. They are the first
  // rows of the stream, as far as these have arrived. With any other policy, the matrix has no
  // rows.
  ConstMatrixView<double> given() const;
  // Returns generated rows: normal numbers with the mean and deviation that each column has in the
  // stream.
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
