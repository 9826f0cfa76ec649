// The part of a streamed Gram matrix that a build keeps.
#ifndef PHIMAP_CORE_MAPPING_SAMPLE_GRAM_SAMPLE_H_
#define PHIMAP_CORE_MAPPING_SAMPLE_GRAM_SAMPLE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/linalg/matrix.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/rows.h"

namespace phimap {

// Values of a remote kernel are expensive, so the number of the held-out rows on which the spectrum
// is measured is limited.
inline constexpr int64_t kMaxRemoteSpectrumRows = 256;

// Sets of examples whose kernel values a build needs.
enum class RemotePart { kLandmarks, kHeldOut };

// The part of a streamed Gram matrix that a build needs. Row i of the stream holds the kernel
// values K(x_i, x_j) of example x_i with each of the n examples x_j.
//
// The first row gives n. From n and the spec, the constructor chooses the landmarks and the
// held-out rows (StreamId::kSplit of the spec's seed). Only the kernel values between these rows
// are kept. Not thread-safe.
class GramSample {
 public:
  // REQUIRES: spec.Validate() is OK and 1 <= examples <= kMaxColumns.
  GramSample(const BuildSpec& spec, int64_t examples);

  // Adds a block of rows. Returns INVALID_ARGUMENT (MATRIX_NOT_SQUARE) if the stream has more rows
  // than examples. REQUIRES: all numbers are finite, and the block has `examples` columns.
  absl::Status Add(const RowsView& rows);
  int64_t rows() const { return rows_; }
  int64_t examples() const { return examples_; }
  int64_t memory_bytes() const { return values_.size() * static_cast<int64_t>(sizeof(double)); }
  // Number of rows that landmarks are drawn from.
  int64_t pool_rows() const { return pool_rows_; }
  // Unit round-off of the values: 2⁻²⁴ if any row came in float32, else 2⁻⁵³.
  double unit() const { return unit_; }
  // Returns OK if all rows have come, else FAILED_PRECONDITION (MATRIX_NOT_SQUARE) with the
  // expected and actual number.
  absl::Status CheckComplete() const;

  // Returns the positions in the stream of a part's examples. Landmarks are in the order in which
  // they were drawn.
  const std::vector<int64_t>& rows_of(RemotePart part) const;
  // Returns K(x_i, x_j). REQUIRES: rows i and j of the stream are each in some part.
  double value(int64_t i, int64_t j) const { return values_(PlaceOf(i), PlaceOf(j)); }

 private:
  int64_t PlaceOf(int64_t row) const;

  int64_t examples_;
  int64_t rows_ = 0;
  int64_t pool_rows_ = 0;
  double unit_ = 0x1p-53;
  std::vector<int64_t> landmarks_;
  std::vector<int64_t> held_out_;
  // All rows in some part, in ascending order, and their values with each other.
  std::vector<int64_t> kept_;
  Matrix<double> values_;
  // Buffer for one row, widened to float64.
  std::vector<double> row_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SAMPLE_GRAM_SAMPLE_H_
