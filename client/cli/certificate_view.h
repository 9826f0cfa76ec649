// A version and its certificate, drawn for people.
#ifndef PHIMAP_CLIENT_CLI_CERTIFICATE_VIEW_H_
#define PHIMAP_CLIENT_CLI_CERTIFICATE_VIEW_H_

#include <string>

#include "absl/strings/string_view.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap::cli {

// Several lines: what was built and whether it is good, then what was measured, each number with
// its unit and a few words on what it means; then the theorem and the warnings. What was not
// measured is said to be so. Lines that hold the server's sentences are wrapped at `width`. UTF-8,
// ends with a newline. Pure.
std::string RenderVersion(const v1::Version& version, int width, bool color = false);

// The same of an exported artifact, which has no name, number or time yet: under the name of its
// `file`, and with what became of its golden vectors. Pure.
std::string RenderArtifact(absl::string_view file, const v1::Version& version,
                           bool golden_vectors_ran, int width);

// The same in one line without a newline, as in "letters@3: 499 features, rank 499 of 500, kernel
// error mean 0.012, max 0.34". Pure.
std::string RenderVersionLine(const v1::Version& version);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_CERTIFICATE_VIEW_H_
