// The examples of a block's columns, which a kernel service is asked about repeatedly. They are
// sent once, and referred to by their digest afterwards.
#ifndef PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_EXAMPLES_H_
#define PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_EXAMPLES_H_

#include <cstdint>
#include <memory>
#include <string>

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

  // Returns the landmarks in a plan's `block`. REQUIRES: the plan is valid, and its examples have
  // `columns` columns.
  static std::shared_ptr<const KernelExamples> Of(const RemoteFeatures& block, int64_t columns);
  static std::shared_ptr<const KernelExamples> Of(const ExamplesView& examples);

  int64_t count() const { return count_; }
  const v1::Examples& message() const { return *message_; }
  int64_t bytes() const { return bytes_; }
  // SHA-256 of message(), as 64 hexadecimal digits.
  const std::string& digest() const { return digest_; }

 private:
  const std::unique_ptr<const v1::Examples> message_;
  const int64_t count_;
  int64_t bytes_ = 0;
  std::string digest_;
};

// Appends examples to `to` in the form that `as` selects: rows as dense or sparse rows in float64,
// and strings as bytes or text. REQUIRES: both kinds are rows, or both are strings; bytes must not
// be appended as text.
void AppendExamples(const ExamplesView& examples, ExampleKind as, v1::Examples& to);

// Returns an upper bound on the bytes that AppendExamples adds.
int64_t AppendedBytes(const ExamplesView& examples, ExampleKind as);

}  // namespace phimap

#endif  // PHIMAP_SERVER_KERNEL_CLIENT_KERNEL_EXAMPLES_H_
