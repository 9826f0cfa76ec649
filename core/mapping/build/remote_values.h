// Fetches all values of a remote kernel that a build needs.
#ifndef PHIMAP_CORE_MAPPING_BUILD_REMOTE_VALUES_H_
#define PHIMAP_CORE_MAPPING_BUILD_REMOTE_VALUES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/certificate/measurement.h"
#include "core/linalg/matrix.h"
#include "core/mapping/build/kernel_access.h"
#include "core/mapping/sample/gram_sample.h"
#include "core/mapping/spec/build_spec.h"
#include "core/plan/example_block.h"

namespace phimap {

// Maximum number of values per call of a kernel service, unless a single row has more. If each
// value takes 1 ms, such a call takes 16 s.
inline constexpr int64_t kValuesOfCall = 16384;

// Two sets of examples, landmarks and held-out rows, and the source of their kernel values.
class RemoteExamples {
 public:
  struct Range {
    RemotePart part = RemotePart::kLandmarks;
    int64_t first = 0;
    int64_t count = 0;
  };

  virtual ~RemoteExamples() = default;
  virtual int64_t count(RemotePart part) const = 0;
  // Sets out(i, j) to K(left_i, right_j) and, unless `diagonal` is null, diagonal[i] to
  // K(left_i, left_i).
  virtual absl::Status Block(const Range& left, const Range& right, MatrixView<double> out,
                             double* diagonal, KernelSource::Alive alive) = 0;
  // Largest unit round-off of the values so far.
  virtual double unit() const = 0;
};

// Examples of a received Gram matrix, which must outlive this object.
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

// Examples whose kernel values come from a kernel service. The service must outlive this object.
class ServiceExamples final : public RemoteExamples {
 public:
  // All blocks must have the same kind and number of columns.
  ServiceExamples(ExampleBlock landmarks, ExampleBlock held_out, KernelSource& source)
      : parts_{std::move(landmarks), std::move(held_out)}, source_(source) {}
  int64_t count(RemotePart part) const override { return examples(part).rows(); }
  absl::Status Block(const Range& left, const Range& right, MatrixView<double> out,
                     double* diagonal, KernelSource::Alive alive) override;
  double unit() const override { return source_.unit(); }
  const ExampleBlock& examples(RemotePart part) const { return parts_[static_cast<size_t>(part)]; }

 private:
  const ExampleBlock parts_[2];
  KernelSource& source_;
};

// Kernel values that a build needs. S are the d landmarks.
struct RemoteValues {
  // The d×d matrix K(S, S). `unit` is the largest unit round-off of all values in this struct.
  Matrix<double> gram;
  double unit = 0x1p-53;
  // Kernel values of the h held-out rows. `held_out` is h×d and has their values with the landmarks
  // S. `known` has the values of the held-out rows with each other. `known` is empty if there are
  // fewer than kMinHeldOutRows held-out rows or the mapping does not approximate the kernel.
  Matrix<double> held_out;
  KnownKernel known;
  // The m×m kernel values of the first m held-out rows with each other, for the spectrum. Empty
  // unless the mapping is F2 or F3 and there are at least kMinHeldOutRows held-out rows.
  Matrix<double> spectrum_gram;
  KernelVerdict verdict;
};

// Requests all values that a build needs. A call requests at most kValuesOfCall values, or one row.
// Then checks three properties of a positive semidefinite kernel:
// - K is symmetric on the landmarks. The values K(x, y) and K(y, x) may differ by at most 1e-5 of
//   the largest of |K(x, x)|, |K(y, y)| and |K(x, y)|.
// - K has no negative eigenvalue on the first kMaxProbeRows landmarks.
// - Each held-out row x has K(x, x) ≥ 0, and K(x, y)² ≤ K(x, x)·K(y, y) with every landmark y.
//
// F1 accepts any similarity function. With F1, a failure of the first or second check only adds a
// warning to the verdict, and the third check is not made.
//
// Errors: FAILED_PRECONDITION (KERNEL_NOT_SYMMETRIC, KERNEL_NOT_POSITIVE_SEMIDEFINITE, field
// "kernel"); those of `examples` and `checkpoint`.
absl::StatusOr<RemoteValues> FetchRemoteValues(const BuildSpec& spec, RemoteExamples& examples,
                                               Checkpoint checkpoint);

// Returns the number of held-out rows that the spectrum is measured on.
int64_t RemoteSpectrumRows(const MappingSpec& mapping, int64_t held_out);
// Returns the number of values that FetchRemoteValues requests.
double CountRemoteValues(const MappingSpec& mapping, int64_t landmarks, int64_t held_out);

// Returns the columns `which` of `values`, in that order.
Matrix<double> ColumnsOf(const Matrix<double>& values, const std::vector<int64_t>& which);

}  // namespace phimap

#endif  // PHIMAP_CORE_MAPPING_BUILD_REMOTE_VALUES_H_
