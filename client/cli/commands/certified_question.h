// Converts an evaluation to a request for advice.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_CERTIFIED_QUESTION_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_CERTIFIED_QUESTION_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {

// Reads the output of `phimap evaluate --json` from a file; "-" is standard input. The message of
// kInvalidArgument contains the name of the file.
absl::StatusOr<v1::Evaluation> ReadEvaluation(const std::string& path);

// Fills in margin and alpha of `request`, and classes unless they are set, from the certified
// margin for future rows at `alpha`. Without `alpha`, uses the smallest share whose margin is large
// enough for Advise. With more than two classes the theorems apply to two classes at a time. If the
// right class leads by γ (Definition 7 of Shi et al. 2012), a separator of two of the classes has
// at least the margin γ/2, because the difference of two unit vectors has a length of at most 2.
//
// Returns a sentence for people that says where the margin comes from. Errors: kInvalidArgument if
// no usable margin is certified; the message lists the certified margins.
absl::StatusOr<std::string> AskFromEvaluation(const v1::Evaluation& evaluation,
                                              std::optional<double> alpha,
                                              v1::AdviseRequest& request);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_CERTIFIED_QUESTION_H_
