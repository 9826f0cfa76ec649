// Formulas of all leaf kernels in numbers of 113 digits. To test a new kernel, add a line to
// kRowKernels or kTextKernels in wide_kernels.cc; residual_kernels_test fails until there is one.
#ifndef PHIMAP_TESTS_CORE_MAPPING_WIDE_KERNELS_H_
#define PHIMAP_TESTS_CORE_MAPPING_WIDE_KERNELS_H_

#include <array>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tests/support/wide_number.h"

namespace phimap::testing {

using WideRow = std::vector<Wide>;

enum class RowKind { kNormal, kPositive, kCategories };

struct RowKernel {
  const char* leaf;
  const char* text;
  Wide (*formula)(const WideRow& x, const WideRow& y);
  RowKind rows = RowKind::kNormal;
  // At each length scale (rows times 0.1, 1 and 10), the largest median of the allowance as a share
  // of K(x, x), in float32. It says that the bound is worth something.
  std::array<double, 3> largest_share = {0.015, 0.015, 0.015};
};

struct TextKernel {
  const char* leaf;
  const char* text;
  Wide (*formula)(const std::string& x, const std::string& y);
};

// The kernels on rows of four numbers.
absl::Span<const RowKernel> RowKernels();
absl::Span<const TextKernel> TextKernels();

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CORE_MAPPING_WIDE_KERNELS_H_
