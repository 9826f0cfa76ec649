// Advice, drawn for people.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_ADVICE_VIEW_H_
#define PHIMAP_CLIENT_CLI_VIEWS_ADVICE_VIEW_H_

#include <string>

#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {

// Renders the verdict with the proposed command, then the question, then a block for each theorem,
// with a row for each tier and the reason for each number. Sentences are wrapped at `width`. UTF-8,
// ends with a newline. Pure.
std::string RenderAdvice(const v1::AdviseRequest& request, const v1::AdviseResponse& response,
                         int width);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_ADVICE_VIEW_H_
