// The certificate: measurements of a version on held-out rows of its own stream, made while it was
// built.
//
// It is part of the artifact and holds no time, host or speed: the same spec, seed and stream give
// the same bytes.
#ifndef PHIMAP_CORE_CERTIFICATE_CERTIFICATE_H_
#define PHIMAP_CORE_CERTIFICATE_CERTIFICATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/pair_error.h"
#include "core/certificate/spectrum.h"

namespace phimap {

// Mean and maximum of an absolute error over `count` measurements.
struct MeasuredError {
  double mean = 0;
  double max = 0;
  // The scale of the errors: the largest K(x, x), or the largest ‖F(x)‖.
  double scale = 0;
  int64_t count = 0;
};

// Reference vectors: rows generated from the stream's moments, and their features as this version
// computed them when it was built. Rows whose features would vanish or overflow are moved towards a
// landmark. Every replica, on any machine with fused multiply-add, must give the same bits.
struct SelfCheck {
  int64_t rows = 0;
  // rows × input columns, float32, little-endian.
  std::string rows_float32_le;
  // rows × output columns in the serving type, little-endian.
  std::string features_le;
};

// ρ(x)/K(x, x) over held-out rows, ρ(x) = K(x, x) − ‖F2(x)‖²: the residual of each row as a share
// of its own K(x, x). A ratio of traces hides rows whose K(x, x) is small.
struct ResidualShare {
  double median = 0;
  double quantile_95 = 0;
  // Number of rows measured, and of rows left out because their K(x, x) is only rounding.
  int64_t rows = 0;
  int64_t zero_rows = 0;
};

// A member is absent if it does not apply to the mapping or was not measured. mapping.proto,
// Certificate, has the meanings.
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
  // Absent when the version was built on a machine without fused multiply-add, and when no row has
  // features to compare.
  std::optional<SelfCheck> self_check;
  std::optional<double> pool_trace_residual;
  std::optional<Spectrum> spectrum;
  // Artifacts older than the interval and the bound have this instead.
  std::optional<double> kernel_error_half_width;
  std::optional<double> mean_squared_norm;
  // Positions in the stream, from 0, of the plan's landmarks, in its order; empty if the caller
  // need not know them.
  std::vector<int64_t> landmark_rows;
  std::optional<MeanInterval> kernel_error_interval;
  std::optional<PairBound> kernel_error_bound;
  std::optional<ResidualShare> residual_share;
  // Landmarks that were left out because their K(x, x) is only rounding.
  std::optional<int64_t> zero_landmarks;
  // F2, F3: the 95 % quantile over held-out rows of ‖F(x) − F64(x)‖/√K(x, x): the serving error of
  // a row as a share of its length in φ-space.
  std::optional<double> serving_share;
  // The rows to which the theorem applies, and the part of the kernel that was cut; empty if no
  // theorem applies.
  std::string theorem_scope;
};

// The certificate section of an artifact (docs/formats.md): tagged fields, so that a reader skips
// unknown ones.
std::string EncodeCertificate(const Certificate& certificate);
// DATA_LOSS for anything damaged.
absl::StatusOr<Certificate> DecodeCertificate(absl::string_view bytes);

}  // namespace phimap

#endif  // PHIMAP_CORE_CERTIFICATE_CERTIFICATE_H_
