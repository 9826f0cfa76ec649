// An evaluation, drawn for people.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_EVALUATION_VIEW_H_
#define PHIMAP_CLIENT_CLI_VIEWS_EVALUATION_VIEW_H_

#include <string>

#include "phimap/v1/evaluation_service.pb.h"

namespace phimap::cli {

// Errors, classes, margins and certified margins. Sentences are wrapped at `width`. UTF-8, ends
// with a newline. Pure.
std::string RenderEvaluation(const v1::Evaluation& evaluation, int width);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_EVALUATION_VIEW_H_
