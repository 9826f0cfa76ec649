// A version and its certificate, drawn for people.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_CERTIFICATE_VIEW_H_
#define PHIMAP_CLIENT_CLI_VIEWS_CERTIFICATE_VIEW_H_

#include <string>

#include "absl/strings/string_view.h"
#include "phimap/v1/mapping.pb.h"

namespace phimap::cli {

// Renders several lines: the version and its verdict, the measurements, and then the theorem and
// the warnings. Each number has its unit and a few words on its meaning. Values that were not
// measured are reported as such. Lines that hold the server's sentences are wrapped at `width`.
// UTF-8, ends with a newline. Pure.
std::string RenderVersion(const v1::Version& version, int width, bool color = false);

// Renders an exported artifact, which has no name, number or time yet: with the name of its `file`
// as the title, and with the result of its reference vectors. Pure.
std::string RenderArtifact(absl::string_view file, const v1::Version& version,
                           bool reference_vectors_ran, int width);

// Renders one line without a newline, such as "letters@3: 499 features, rank 499 of 500, kernel
// error mean 0.012, max 0.34". Pure.
std::string RenderVersionLine(const v1::Version& version);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_CERTIFICATE_VIEW_H_
