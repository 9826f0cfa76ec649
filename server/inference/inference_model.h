// The model and the version that a request of the Open Inference Protocol names → a reference.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_MODEL_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_MODEL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/store.h"

namespace phimap {

// Names of the two fields in the request, for errors.
struct ModelFields {
  absl::string_view name;
  absl::string_view version;
};
inline constexpr ModelFields kModelOfInfer{"model_name", "model_version"};
inline constexpr ModelFields kModelAskedFor{"name", "version"};

// "name" or "name@version". INVALID_ARGUMENT (reasons NAME_INVALID, VERSION_INVALID) unless the
// first is a mapping's name and the second a version's number, an alias, a digest after "sha256:",
// or empty for the newest version.
absl::StatusOr<std::string> ReferenceToModel(absl::string_view name, absl::string_view version,
                                             const ModelFields& fields);

// An error about a reference that ReferenceToModel made, in the request's own names. Once the name
// and the version are well formed, only the alias can be wrong in the reference itself.
absl::Status InModelFields(const absl::Status& status, const ModelFields& fields);

// Blocking: the version that a request for `name` and `version` means now. INVALID_ARGUMENT
// (NAME_INVALID, VERSION_INVALID), NOT_FOUND, and errors of the store.
absl::StatusOr<VersionRecord> FindModel(Store& store, absl::string_view name,
                                        absl::string_view version);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_MODEL_H_
