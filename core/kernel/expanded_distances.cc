#include "core/kernel/expanded_distances.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/status/check.h"

namespace phimap {
namespace {

bool IsSquaredDistance(const ColumnSum& sum) {
  return sum == ColumnSum{.term = ColumnTerm::kSquaredDifference};
}

// Replaces operations that read sum number `replaced`. An operation refers to a sum by its number
// plus `forms`. Later sums move up by one.
void Replace(std::vector<KernelOp>& ops, int32_t forms, int32_t replaced) {
  for (KernelOp& op : ops) {
    if (op.code != KernelOpCode::kPushColumnSum) continue;
    if (op.n == forms + replaced) {
      op = {.code = KernelOpCode::kPushSquaredDistance};
    } else if (op.n > forms + replaced) {
      --op.n;
    }
  }
}

}  // namespace

KernelProgram WithExpandedDistances(const KernelProgram& program) {
  const std::vector<ColumnSum>& sums = program.sums();
  const auto found = std::find_if(sums.begin(), sums.end(), IsSquaredDistance);
  if (found == sums.end()) return program;
  const auto replaced = static_cast<int32_t>(found - sums.begin());
  const auto forms = static_cast<int32_t>(program.forms().size());
  KernelProgramParts parts{.ops = program.ops(),
                           .factors = program.factors(),
                           .forms = program.forms(),
                           .sums = sums,
                           .strings = program.strings()};
  parts.sums.erase(parts.sums.begin() + replaced);
  Replace(parts.ops, forms, replaced);
  for (std::vector<KernelOp>& factor : parts.factors) Replace(factor, forms, replaced);
  absl::StatusOr<KernelProgram> expanded = KernelProgram::FromParts(std::move(parts));
  PHIMAP_CHECK(expanded.ok());
  return *std::move(expanded);
}

}  // namespace phimap
