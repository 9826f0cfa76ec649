// The values of a remote kernel that a build needs, asked for in one go.
#ifndef PHIMAP_CORE_MAPPING_BUILD_REMOTE_VALUES_H_
#define PHIMAP_CORE_MAPPING_BUILD_REMOTE_VALUES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/certificate/measurement.h"
#include "core/linalg/checkpoint.h"
#include "core/linalg/matrix.h"
#include "core/mapping/build/kernel_verdict.h"
#include "core/mapping/sample/gram_sample.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/example_block.h"
#include "core/plan/kernel_source.h"

namespace phimap {

// Values of one call of a service: a kernel of a millisecond each takes 16 s for them.
inline constexpr int64_t kValuesOfCall = 16384;

// Examples in three parts, and who knows their kernel.
class RemoteExamples {
 public:
  struct Range {
    RemotePart part = RemotePart::kLandmarks;
    int64_t first = 0;
    int64_t count = 0;
  };

  virtual ~RemoteExamples() = default;
  virtual int64_t count(RemotePart part) const = 0;
  // out(i, j) = K of the i-th of `left` and the j-th of `right`; diagonal[i] = K(left_i, left_i)
  // unless that is null.
  virtual absl::Status Block(const Range& left, const Range& right, MatrixView<double> out,
                             double* diagonal, KernelSource::Alive alive) = 0;
  // The unit round-off of all values so far.
  virtual double unit() const = 0;
};

// Examples of a received Gram matrix, which outlives this.
class GramExamples final : public RemoteExamples {
 public:
  explicit GramExamples(const GramSample& sample) : sample_(sample) {}
  int64_t count(RemotePart part) const override;
  absl::Status Block(const Range& left, const Range& right, MatrixView<double> out,
                     double* diagonal, KernelSource::Alive alive) override;
  double unit() const override { return sample_.unit(); }

 private:
  const GramSample& sample_;
};

// Examples that a kernel service compares, which outlives this.
class ServiceExamples final : public RemoteExamples {
 public:
  // All of one kind and as many columns.
  ServiceExamples(ExampleBlock landmarks, ExampleBlock held_out, ExampleBlock spectrum,
                  KernelSource& source)
      : parts_{std::move(landmarks), std::move(held_out), std::move(spectrum)}, source_(source) {}
  int64_t count(RemotePart part) const override { return examples(part).rows(); }
  absl::Status Block(const Range& left, const Range& right, MatrixView<double> out,
                     double* diagonal, KernelSource::Alive alive) override;
  double unit() const override { return source_.unit(); }
  const ExampleBlock& examples(RemotePart part) const { return parts_[static_cast<size_t>(part)]; }

 private:
  const ExampleBlock parts_[3];
  KernelSource& source_;
};

// Values that a build of one mapping needs.
struct RemoteValues {
  // K(S, S), d×d; its unit round-off is the largest of all values.
  Matrix<double> gram;
  double unit = 0x1p-53;
  // Held-out rows with S, h×d, and among themselves (empty under kMinHeldOutRows, and unless the
  // mapping approximates the kernel).
  Matrix<double> held_out;
  KnownKernel known;
  // F2, F3: the spectrum's rows with each other, m×m, and with S, m×d.
  Matrix<double> spectrum_gram;
  Matrix<double> spectrum;
  KernelVerdict verdict;
};

// Requests all of them, in tiles of kValuesOfCall or a row, and checks the conditions of a kernel:
// symmetric on the landmarks to 1e-5 of the largest of K(x, x), K(y, y) and |K(x, y)| (F1 accepts
// any similarity: the warning names the finding), and without a negative eigenvalue on the first
// kMaxProbeRows landmarks, nor a held-out row with K(x, y)² > K(x, x)·K(y, y). FAILED_PRECONDITION
// (KERNEL_NOT_SYMMETRIC, KERNEL_NOT_POSITIVE_SEMIDEFINITE, field "kernel"); and what `examples` or
// `checkpoint` return.
absl::StatusOr<RemoteValues> FetchRemoteValues(const BuildSpec& spec, RemoteExamples& examples,
                                               Checkpoint checkpoint);

// Number of these values.
double CountRemoteValues(const MappingSpec& mapping, int64_t landmarks, int64_t held_out,
                         int64_t spectrum);

// The columns `which` of `values`.
Matrix<double> ColumnsOf(const Matrix<double>& values, const std::vector<int64_t>& which);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_REMOTE_VALUES_H_
