// The certificate: measurements of a version on held-out rows of its own stream, made during its
// build.
//
// The certificate is part of the artifact. It contains no time, host or speed, so that building the
// same stream with the same spec and seed gives the same bytes.
#ifndef PHIMAP_CORE_CERTIFICATE_CERTIFICATE_H_
#define PHIMAP_CORE_CERTIFICATE_CERTIFICATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/fidelity.h"
#include "core/certificate/pair_error.h"
#include "core/certificate/spectrum.h"

namespace phimap {

// Mean and maximum of an absolute error over `count` measurements.
struct MeasuredError {
  double mean = 0;
  double max = 0;
  // The scale to compare the error with: the largest K(x, x), or the largest ‖F(x)‖.
  double scale = 0;
  int64_t count = 0;
  bool operator==(const MeasuredError&) const = default;
};

// Reference vectors: rows, and their features as this version computed them when it was built. Any
// replica on any machine with fused multiply-add must compute the features bit for bit. Rows are
// generated from the stream's moments, and moved towards a landmark if their features would vanish
// or overflow. For a remote kernel, the rows are kernel values of landmarks.
struct SelfCheck {
  int64_t rows = 0;
  // rows × input columns, float32, little-endian.
  std::string rows_float32_le;
  // rows × output columns in the serving type, little-endian.
  std::string features_le;
  bool operator==(const SelfCheck&) const = default;
};

// Quantiles of ρ(x)/K(x, x) over held-out rows x. ρ(x) = K(x, x) − ‖F2(x)‖² is the residual of a
// row, so the ratio is the row's residual as a share of its own K(x, x). A ratio of the sums over
// all rows would hide the rows whose K(x, x) is small.
struct ResidualShare {
  double median = 0;
  double quantile_95 = 0;
  // Number of rows measured, and number of rows excluded because their K(x, x) is only rounding.
  int64_t rows = 0;
  int64_t zero_rows = 0;
  bool operator==(const ResidualShare&) const = default;
};

// What the features of a mapping are for, which decides what they are judged by. The numbers are
// those of the artifact format.
enum class Aim : uint8_t {
  // An artifact of a release that did not state it.
  kUnknown = 0,
  // F(x)·F(y) approximates K(x, y), centred or not.
  kInnerProducts = 1,
  // The features are similarities to landmarks.
  kSimilarities = 2,
  // ‖F(x) − F(y)‖ approximates the distance of rows.
  kDistances = 3,
  // One weight vector on the features scores all classes.
  kClasses = 4,
};

// The number of held-out rows that carry a mean over pairs: (Σ r)²/Σ r², where r of a row is the
// sum over its pairs of K(x, y)² (`kernel`) or of (K(x, y) − F(x)·F(y))² (`error`). It is the
// number of rows if all rows weigh alike, and 1 if one row has the whole sum. For `kernel` the
// pool's K(x, x) are consulted too, because rows that are rare and carry most may be missing among
// the held-out ones: it is at most the share of pool rows that carry ΣK(x, x).
struct EffectiveRows {
  double kernel = 0;
  double error = 0;
  bool operator==(const EffectiveRows&) const = default;
};
// Minimum number of effective rows for an interval. With fewer, the interval would miss the true
// mean far more often than stated.
inline constexpr double kMinEffectiveRows = 50;
// The same for the residual mass, a mean over single rows.
inline constexpr double kMinResidualRows = 30;
inline bool CanStateIntervals(const EffectiveRows& rows) {
  return rows.kernel >= kMinEffectiveRows && rows.error >= kMinEffectiveRows;
}

// The members are documented in mapping.proto (Certificate). A member is absent if it does not
// apply to the mapping or was not measured.
struct Certificate {
  int64_t stream_rows = 0;
  int64_t pool_rows = 0;
  int64_t held_out_rows = 0;
  int64_t landmarks = 0;
  std::optional<int64_t> rank;
  std::optional<double> tolerance;
  std::optional<double> largest_residual;
  std::optional<double> trace_residual;
  std::optional<double> held_out_trace_residual;
  std::optional<MeasuredError> kernel_error;
  std::optional<MeasuredError> serving_error;
  std::string policy;
  std::string theorem;
  std::vector<std::string> warnings;
  std::vector<double> pivots;
  // Absent if the version was built on a machine without fused multiply-add, if examples are
  // strings, or if no row has features to compare.
  std::optional<SelfCheck> self_check;
  std::optional<double> pool_trace_residual;
  std::optional<Spectrum> spectrum;
  // Only in artifacts of earlier versions of phimap, in place of kernel_error_interval and
  // kernel_error_bound.
  std::optional<double> kernel_error_half_width;
  std::optional<double> mean_squared_norm;
  // Positions in the stream, from 0, of the plan's landmarks, in the plan's order. Empty unless
  // callers need them (precomputed()).
  std::vector<int64_t> landmark_rows;
  std::optional<MeanInterval> kernel_error_interval;
  std::optional<PairBound> kernel_error_bound;
  std::optional<ResidualShare> residual_share;
  // Number of landmarks that were dropped because their K(x, x) is only rounding.
  std::optional<int64_t> zero_landmarks;
  // For F2 and F3. The 95 % quantile, over held-out rows x, of ‖F(x) − F64(x)‖/√K(x, x). F are the
  // features as served, and F64 the same features computed in float64. The quotient is the serving
  // error of a row as a share of the row's length in φ-space.
  std::optional<double> serving_share;
  std::optional<Fidelity> fidelity;
  // Fidelity::left_out_distance, in a field of its own because earlier versions have none.
  std::optional<double> left_out_distance;
  std::optional<EffectiveRows> effective_rows;
  // 95 % interval of held_out_trace_residual over all rows like the held-out rows. Absent if fewer
  // than kMinEffectiveRows carry the kernel, or fewer than kMinResidualRows the residuals.
  std::optional<MeanInterval> residual_mass_interval;
  // Only of versions in float32: an upper bound for the distance of smoothers (fidelity.h), at λ =
  // 10⁻², between the features as served and those of a build for float64 from the same landmarks.
  // It includes the rank that the tolerance of float32 cuts off.
  std::optional<double> serving_distance;
  // Only of versions in float32: the rank of the kernel on the landmarks, where a factor for
  // float64 ends with it (its last pivot is far from rounding, and all others are) and float32
  // keeps fewer dimensions.
  std::optional<int64_t> kernel_rank;
  Aim aim = Aim::kUnknown;
  // The rows for which the theorem holds, and how much of the kernel the rank tolerance cut off.
  // Empty if no theorem applies.
  std::string theorem_scope;
  bool operator==(const Certificate&) const = default;
};

// Returns the certificate section of an artifact (docs/formats.md). It has tagged fields, so that
// readers can skip unknown ones.
std::string EncodeCertificate(const Certificate& certificate);
// Decodes the certificate section. DATA_LOSS if it is damaged.
absl::StatusOr<Certificate> DecodeCertificate(absl::string_view bytes);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_CERTIFICATE_H_
