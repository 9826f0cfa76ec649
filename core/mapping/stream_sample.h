// What a build keeps of its stream.
#ifndef PHIMAP_CORE_MAPPING_STREAM_SAMPLE_H_
#define PHIMAP_CORE_MAPPING_STREAM_SAMPLE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "core/landmark/moments.h"
#include "core/landmark/reservoir.h"
#include "core/linalg/matrix.h"
#include "core/mapping/build_spec.h"
#include "core/mapping/gram_sample.h"
#include "core/plan/rows.h"

namespace phimap {

// A uniform sample and per-column moments, in memory that does
// not grow with the stream. Its state depends on spec and rows, not on how the rows were cut into
// blocks. Not thread-safe.
class StreamSample {
 public:
  // REQUIRES: spec.Validate() is OK and 1 <= columns <= kMaxColumns.
  StreamSample(const BuildSpec& spec, int64_t columns);
  ~StreamSample();
  StreamSample(StreamSample&&) noexcept;
  StreamSample& operator=(StreamSample&&) noexcept;

  // Takes a block of rows. INVALID_ARGUMENT for another number of columns or a value that is not
  // finite: rows and columns are named within the block, as "examples.dense.rows[i].columns[j]",
  // and nothing of the block is taken.
  absl::Status Add(const RowsView& rows);
  int64_t rows() const;
  int64_t columns() const;
  // Bytes of memory that the sample may grow to, with the copies of the pool that gamma=median
  // takes.
  int64_t memory_bound_bytes() const;

  // Of all rows but those that are given; and a uniform sample of them.
  const ColumnMoments& moments() const;
  const Reservoir& reservoir() const;
  // Of the reservoir's rows, those that landmarks are drawn from, at most.
  int64_t pool_rows() const;
  // With kernel precomputed(), in the place of all these; null otherwise.
  const GramSample* gram() const;
  // The first rows of the stream, under policy `given`: given.rows() × columns().
  ConstMatrixView<double> given() const;
  // Rows of normal numbers with each column's mean and deviation: of the stream's kind, but
  // nobody's data.
  Matrix<float> MadeUpRows(int64_t count, uint64_t seed) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Whether a stream of `rows` rows is enough for the spec: FAILED_PRECONDITION (EMPTY_STREAM,
// TOO_FEW_ROWS with both numbers) if it is not.
absl::Status CheckStreamRows(const BuildSpec& spec, int64_t rows);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_STREAM_SAMPLE_H_
