// A file or standard output that appears whole or not at all.
#ifndef PHIMAP_CLIENT_FILES_OUTPUT_FILE_H_
#define PHIMAP_CLIENT_FILES_OUTPUT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap::cli {

// Reason of the error of a write to a pipe whose reader is gone.
inline constexpr char kReaderIsGone[] = "READER_IS_GONE";

// Writes to a temporary file in the folder of the path. Commit renames it; the destructor removes
// it if it was not committed. Standard output, devices and pipes are written directly.
//
// Thread-safety: one thread at a time.
class OutputFile {
 public:
  // "-" is standard output. A path that cannot be written is kInvalidArgument.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Open(const std::string& path);
  // Opens a file that can be continued later if it is not committed: creates or opens `partial`,
  // which Commit renames to `path`. Without Commit, `partial` is removed unless `keep` is set or
  // Keep was called. kFailedPrecondition while another process has it open in this way.
  static absl::StatusOr<std::unique_ptr<OutputFile>> OpenPartial(const std::string& partial,
                                                                 const std::string& path,
                                                                 bool keep);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // For messages: the path, or "standard output".
  const std::string& name() const { return name_; }
  absl::Status Append(absl::string_view bytes);
  // Whether WriteAtStart works: false for pipes, terminals, and files opened for appending.
  bool seekable() const { return start_ >= 0; }
  // Replaces the first bytes that were appended. REQUIRES: seekable().
  absl::Status WriteAtStart(absl::string_view bytes);
  // Keeps the file even without a Commit. REQUIRES: the file was opened with OpenPartial.
  void Keep() { kept_ = true; }
  // Drops all but the first `size` bytes; Append then continues after them. REQUIRES: the file was
  // opened with OpenPartial.
  absl::Status CutOff(int64_t size);
  // Makes the file appear under its name, in place of a file that was there. Call once, last.
  absl::Status Commit();

 private:
  OutputFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  absl::Status OpenTemporary(const std::string& path);
  absl::Status Failed(absl::string_view what) const;

  int fd_;
  const std::string name_;
  bool owned_ = false;
  // Whether the temporary file is kept without a Commit.
  bool kept_ = false;
  // Position of the first byte; -1 if the first bytes cannot be replaced.
  int64_t start_ = -1;
  // Path of the temporary file; empty if the output is written directly.
  std::string temporary_;
  std::string target_;
};

// kInvalidArgument if both paths lead to the same regular file, by whatever names and links: the
// output would replace the rows it is computed from. "-" is standard input and output. Reads and
// creates nothing.
absl::Status RefuseOverwritingInput(const std::string& input, const std::string& output);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_OUTPUT_FILE_H_
