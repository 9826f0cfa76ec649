// Part that a build keeps of a stream that is the Gram matrix of its own examples.
#ifndef PHIMAP_CORE_MAPPING_SAMPLE_GRAM_SAMPLE_H_
#define PHIMAP_CORE_MAPPING_SAMPLE_GRAM_SAMPLE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/linalg/matrix.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/rows.h"

namespace phimap {

// Each value of a remote kernel costs its user something. At most this many rows are therefore held
// out for measurements, and this many used for the spectrum.
inline constexpr int64_t kMaxRemoteHeldOutRows = 512;
inline constexpr int64_t kMaxRemoteSpectrumRows = 256;

// Examples whose values a build needs.
enum class RemotePart { kLandmarks, kHeldOut, kSpectrum };

// Row i of the stream is K(x_i, ·) with each of the n examples in turn, so that the first row tells
// n, and with it which rows are landmarks, held out and taken for the spectrum (StreamId::kSplit of
// the seed): the values of these with each other are kept, whatever n is. Not thread-safe.
class GramSample {
 public:
  // REQUIRES: spec.Validate() is OK and 1 <= examples <= kMaxColumns.
  GramSample(const BuildSpec& spec, int64_t examples);

  // Takes a block of rows, finite and `examples` columns wide. INVALID_ARGUMENT (MATRIX_NOT_SQUARE)
  // when more rows come than examples are.
  absl::Status Add(const RowsView& rows);
  int64_t rows() const { return rows_; }
  int64_t examples() const { return examples_; }
  int64_t memory_bytes() const { return values_.size() * static_cast<int64_t>(sizeof(double)); }
  // Rows that landmarks are drawn from.
  int64_t pool_rows() const { return pool_rows_; }
  // 2⁻²⁴ if a row came in float32, else 2⁻⁵³.
  double unit() const { return unit_; }
  // OK if all rows were received; FAILED_PRECONDITION (MATRIX_NOT_SQUARE), with both numbers,
  // otherwise.
  absl::Status CheckComplete() const;

  // Positions in the stream of a part's examples; for landmarks, in the order in which they were
  // drawn.
  const std::vector<int64_t>& rows_of(RemotePart part) const;
  // K(x_i, x_j) of rows of the stream that are in a part.
  double value(int64_t i, int64_t j) const { return values_(PlaceOf(i), PlaceOf(j)); }

 private:
  int64_t PlaceOf(int64_t row) const;

  int64_t examples_;
  int64_t rows_ = 0;
  int64_t pool_rows_ = 0;
  double unit_ = 0x1p-53;
  std::vector<int64_t> landmarks_;
  std::vector<int64_t> held_out_;
  std::vector<int64_t> spectrum_;
  // The kept columns in rising order, and their values.
  std::vector<int64_t> kept_;
  Matrix<double> values_;
  // A row on its way, widened to float64.
  std::vector<double> row_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_SAMPLE_GRAM_SAMPLE_H_
