// A served row, copied for the test for drift.
#ifndef PHIMAP_SERVER_DRIFT_SAMPLED_ROW_H_
#define PHIMAP_SERVER_DRIFT_SAMPLED_ROW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/examples.h"
#include "core/plan/rows.h"
#include "server/registry/version_handle.h"

namespace phimap {

// Owns a row as the engine got it, and its features. The version stays pinned.
class SampledRow {
 public:
  // Copies row `index` of `rows`. `features` are the features of all of them.
  SampledRow(VersionHandle version, const ExamplesView& rows, const RowsView& features,
             int64_t index);
  SampledRow(const SampledRow&) = delete;
  SampledRow& operator=(const SampledRow&) = delete;

  const VersionHandle& version() const { return version_; }
  ExamplesView row() const;
  RowsView features() const;

  // Returns the memory that a copy of a row takes.
  static int64_t BytesOf(const ExamplesView& rows, const RowsView& features, int64_t index);

 private:
  const VersionHandle version_;
  std::vector<double> numbers_;
  std::string string_;
  const std::string* const string_at_ = &string_;
  ExampleKind kind_ = ExampleKind::kDense;
  // Aligned for either serving type.
  std::vector<double> features_;
  RowsView shape_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_DRIFT_SAMPLED_ROW_H_
