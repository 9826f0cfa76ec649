// What a request names: for the log and the audit, which say what a call that failed was about.
#ifndef PHIMAP_SERVER_RPC_REQUEST_REFERENCE_H_
#define PHIMAP_SERVER_RPC_REQUEST_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace phimap {

// Returns "name@version", or `name` if there is no version.
inline std::string JoinReference(absl::string_view name, absl::string_view version) {
  return absl::StrCat(name, version.empty() ? "" : "@", version);
}

// Each is "" if the request has none, and may be any text.
struct RequestNames {
  // A name or a reference, in whichever field the request's type has it. Of a stream's messages,
  // only the first may have one.
  std::string reference;
  // The alias that the request sets or deletes.
  std::string alias;
  std::string build_id;
};

// RequestNames::reference of a request.
template <typename Request>
std::string ReferenceIn(const Request& request) {
  if constexpr (requires { request.reference(); }) {
    return request.reference();
  } else if constexpr (requires { request.spec().build().name(); }) {  // Train
    return request.spec().reference().empty() ? request.spec().build().name()
                                              : request.spec().reference();
  } else if constexpr (requires { request.spec().reference(); }) {  // Evaluate
    return request.spec().reference();
  } else if constexpr (requires { request.spec().name(); }) {  // Build
    return request.spec().name();
  } else if constexpr (requires { request.model_version(); }) {  // Open Inference Protocol
    return JoinReference(request.model_name(), request.model_version());
  } else if constexpr (requires {
                         request.name();
                         request.version();
                       }) {
    return JoinReference(request.name(), request.version());
  } else if constexpr (requires { request.name(); }) {
    return request.name();
  } else {
    return "";
  }
}

template <typename Request>
RequestNames NamesIn(const Request& request) {
  RequestNames names;
  names.reference = ReferenceIn(request);
  if constexpr (requires { request.alias(); }) names.alias = request.alias();
  if constexpr (requires { request.build_id(); }) names.build_id = request.build_id();
  if constexpr (requires { request.spec().build_id(); }) {
    names.build_id = request.spec().build_id();
  }
  return names;
}

// The parts of a reference that the log has. All are empty if the text is no reference, since the
// text may then be anything.
struct LoggedReference {
  absl::string_view mapping;
  // At most one of these.
  std::optional<int64_t> version;
  absl::string_view alias;
  absl::string_view digest;
};

// The result points into `reference`.
LoggedReference ReferenceForLog(absl::string_view reference);

// Return the text, or "" if it is no name of an alias, or no id of a build.
absl::string_view AliasForLog(absl::string_view text);
absl::string_view BuildIdForLog(absl::string_view text);

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_REQUEST_REFERENCE_H_
