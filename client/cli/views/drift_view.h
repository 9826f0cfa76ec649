// The evidence for drift, as people read it.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_DRIFT_VIEW_H_
#define PHIMAP_CLIENT_CLI_VIEWS_DRIFT_VIEW_H_

#include <string>

#include "absl/strings/string_view.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {

// Returns some lines for each alias: what the test says, what it promises, the size of the shift,
// and the scores and columns that stand out. Pure.
std::string RenderDrift(absl::string_view mapping, const v1::GetDriftResponse& drift);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_DRIFT_VIEW_H_
