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
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/head/head.h"
#include "core/mapping/build/build_progress.h"
#include "core/mapping/sample/stream_sample.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/artifact.h"
#include "core/plan/example_block.h"

namespace phimap {

// Largest error of features at which a version is served in float32. For all held-out rows, the
// error is divided by the largest ‖F(x)‖. For F2 and F3, the error of 95 % of the rows must also
// stay below this limit when divided by √K(x, x).
//
// Why this is enough: if a feature vector F has an error of length e·‖F‖, its normalised margin
// changes by at most e.
inline constexpr double kServingTolerance = 1e-3;

struct BuiltVersion {
  // The artifact's bytes, as stored.
  std::string bytes;
  Provenance provenance;
  Certificate certificate;
  int64_t input_columns = 0;
  int64_t output_columns = 0;
  FloatType serving_type = FloatType::kFloat32;
  // What is known of the head; null for a version without a head.
  std::shared_ptr<const HeadFacts> head = nullptr;
};

// Builds the version.
//
// Serving type: the spec's. If the spec leaves the type open, the version is built for float32. If
// float32 is not precise enough (kServingTolerance) or cannot represent the mapping, the mapping is
// built again for float64, with the rank tolerance of float64. The certificate then has a warning.
//
// FAILED_PRECONDITION:
// - The spec requires float32, but float32 is not precise enough (SERVING_PRECISION_TOO_LOW).
// - The stream is empty (STREAM_EMPTY) or has fewer rows than landmarks (ROWS_TOO_FEW, with both
//   numbers).
// - The columns do not suit the spec (BuildSpec::CheckColumns).
// - A Gram matrix is incomplete (MATRIX_NOT_SQUARE).
// - The kernel is not positive semidefinite (KERNEL_NOT_POSITIVE_SEMIDEFINITE). Mappings other than
//   F1 require this on the landmarks, and policy rpcholesky requires it on the pool.
// Other errors: those of CheckStream, PrepareComputedKernel, FetchRemoteKernel,
// BuildMapping and Certify.
//
// Cost for d landmarks of p columns: 2d²p + d³ multiplications and 16 d² bytes. Policy rpcholesky
// needs another N·d·(p + d/2) multiplications and 8·N·d bytes beforehand, for a pool of N rows. The
// certificate comes last (MeasureHeldOut).
//
// REQUIRES: `source` is not null if a kernel service computes the kernel.
absl::StatusOr<BuiltVersion> BuildVersion(const BuildSpec& spec, StreamSample sample,
                                          BuildMonitor& monitor, KernelSource* source = nullptr);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_VERSION_BUILD_H_
