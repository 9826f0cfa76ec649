// A file or standard input, as bytes.
#ifndef PHIMAP_CLIENT_CLI_INPUT_FILE_H_
#define PHIMAP_CLIENT_CLI_INPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace phimap::cli {

// Reads in order; waits for a pipe or a terminal until bytes come or Interrupt is called.
//
// Thread-safety: one thread, except Interrupt, which any thread may call.
class InputFile {
 public:
  // "-" is standard input. A file that cannot be opened, or a folder, is kInvalidArgument with its
  // name.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // For messages: the path, or "standard input".
  const std::string& name() const { return name_; }
  // Reads 1..capacity bytes into `buffer` and returns how many; 0 at the end. kCancelled after
  // Interrupt.
  absl::StatusOr<size_t> Read(char* buffer, size_t capacity);
  // Regular files can be read again; pipes cannot.
  bool CanRewind() const { return regular_; }
  // Back to the first byte; forgets an Interrupt.
  absl::Status Rewind();
  void Interrupt();

 private:
  InputFile(int fd, bool owned, std::string name);
  absl::Status WaitForBytes();

  const int fd_;
  const bool owned_;
  const std::string name_;
  bool regular_ = false;
  int64_t start_ = 0;
  // Readable while interrupted.
  int wake_read_ = -1;
  int wake_write_ = -1;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_INPUT_FILE_H_
