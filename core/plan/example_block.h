// Examples of one kind that own their memory, the form in which a plan stores an example, and the
// source of the values of a remote kernel on examples.
#ifndef PHIMAP_CORE_PLAN_EXAMPLE_BLOCK_H_
#define PHIMAP_CORE_PLAN_EXAMPLE_BLOCK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/linalg/matrix.h"
#include "core/plan/examples.h"

namespace phimap {

// Stores examples as bytes (docs/formats.md, remote block). A dense row is stored as its numbers in
// float64. A sparse row of n entries takes 12·n bytes: the columns of its entries as int32,
// followed by their values as float64. Strings are stored unchanged. Not thread-safe. Views stay
// valid when the block is moved.
class ExampleBlock {
 public:
  // REQUIRES: columns is the number of columns of rows, or 0 for strings.
  ExampleBlock(ExampleKind kind, int64_t columns) : kind_(kind), columns_(columns) {}

  ExampleKind kind() const { return kind_; }
  int64_t rows() const { return rows_; }

  // REQUIRES: `kind` is a kind of rows; `row` has `columns` numbers.
  void AddRow(const double* row);
  // REQUIRES: `kind` is a kind of strings.
  void AddString(std::string string);
  // REQUIRES: CheckBytes is OK.
  void AddBytes(absl::string_view bytes);

  // Valid until something is added.
  ExamplesView view() const;
  std::string Bytes(int64_t i) const;

  // Returns OK if `bytes` can be those of an example of this kind and number of columns. Otherwise
  // returns an error whose message describes the fault.
  static absl::Status CheckBytes(ExampleKind kind, int64_t columns, absl::string_view bytes);

 private:
  void AddEntry(int32_t column, double value);
  void EndRow();

  ExampleKind kind_;
  int64_t columns_;
  int64_t rows_ = 0;
  // Values of rows; for sparse rows only those of the entries.
  std::vector<double> values_;
  std::vector<int32_t> indices_;
  std::vector<int64_t> offsets_ = {0};
  // Allocated one by one, so that views of them stay valid.
  std::vector<std::unique_ptr<const std::string>> strings_;
  std::vector<const std::string*> views_;
  int64_t string_bytes_ = 0;
};

// Calls the user's own kernel. A KernelSource is used by one build, and by one thread at a time.
class KernelSource {
 public:
  // Called repeatedly while a call waits. A status other than OK ends the call with that status.
  using Alive = absl::FunctionRef<absl::Status()>;

  virtual ~KernelSource() = default;

  // Computes out(i, j) = K(left_i, right_j) for n examples left_i and m examples right_j. Unless
  // `diagonal` is null, also computes diagonal[i] = K(left_i, left_i). The values come from the
  // service. They are finite and of the right shape, but nothing else about them is guaranteed.
  //
  // Shapes: out n×m, diagonal n numbers. All examples are of one kind and checked.
  // Cost:   consecutive calls are cheaper if they pass the same `right` at the same address.
  // Errors: those of `alive`, and those of the service, with its name.
  virtual absl::Status Block(const ExamplesView& left, const ExamplesView& right,
                             MatrixView<double> out, double* diagonal, Alive alive) = 0;

  // Returns the unit round-off of the least precise type among all values so far: 2⁻²⁴ if any block
  // came in float32, otherwise 2⁻⁵³.
  virtual double unit() const = 0;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_EXAMPLE_BLOCK_H_
