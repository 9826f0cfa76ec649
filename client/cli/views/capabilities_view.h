// Draws what a server can build and learn.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_CAPABILITIES_VIEW_H_
#define PHIMAP_CLIENT_CLI_VIEWS_CAPABILITIES_VIEW_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {

// Lists the names of all kinds, one line each. Ends with a newline. Pure.
std::string RenderCapabilities(const v1::ListCapabilitiesResponse& all, int width);

// Lists each capability with its parameters. Pure.
std::string RenderKind(const google::protobuf::RepeatedPtrField<v1::Capability>& capabilities,
                       int width);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_CAPABILITIES_VIEW_H_
