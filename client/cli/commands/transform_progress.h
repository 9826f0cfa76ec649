// State of a stopped transform, from which the repeated command continues.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_TRANSFORM_PROGRESS_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_TRANSFORM_PROGRESS_H_

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
#include "client/cpp/row_source.h"
#include "client/files/file_format.h"
#include "client/files/output_file.h"
#include "client/files/row_writer.h"

namespace phimap::cli {

// Origin of the features. A version is pinned by its digest: an alias may have moved.
struct TransformOrigin {
  // The user's request as lines of a name and a value, including the size and time of each file.
  std::vector<std::pair<std::string, std::string>> asked;
  // "letters@3", and its digest.
  std::string version;
  std::string digest;
};

// Returns the origin of a transform, without its version. kInvalidArgument for an input that is not
// a file, because a pipe may deliver other rows the next time.
absl::StatusOr<TransformOrigin> OriginOf(const std::string& reference, const InputArguments& input,
                                         FileFormat output_format, bool residual);

// OUTPUT.partial holds the rows written so far, and OUTPUT.resume is a text that states their
// origin. After kill -9 the last row may be incomplete; the command then continues after the last
// whole row of OUTPUT.partial.
//
// Use: At, then Earlier, then Begin unless there was an earlier run, then Open, then End. Not
// thread-safe.
class TransformProgress {
 public:
  // `output` is a path of a file. kInvalidArgument if it leads to a device or a pipe,
  // kFailedPrecondition if another process writes OUTPUT.partial.
  static absl::StatusOr<TransformProgress> At(const std::string& output);

  // Returns the request of an earlier run and the version that it pinned; nullopt if there was no
  // earlier run. kInvalidArgument if that request differs from `origin`; the message shows the
  // first line that differs.
  absl::StatusOr<std::optional<TransformOrigin>> Earlier(const TransformOrigin& origin) const;
  // Records the origin of the following rows, and drops the rows of OUTPUT.partial.
  absl::Status Begin(const TransformOrigin& origin);

  struct Opened {
    std::unique_ptr<RowWriter> writer;
    // Whole rows that are written already.
    int64_t rows = 0;
  };
  // Returns a writer that appends to the whole rows of OUTPUT.partial; its Finish creates OUTPUT.
  // For `passthrough`, see CsvWriter.
  absl::StatusOr<Opened> Open(FileFormat format, std::optional<int64_t> row_count,
                              std::shared_ptr<PassthroughCells> passthrough = nullptr);
  // Removes OUTPUT.resume. Call it once OUTPUT exists.
  void End() const;

  const std::string& partial() const { return partial_; }

 private:
  explicit TransformProgress(const std::string& output);

  std::string output_;
  std::string partial_;
  std::string note_;
  // OUTPUT.partial, locked against other processes. Open passes it to the writer.
  std::unique_ptr<OutputFile> file_;
};

// Reads and drops the first `skipped` rows of `source`, and returns the rows after them; null if
// there are none. kInvalidArgument if `source` has fewer than `skipped` rows. `cancel` ends the
// reading.
absl::StatusOr<std::unique_ptr<client::RowSource>> RowsBehind(
    std::unique_ptr<client::RowSource> source, int64_t skipped, client::CancelToken& cancel);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_TRANSFORM_PROGRESS_H_
