// Reads and writes little-endian fields of artifacts.
#ifndef PHIMAP_CORE_PLAN_BYTE_CODEC_H_
#define PHIMAP_CORE_PLAN_BYTE_CODEC_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

// Appends fields to a string.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}

  template <typename T>
  void Number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    out_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  template <typename T>
  void Numbers(const T* values, int64_t count) {
    out_.append(reinterpret_cast<const char*>(values), sizeof(T) * static_cast<size_t>(count));
  }
  // Appends the length (u32) and the bytes.
  void Text(absl::string_view text);
  // Appends zeros up to the next multiple of `alignment`, counted from the start of the string.
  void AlignTo(int64_t alignment);

 private:
  std::string& out_;
};

// Reads fields from bytes. Every read is checked. The first failure is kept in status() and every
// later read returns zero or nothing, so that a caller may read a whole table and check once.
class ByteReader {
 public:
  // `base` is the offset of `bytes` in the artifact. Error messages count from the artifact's
  // start.
  ByteReader(absl::string_view bytes, int64_t base) : bytes_(bytes), base_(base) {}

  template <typename T>
  T Number() {
    static_assert(std::is_arithmetic_v<T>);
    T value{};
    if (Want(sizeof(T), "a number")) {
      std::memcpy(&value, bytes_.data() + position_, sizeof(T));
      position_ += sizeof(T);
    }
    return value;
  }
  // Reads `count` numbers. The pointer is into the bytes and may be misaligned. Returns nullptr on
  // failure. Allocates nothing.
  template <typename T>
  const char* Numbers(int64_t count) {
    return Bytes(count, sizeof(T));
  }
  // Reads a text that ByteWriter::Text wrote, of at most `limit` bytes.
  std::string Text(int64_t limit);
  // Skips zeros up to the next multiple of `alignment`, counted from the start of the artifact.
  void AlignTo(int64_t alignment);
  // Fails the reader with DATA_LOSS at the current offset.
  void Fail(absl::string_view what);
  // Fails unless low <= value <= high.
  void CheckRange(absl::string_view what, int64_t value, int64_t low, int64_t high);
  // Returns OK if nothing failed and no bytes are left.
  absl::Status Finish();

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }
  int64_t left() const { return static_cast<int64_t>(bytes_.size() - position_); }

 private:
  const char* Bytes(int64_t count, int64_t size);
  bool Want(int64_t bytes, absl::string_view what);

  absl::string_view bytes_;
  int64_t base_;
  size_t position_ = 0;
  absl::Status status_;
};

// Returns DATA_LOSS (reason ARTIFACT_MALFORMED) at a byte offset of the artifact.
absl::Status DamagedArtifact(int64_t offset, absl::string_view what);

}  // namespace phimap

#endif  // PHIMAP_CORE_PLAN_BYTE_CODEC_H_
