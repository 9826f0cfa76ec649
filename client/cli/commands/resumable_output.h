// An output that is written row by row and continued after a stop: --resume.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_RESUMABLE_OUTPUT_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_RESUMABLE_OUTPUT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cpp/cancel_token.h"
#include "client/cpp/client.h"
#include "client/cpp/row_source.h"
#include "client/files/file_format.h"
#include "client/files/output_file.h"
#include "client/files/passthrough_cells.h"

namespace phimap::cli {

// Origin of the rows of an output. A version is pinned by its digest: an alias may have moved.
struct RowsOrigin {
  // The command: "transform" or "predict".
  std::string command;
  // The user's request as lines of a name and a value, including the size and time of each file.
  std::vector<std::pair<std::string, std::string>> asked;
  // "letters@3", and its digest.
  std::string version;
  std::string digest;
};

// OUTPUT.partial holds the rows written so far, and OUTPUT.resume is a text that states their
// origin. After kill -9 the last row may be incomplete; the command then continues after the last
// whole row of OUTPUT.partial.
//
// Use: At, then Earlier, then Begin unless there was an earlier run, then Open or OpenLines, then
// End. Not thread-safe.
class OutputProgress {
 public:
  // `output` is a path of a file. kInvalidArgument if it leads to a device or a pipe,
  // kFailedPrecondition if another process writes OUTPUT.partial.
  static absl::StatusOr<OutputProgress> At(const std::string& output);

  // Returns the request of an earlier run and the version that it pinned; nullopt if there was no
  // earlier run. kInvalidArgument if that request differs from `origin`; the message shows the
  // first line that differs.
  absl::StatusOr<std::optional<RowsOrigin>> Earlier(const RowsOrigin& origin) const;
  // Records the origin of the following rows, and drops the rows of OUTPUT.partial.
  absl::Status Begin(const RowsOrigin& origin);

  struct Opened {
    std::unique_ptr<RowWriter> writer;
    // Whole rows that are written already.
    int64_t rows = 0;
  };
  // Returns a writer that appends to the whole rows of OUTPUT.partial; its Finish creates OUTPUT.
  // For `passthrough`, see CsvWriter and CopyWriter.
  absl::StatusOr<Opened> Open(OutputFormat format, std::optional<int64_t> row_count,
                              std::shared_ptr<PassthroughCells> passthrough = nullptr);
  // OUTPUT.partial of a CSV output whose lines another writer appends.
  struct OpenedLines {
    std::unique_ptr<OutputFile> file;
    // Whole rows that are written already, and whether there is a header.
    int64_t rows = 0;
    bool started = false;
  };
  absl::StatusOr<OpenedLines> OpenLines();
  // Removes OUTPUT.resume. Call it once OUTPUT exists.
  void End() const;

  const std::string& partial() const { return partial_; }

 private:
  explicit OutputProgress(const std::string& output);

  std::string output_;
  std::string partial_;
  std::string note_;
  // OUTPUT.partial, locked against other processes. Open passes it to the writer.
  std::unique_ptr<OutputFile> file_;
};

// What --resume found at the output.
struct Resumed {
  OutputProgress progress;
  RowsOrigin origin;
  // Whether there was an earlier run.
  bool earlier = false;
};

// Returns the state of the output. Its `origin` has the version that the earlier run pinned or,
// without an earlier run, the present version of the reference.
absl::StatusOr<Resumed> Resume(const std::string& output, const std::string& reference,
                               RowsOrigin origin, client::RowCalls& maps);

// Returns the origin of an output, without its version. `options` are those of the command that
// decide what is written. kInvalidArgument for an input that is not a file, because a pipe may
// deliver other rows the next time.
absl::StatusOr<RowsOrigin> OriginOf(
    const std::string& command, const std::string& reference, const InputArguments& input,
    const std::vector<std::pair<std::string, std::string>>& options);

// Reads and drops the first `skipped` rows of `source`, and returns the rows after them; null if
// there are none. kInvalidArgument if `source` has fewer than `skipped` rows. `cancel` ends the
// reading.
absl::StatusOr<std::unique_ptr<client::RowSource>> RowsBehind(
    std::unique_ptr<client::RowSource> source, int64_t skipped, client::CancelToken& cancel);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_RESUMABLE_OUTPUT_H_
