// A kernel that is not computed here: its values come with the stream, or from the user's own
// service.
#ifndef PHIMAP_CORE_KERNEL_OUTSIDE_KERNEL_H_
#define PHIMAP_CORE_KERNEL_OUTSIDE_KERNEL_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

struct OutsideKernel {
  // kPrecomputed: the stream is the Gram matrix of its examples, and a row that is mapped holds its
  // kernel values with the landmarks. kService: a kernel service on the operator's list.
  enum class Source { kPrecomputed, kService };

  Source source = Source::kPrecomputed;
  // Of a service: its name on the list, and the kernel's among those that it offers.
  std::string endpoint;
  std::string kernel;

  // Parses `precomputed()` and `service(endpoint=NAME, kernel=NAME)`, the kernel being called as
  // the endpoint if it is left out; nullopt for the text of any other kernel. INVALID_ARGUMENT
  // (BAD_EXPRESSION, metadata "column") for one of the two that is wrong, or that something stands
  // behind: what phimap does not compute is no part of an expression.
  static absl::StatusOr<std::optional<OutsideKernel>> Parse(absl::string_view text);
  // Canonical text with every parameter.
  std::string ToText() const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_OUTSIDE_KERNEL_H_
