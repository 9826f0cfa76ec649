// The estimate of a build, drawn for people.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_ESTIMATE_VIEW_H_
#define PHIMAP_CLIENT_CLI_VIEWS_ESTIMATE_VIEW_H_

#include <cstdint>
#include <string>

#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {

// One line for each number and its meaning, and a warning, wrapped at `width`, if the server would
// refuse the build. UTF-8, ends with a newline. Pure.
std::string RenderEstimate(int64_t rows, int32_t columns, const v1::EstimateBuildResponse& estimate,
                           int width);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_ESTIMATE_VIEW_H_
