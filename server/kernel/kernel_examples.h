// The columns of blocks that a kernel service is asked for again and again: sent once, named by
// their digest afterwards.
#ifndef PHIMAP_SERVER_KERNEL_KERNEL_EXAMPLES_H_
#define PHIMAP_SERVER_KERNEL_KERNEL_EXAMPLES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/linalg/matrix.h"
#include "core/plan/examples.h"
#include "core/plan/plan.h"

namespace phimap {

namespace v1 {
class Examples;
}

// Immutable, thread-safe.
class KernelExamples {
 public:
  explicit KernelExamples(std::unique_ptr<const v1::Examples> message, int64_t count);
  ~KernelExamples();
  KernelExamples(const KernelExamples&) = delete;
  KernelExamples& operator=(const KernelExamples&) = delete;

  // The landmarks of a version. REQUIRES: a plan that is valid, of columns as many.
  static std::shared_ptr<const KernelExamples> Of(const ExternalFeatures& block, int64_t columns);
  static std::shared_ptr<const KernelExamples> Of(ConstMatrixView<double> rows);

  int64_t count() const { return count_; }
  const v1::Examples& message() const { return *message_; }
  int64_t bytes() const { return bytes_; }
  // SHA-256 of the message, 64 hexadecimal digits.
  const std::string& digest() const { return digest_; }

 private:
  const std::unique_ptr<const v1::Examples> message_;
  const int64_t count_;
  int64_t bytes_ = 0;
  std::string digest_;
};

// Adds rows to a dense block of float64 rows, or makes it. REQUIRES: not strings.
void AppendRows(ConstMatrixView<double> rows, v1::Examples& examples);
void AppendRows(const ExamplesView& rows, v1::Examples& examples);

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_KERNEL_EXAMPLES_H_
