// A build from stream to artifact, without any server: sample the stream, choose landmarks, factor,
// measure, encode.
//
// Call UseOneBlasThread (core/linalg/blas.h) once before: the number of BLAS threads can change the
// last bits.
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

// Largest error of served features, relative to the largest ‖F(x)‖ of the held-out rows, at which a
// version is served in float32. A feature vector that is off by e·‖F‖ moves a normalised margin by
// at most e.
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

// Computes the version. If the spec leaves the serving type open it is float32, unless its error on
// the held-out rows exceeds kServingTolerance: then the landmarks are factored again at the
// tolerance of float64, and the certificate says so. FAILED_PRECONDITION: float32 was asked for and
// errs by more (SERVING_PRECISION_TOO_LOW); empty stream (STREAM_EMPTY), fewer rows than landmarks
// (ROWS_TOO_FEW, both numbers), columns that do not suit the spec (BuildSpec::CheckColumns), a
// kernel that is not positive semidefinite on the landmarks under F2 or F3 or on the pool under
// rpcholesky (KERNEL_NOT_POSITIVE_SEMIDEFINITE). Cost for d landmarks of p columns: 2d²p + d³
// multiplications, 16 d² bytes; of rpcholesky before that N·d·(p + d/2) and 8·N·d bytes on a pool
// of N rows; and the certificate.
//
// With a remote kernel: as FetchRemoteValues; and FAILED_PRECONDITION
// (MATRIX_NOT_SQUARE) for a Gram matrix that is not complete. REQUIRES: `source` is not null if the
// kernel is a service's.
absl::StatusOr<BuiltVersion> BuildVersion(const BuildSpec& spec, StreamSample sample,
                                          BuildMonitor& monitor, KernelSource* source = nullptr);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_VERSION_BUILD_H_
