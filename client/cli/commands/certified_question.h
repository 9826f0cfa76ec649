// Turns an evaluation into a question for the advisor.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_CERTIFIED_QUESTION_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_CERTIFIED_QUESTION_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "phimap/v1/evaluation_service.pb.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {

// Reads the output of `phimap evaluate --json`; "-" is standard input. kInvalidArgument names the
// file.
absl::StatusOr<v1::Evaluation> ReadEvaluation(const std::string& path);

// Fills in margin and alpha of `request`, and classes unless they are given: the certified margin
// for future rows at `alpha`, or without one at the smallest share with a margin that the advisor
// can use. With more than two classes the theorems apply to two at a time: where the right class
// leads by γ, Definition 7 of Shi et al. 2012, a separator of two of them has at least the margin
// γ/2, as the difference of two unit vectors has a length of 2 at most.
//
// Returns where the margin comes from, a sentence for people. Errors: kInvalidArgument when no
// usable margin is certified, with the certified ones.
absl::StatusOr<std::string> AskFromEvaluation(const v1::Evaluation& evaluation,
                                              std::optional<double> alpha,
                                              v1::AdviseRequest& request);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_CERTIFIED_QUESTION_H_
