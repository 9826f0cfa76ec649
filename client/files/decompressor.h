// Decompresses data that were written as gzip or zstd.
#ifndef PHIMAP_CLIENT_FILES_DECOMPRESSOR_H_
#define PHIMAP_CLIENT_FILES_DECOMPRESSOR_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap::cli {

// Number of leading bytes that identify a compressed format or show that the data are not
// compressed.
inline constexpr size_t kMagicSizeBytes = 4;

// Decodes a stream piece by piece, in bounded memory. Concatenated streams (gzip's members, zstd's
// frames) count as one. Not thread-safe.
class Decompressor {
 public:
  struct Step {
    size_t taken = 0;
    size_t given = 0;
  };

  virtual ~Decompressor() = default;
  // "gzip" or "zstd".
  virtual absl::string_view name() const = 0;
  // Consumes bytes of `in` and writes at most `capacity` bytes to `out`. After a step that fills
  // `out`, there may be more output without more input. Bytes of another format are
  // kInvalidArgument.
  virtual absl::StatusOr<Step> Decode(absl::string_view in, char* out, size_t capacity) = 0;
  // Whether the stream may end after the input taken so far.
  virtual bool AtEnd() const = 0;
};

// Returns a decompressor for a stream that begins with `first_bytes`; null if the stream is neither
// gzip nor zstd.
std::unique_ptr<Decompressor> DecompressorFor(absl::string_view first_bytes);

// Whether more bytes may still make these the beginning of a compressed stream.
bool MayBeCompressed(absl::string_view first_bytes);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_DECOMPRESSOR_H_
