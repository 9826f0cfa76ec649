// Examples of one kind that own their memory, and the size of an example in a plan.
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

// Bytes of an example (docs/formats.md, remote block): a dense row is its numbers in float64; a
// sparse row is the columns of its n entries as int32 and then their values as float64, 12·n bytes;
// strings are stored unchanged. Not thread-safe; moves keep views valid.
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

  // OK if these can be the bytes of such an example. Otherwise the message describes the fault.
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
