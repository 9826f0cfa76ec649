// Builds an artifact from a stream, without a server: chooses landmarks, factors, measures and
// encodes.
//
// Call UseOneBlasThread (core/linalg/blas.h) once before any build, because the number of BLAS
// threads can change the last bits.
//
// Example:
//   StreamSample sample(spec, columns);
//   while (rows come) sample.Add(rows);
//   absl::StatusOr<BuiltVersion> built = BuildVersion(spec, std::move(sample), monitor);
#ifndef PHIMAP_CORE_MAPPING_BUILD_VERSION_BUILD_H_
#define PHIMAP_CORE_MAPPING_BUILD_VERSION_BUILD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/sample/stream_sample.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/artifact.h"
#include "core/plan/kernel_source.h"

namespace phimap {

// Largest error of features at which a version is served in float32: for all held-out rows relative
// to the largest ‖F(x)‖ and, for F2 and F3, for 95 % of them relative to √K(x, x). A feature vector
// with an error of e·‖F‖ changes a normalised margin by at most e.
inline constexpr double kServingTolerance = 1e-3;

struct BuiltVersion {
  // The artifact's bytes, as stored.
  std::string bytes;
  Provenance provenance;
  Certificate certificate;
  int64_t input_columns = 0;
  int64_t output_columns = 0;
  FloatType serving_type = FloatType::kFloat32;
};

// Builds the version. If the spec leaves the serving type open, it is float32, unless float32 is
// not precise enough (kServingTolerance) or cannot represent the mapping. Then the mapping is built
// again for float64, with the rank tolerance of float64, and the certificate has a warning.
//
// FAILED_PRECONDITION: the requested float32 is not precise enough (SERVING_PRECISION_TOO_LOW); the
// stream is empty (STREAM_EMPTY) or has fewer rows than landmarks (ROWS_TOO_FEW, both numbers); the
// columns do not suit the spec (BuildSpec::CheckColumns); the kernel is not positive semidefinite
// on the landmarks, unless the mapping is F1, or on the pool under rpcholesky
// (KERNEL_NOT_POSITIVE_SEMIDEFINITE); a Gram matrix is incomplete (MATRIX_NOT_SQUARE). Also returns
// the other errors of CheckStream, ComputedKernel::Prepare, RemoteBuildKernel::Fetch, BuildMapping
// and Certify.
//
// Cost for d landmarks of p columns: 2d²p + d³ multiplications and 16 d² bytes. Before that,
// rpcholesky takes N·d·(p + d/2) multiplications and 8·N·d bytes on a pool of N rows. After that,
// the certificate (MeasureHeldOut).
//
// REQUIRES: `source` is not null if a kernel service computes the kernel.
absl::StatusOr<BuiltVersion> BuildVersion(const BuildSpec& spec, StreamSample sample,
                                          BuildMonitor& monitor, KernelSource* source = nullptr);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_VERSION_BUILD_H_
