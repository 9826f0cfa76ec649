// Examples of one kind that own their memory, and the form in which a plan stores an example.
#ifndef PHIMAP_CORE_PLAN_EXAMPLE_BLOCK_H_
#define PHIMAP_CORE_PLAN_EXAMPLE_BLOCK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
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

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_EXAMPLE_BLOCK_H_
