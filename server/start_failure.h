// The last line of a phimapd that cannot start: why, on stderr, in the format of its log.
#ifndef PHIMAP_SERVER_START_FAILURE_H_
#define PHIMAP_SERVER_START_FAILURE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/observe/log_line.h"
#include "server/options.h"

namespace phimap {

// Returns the format that the command line, the environment or the file of --config asks for, even
// if the rest of it is refused.
LogFormat AskedLogFormat(int argc, const char* const* argv);

// Writes the line, whatever the level of the log, and returns the exit code. `what`: what could not
// be done, such as "cannot open the store"; may be empty. In text, the line is for a person at a
// terminal and no line of the log.
int FailToStart(LogFormat format, ServerExitCode exit_code, absl::string_view what,
                const absl::Status& why);

}  // namespace phimap

#endif  // PHIMAP_SERVER_START_FAILURE_H_
