// What people see: a version and its certificate, an estimate, advice, an evaluation, drift, the
// capabilities of a server, and errors.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_VIEWS_H_
#define PHIMAP_CLIENT_CLI_VIEWS_VIEWS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"
#include "phimap/v1/learning_service.pb.h"
#include "phimap/v1/mapping.pb.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {

// Adds a line to `out`: a name, its value, and what the value means. Pure.
void AddFact(std::string& out, absl::string_view name, absl::string_view value,
             absl::string_view meaning = "");

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

// Plots the eigenvalues, one column each, as shares of the trace on a logarithmic scale; a line for
// each effective dimension follows. The plot has at most `width` columns, and drops the eigenvalues
// that do not fit on the right. Empty if there are no eigenvalues. The length of the text is
// bounded, whatever the numbers are.
std::string RenderSpectrum(const v1::Certificate::Spectrum& spectrum, int width);

// One line for each number and its meaning, and a warning, wrapped at `width`, if the server would
// refuse the build. UTF-8, ends with a newline. Pure.
std::string RenderEstimate(int64_t rows, int32_t columns, const v1::EstimateBuildResponse& estimate,
                           int width);

// Whether all features of the reference vectors are 0, in which case equal bits show nothing. Early
// releases could build such versions under a kernel that is 0 far from the landmarks. Pure.
bool SelfCheckIsAllZero(const v1::SelfCheck& check);

// Renders the verdict with the proposed command, then the question, then a block for each theorem,
// with a row for each tier and the reason for each number. Sentences are wrapped at `width`. UTF-8,
// ends with a newline. Pure.
std::string RenderAdvice(const v1::AdviseRequest& request, const v1::AdviseResponse& response,
                         int width);

// Errors, classes, margins and certified margins. Sentences are wrapped at `width`. UTF-8, ends
// with a newline. Pure.
std::string RenderEvaluation(const v1::Evaluation& evaluation, int width);

// Returns some lines for each alias: what the test says, what it promises, the size of the shift,
// and the scores and columns that stand out. Pure.
std::string RenderDrift(absl::string_view name, const v1::GetDriftResponse& drift);

// Renders the head of a version: what it predicts, how well, beside what, and how it came to be.
// The sentences are wrapped at `width`. UTF-8, ends with a newline. REQUIRES: the version has a
// head.
std::string RenderHead(const v1::Version& version, int width);

// Lists the names of all kinds, one line each. Ends with a newline. Pure.
std::string RenderCapabilities(const v1::ListCapabilitiesResponse& all, int width);

// Lists each capability with its parameters. Pure.
std::string RenderKind(const google::protobuf::RepeatedPtrField<v1::Capability>& capabilities,
                       int width);

// Returns one line "phimap: message" and, where it helps, lines that say when to retry and how to
// start a server that cannot be reached. Ends with a newline. The message uses the user's words:
// the options of `command` ("build") instead of the API's fields, and the row of the input if
// WithInputRow set it. If `command` is empty, the API's fields are kept, for programs that compare
// them. REQUIRES: status is not OK. Pure.
std::string ErrorText(const absl::Status& status, absl::string_view server,
                      absl::string_view command);

// Attaches the number of the row in the input to an error about a row, because the server counts
// rows within a request. `rows_before` rows were in earlier requests. Pure.
absl::Status WithInputRow(const absl::Status& status, int64_t rows_before);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_VIEWS_H_
