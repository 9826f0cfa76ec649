#include "core/kernel/kernel_parts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

absl::Status CheckCount(absl::string_view what, size_t count, int limit) {
  if (count <= static_cast<size_t>(limit)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kDataLoss, reason::kKernelProgramInvalid, "",
      absl::StrCat("the kernel needs ", count, " ", what, "; at most ", limit, " are allowed"));
}

}  // namespace

absl::Status CheckKernelSize(const KernelProgramParts& parts) {
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("different weights and norms", parts.factors.size(), kMaxKernelFactors));
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("different bilinear forms", parts.forms.size(), kMaxKernelForms));
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("different choices of columns", parts.sums.size(), kMaxColumnSums));
  PHIMAP_RETURN_IF_ERROR(
      CheckCount("different string kernels", parts.strings.size(), kMaxKernelForms));
  size_t ops = parts.ops.size();
  for (const std::vector<KernelOp>& factor : parts.factors) ops += factor.size();
  return CheckCount("operations", ops, kMaxKernelOps);
}

}  // namespace phimap
