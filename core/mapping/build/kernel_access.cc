#include "core/mapping/build/kernel_access.h"

#include "absl/strings/str_cat.h"
#include "core/status/error.h"

namespace phimap {
namespace {

constexpr char kSimilarity[] = ". It is a similarity, and no margin in a feature space is promised";

bool TakesSimilarities(const MappingSpec& mapping) { return mapping.kind->takes_similarities; }

}  // namespace

absl::StatusOr<KernelVerdict> VerdictOn(absl::string_view kernel_text, const MappingSpec& mapping,
                                        const DefinitenessProbe& probe) {
  const bool similarity = TakesSimilarities(mapping);
  if (probe.indefinite() && !similarity) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, reason::kKernelNotPositiveSemidefinite, "kernel",
        absl::StrCat(kernel_text, " is not positive semidefinite: ", probe.ToText(),
                     ". F2, F3 and kernel PCA need a positive semidefinite kernel, F1 takes any"),
        {{"eigenvalue", absl::StrCat(probe.smallest)}});
  }
  return KernelVerdict{
      absl::StrCat(probe.indefinite() ? "the kernel is not positive semidefinite: "
                                      : "the kernel is not known to be positive semidefinite: ",
                   probe.ToText(), similarity ? kSimilarity : ""),
      probe.indefinite()};
}

absl::StatusOr<KernelVerdict> VerdictOnAsymmetry(absl::string_view kernel_text,
                                                 const MappingSpec& mapping,
                                                 absl::string_view asymmetry) {
  if (TakesSimilarities(mapping)) {
    return KernelVerdict{absl::StrCat("the kernel is not symmetric: ", asymmetry, kSimilarity),
                         true};
  }
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kKernelNotSymmetric, "kernel",
                   absl::StrCat(kernel_text, " is not symmetric: ", asymmetry,
                                ". F2, F3 and kernel PCA need a kernel, F1 takes any similarity"));
}

}  // namespace phimap
