// A remote kernel, whose values phimap does not compute: they come with the stream of a build
// (precomputed()), or from the user's own service (service()).
#ifndef PHIMAP_CORE_KERNEL_REMOTE_KERNEL_H_
#define PHIMAP_CORE_KERNEL_REMOTE_KERNEL_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

struct RemoteKernel {
  // kPrecomputed: the stream is the Gram matrix of its examples, and a row to be mapped holds its
  // kernel values with the landmarks. kService: a kernel service on the operator's list.
  enum class Source { kPrecomputed, kService };

  Source source = Source::kPrecomputed;
  // For a kernel service: its name on the list, and the kernel's name there.
  std::string endpoint;
  std::string kernel;

  // Parses `precomputed()` and `service(endpoint=NAME, kernel=NAME)`; kernel defaults to the
  // endpoint's name. Returns nullopt for a text that begins with any other kernel. INVALID_ARGUMENT
  // (EXPRESSION_INVALID, metadata "column") if the call is malformed, or if text follows it,
  // because remote kernels cannot be composed.
  static absl::StatusOr<std::optional<RemoteKernel>> Parse(absl::string_view text);
  // Canonical text with every parameter.
  std::string ToText() const;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_KERNEL_REMOTE_KERNEL_H_
