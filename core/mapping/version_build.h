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
#ifndef PHIMAP_CORE_MAPPING_VERSION_BUILD_H_
#define PHIMAP_CORE_MAPPING_VERSION_BUILD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/certificate/certificate.h"
#include "core/mapping/build_progress.h"
#include "core/mapping/build_spec.h"
#include "core/mapping/stream_sample.h"
#include "core/plan/artifact.h"
#include "core/plan/kernel_source.h"

namespace phimap {

// Largest error of served features, relative to the largest ‖F(x)‖ of the held-out rows, at which a
// version is served in float32. A feature vector that is off by e·‖F‖ moves a normalised margin by
// at most e.
inline constexpr double kServingTolerance = 1e-3;

struct BuiltVersion {
  // The artifact: what is stored.
  std::string bytes;
  Provenance provenance;
  Certificate certificate;
  int64_t input_columns = 0;
  int64_t output_columns = 0;
  FloatType serving_type = FloatType::kFloat32;
};

// Computes the version. When the spec leaves the serving type open it is float32, unless that errs
// by more than kServingTolerance on the held-out rows: then the landmarks are factored again at the
// tolerance of float64, and the certificate says so. FAILED_PRECONDITION: float32 was asked for and
// errs by more (PRECISION); empty stream (EMPTY_STREAM), fewer rows than landmarks (TOO_FEW_ROWS,
// both numbers), columns that do not suit the spec (BuildSpec::CheckColumns), a kernel that is not
// positive semidefinite on the landmarks under F2 or F3 or on the pool under rpcholesky
// (NOT_POSITIVE_SEMIDEFINITE). Cost for d landmarks of p columns: 2d²p + d³ multiplications, 16 d²
// bytes; of rpcholesky before that N·d·(p + d/2) and 8·N·d bytes on a pool of N rows; and the
// certificate.
//
// With a kernel that is not computed here: as FetchOutsideValues; and FAILED_PRECONDITION
// (NOT_SQUARE) for a Gram matrix that is not complete. REQUIRES: `source` is not null if the kernel
// is a service's.
absl::StatusOr<BuiltVersion> BuildVersion(const BuildSpec& spec, StreamSample sample,
                                          BuildMonitor& monitor, KernelSource* source = nullptr);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_VERSION_BUILD_H_
