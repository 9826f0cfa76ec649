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
  // The user's request, as lines of a name and a value; the files with their sizes and times.
  std::vector<std::pair<std::string, std::string>> asked;
  // "letters@3", and its digest.
  std::string version;
  std::string digest;
};

// The lines of a transform. kInvalidArgument for an input that is not a file: whether a pipe brings
// the same rows again, nobody can tell.
absl::StatusOr<TransformOrigin> OriginOf(const std::string& reference, const InputArguments& input,
                                         FileFormat output_format, bool residual);

// OUTPUT.partial, which holds the written rows, and OUTPUT.resume, a text that names their origin.
// The last row may be half there after kill -9: the number of whole rows in OUTPUT.partial is where
// to go on.
//
// Use: At, then Earlier, then Begin unless there was an earlier run, then Open, then End.
// Thread-safety: one thread.
class TransformProgress {
 public:
  // `output` is a path of a file. kInvalidArgument if it leads to a device or a pipe,
  // kFailedPrecondition if another process writes OUTPUT.partial.
  static absl::StatusOr<TransformProgress> At(const std::string& output);

  // Request of an earlier run and the version that it pinned; none if there was no such run.
  // kInvalidArgument, naming the line that differs, if its request was not `origin`'s.
  absl::StatusOr<std::optional<TransformOrigin>> Earlier(const TransformOrigin& origin) const;
  // Records the origin of the following rows, and drops the rows of OUTPUT.partial.
  absl::Status Begin(const TransformOrigin& origin);

  struct Opened {
    std::unique_ptr<RowWriter> writer;
    // Whole rows that are written already.
    int64_t rows = 0;
  };
  // A writer behind the whole rows of OUTPUT.partial; its Finish makes OUTPUT appear.
  // `passthrough` as for CsvWriter.
  absl::StatusOr<Opened> Open(FileFormat format, std::optional<int64_t> row_count,
                              std::shared_ptr<PassthroughCells> passthrough = nullptr);
  // Once OUTPUT has appeared.
  void End() const;

  const std::string& partial() const { return partial_; }

 private:
  explicit TransformProgress(const std::string& output);

  std::string output_;
  std::string partial_;
  std::string note_;
  // Locked; Open hands it on.
  std::unique_ptr<OutputFile> file_;
};

// The rows of `source` behind the first `skipped`, which are read and dropped. kInvalidArgument if
// it has fewer. `cancel` ends the reading.
absl::StatusOr<std::unique_ptr<client::RowSource>> RowsBehind(
    std::unique_ptr<client::RowSource> source, int64_t skipped, client::CancelToken& cancel);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_TRANSFORM_PROGRESS_H_
