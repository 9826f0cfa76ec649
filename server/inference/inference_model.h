// Converts the model name and version in a request of the Open Inference Protocol to a reference.
#ifndef PHIMAP_SERVER_INFERENCE_INFERENCE_MODEL_H_
#define PHIMAP_SERVER_INFERENCE_INFERENCE_MODEL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/store.h"

namespace phimap {

// Names of the request's two fields, for errors.
struct ModelFields {
  absl::string_view name;
  absl::string_view version;
};
inline constexpr ModelFields kModelOfInfer{"model_name", "model_version"};
inline constexpr ModelFields kModelAskedFor{"name", "version"};

// Returns "name" or "name@version". Returns INVALID_ARGUMENT (reasons NAME_INVALID,
// VERSION_INVALID) unless `name` is a mapping's name and `version` is a version's number, an alias,
// "sha256:" and a digest, or empty for the newest version.
absl::StatusOr<std::string> ReferenceToModel(absl::string_view name, absl::string_view version,
                                             const ModelFields& fields);

// Changes the field of an error from "reference", which the request does not have, to the request's
// field for the version. `status` is an error about a reference that ReferenceToModel returned. The
// name in such a reference is well formed, so the part in error is the version.
absl::Status InModelFields(const absl::Status& status, const ModelFields& fields);

// Returns the version that `name` and `version` currently mean. Blocking. Returns INVALID_ARGUMENT
// (NAME_INVALID, VERSION_INVALID), NOT_FOUND, and errors of the store.
absl::StatusOr<VersionRecord> FindModel(Store& store, absl::string_view name,
                                        absl::string_view version);

}  // namespace phimap

#endif  // PHIMAP_SERVER_INFERENCE_INFERENCE_MODEL_H_
