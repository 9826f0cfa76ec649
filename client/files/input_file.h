// The files that a command line gives, and one of them that is read, as stored or decompressed.
#ifndef PHIMAP_CLIENT_FILES_INPUT_FILE_H_
#define PHIMAP_CLIENT_FILES_INPUT_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/rows/byte_source.h"

namespace phimap::cli {

class Decompressor;

// Reads in order. Blocks on a pipe or a terminal until bytes arrive or Interrupt is called.
// Recognises gzip and zstd by the first bytes, whatever the name, and decompresses them.
//
// Thread-safety: one thread, except Interrupt and share_read, which any thread may call.
class InputFile final : public ByteSource {
 public:
  // Opens a path; "-" is standard input. kInvalidArgument, with the name, for a folder or a file
  // that cannot be opened.
  static absl::StatusOr<std::unique_ptr<InputFile>> Open(const std::string& path);
  ~InputFile() override;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // For messages: the path, or "standard input".
  const std::string& name() const override { return name_; }
  // Reads 1..capacity bytes into `buffer` and returns how many; 0 at the end. kCancelled after
  // Interrupt. A compressed file that is damaged or cut off is kInvalidArgument.
  absl::StatusOr<size_t> Read(char* buffer, size_t capacity) override;
  // Reads `size` bytes from `offset` on, or fewer at the end of the file. Does not change the
  // position of Read. REQUIRES: CanSeek().
  absl::StatusOr<size_t> ReadAt(int64_t offset, char* buffer, size_t size);
  // Whether any position can be read: true for regular, uncompressed files, once a byte was read.
  bool CanSeek() const { return regular_ && looked_ && decompressor_ == nullptr; }
  // Share of the file's bytes that was read, 0..1; nullopt for a pipe, whose size is unknown.
  std::optional<double> share_read() const;
  // Regular files can be read again; pipes cannot.
  bool CanRewind() const { return regular_; }
  // Returns to the first byte and clears an Interrupt.
  absl::Status Rewind();
  void Interrupt();

 private:
  InputFile(int fd, bool owned, std::string name);
  absl::Status WaitForBytes();
  // Reads bytes as stored, without decompression.
  absl::StatusOr<size_t> ReadStored(char* buffer, size_t capacity);
  // Reads the first bytes and detects compression.
  absl::Status Look();
  absl::StatusOr<size_t> ReadDecompressed(char* buffer, size_t capacity);
  absl::Status Damaged(absl::string_view what) const;

  const int fd_;
  const bool owned_;
  const std::string name_;
  bool regular_ = false;
  int64_t start_ = 0;
  int64_t size_bytes_ = 0;
  std::atomic<int64_t> stored_bytes_read_ = 0;
  bool looked_ = false;
  // Null if the file is not compressed.
  std::unique_ptr<Decompressor> decompressor_;
  // Stored bytes that were read but not yet consumed begin at taken_.
  std::string stored_;
  size_t taken_ = 0;
  bool more_without_input_ = false;
  // Pipe that is readable while the file is interrupted.
  int wake_read_ = -1;
  int wake_write_ = -1;
};

// Returns the files of all words, in the order of the words. A word is a path, "-" for standard
// input, or a pattern with *, ? or […], whose matches are in byte order (part-10 before part-2). A
// word that is the name of an existing file is not treated as a pattern. kInvalidArgument for a
// pattern without matches, and if standard input is given twice.
absl::StatusOr<std::vector<std::string>> FilesNamed(const std::vector<std::string>& words);

// Returns the path without the ending of a compressed file: "rows.csv" for "rows.csv.gz".
absl::string_view WithoutCompression(absl::string_view path);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_INPUT_FILE_H_
