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
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/certificate/certificate.h"
#include "core/mapping/build_spec.h"
#include "core/plan/artifact.h"
#include "core/plan/rows.h"

namespace phimap {

// Largest error of served features, relative to the largest ‖F(x)‖ of the held-out rows, at which a
// version is served in float32. A feature vector that is off by e·‖F‖ moves a normalised margin by
// at most e.
inline constexpr double kServingTolerance = 1e-3;

// What a build keeps of its stream: a uniform sample and per-column moments, in memory that does
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

 private:
  friend class VersionBuilder;
  struct State;
  std::unique_ptr<State> state_;
};

// Whether a stream of `rows` rows is enough for the spec: FAILED_PRECONDITION (EMPTY_STREAM,
// TOO_FEW_ROWS with both numbers) if it is not.
absl::Status CheckStreamRows(const BuildSpec& spec, int64_t rows);

// Watches a build; called on the thread that computes.
class BuildMonitor {
 public:
  virtual ~BuildMonitor() = default;
  // Called between tiles with the phase ("sample", then "choose" under policy rpcholesky, "gram"
  // and "factor" of a mapping with landmarks or "draw" of one without, "certificate", "encode") and
  // the share of the whole build that is done, 0..1, never falling. May block to let more urgent
  // work pass. A status other than OK ends the build with that status.
  virtual absl::Status Checkpoint(absl::string_view phase, double fraction) = 0;
  // How many threads a step may use at the moment, at least 1. The bytes do not depend on it.
  virtual int threads() const { return 1; }
};

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
absl::StatusOr<BuiltVersion> BuildVersion(const BuildSpec& spec, StreamSample sample,
                                          BuildMonitor& monitor);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_VERSION_BUILD_H_
