// The format of NumPy's .npy files: the header, and values of its types as float32 or float64.
#ifndef PHIMAP_PROTO_ROWS_NPY_FORMAT_H_
#define PHIMAP_PROTO_ROWS_NPY_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap {

enum class NpyType {
  kFloat16,
  kFloat32,
  kFloat64,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64
};

// Parses a descr, for instance '<f4' with its quotes. Any other type is kInvalidArgument; the
// message gives the NumPy call that converts it.
absl::StatusOr<NpyType> ParseNpyType(absl::string_view descr);

int64_t StoredSizeBytes(NpyType type);

// Whether float32 holds every value of the type, so that values are sent as float32. Others are
// sent as float64, which holds integers of 64 bits exactly only up to 2^53.
bool SentAsFloat32(NpyType type);

// Converts the values of `stored` to the type that is sent, in `sent`. Returns the position of the
// first value that cannot be converted exactly, in which case `sent` is unspecified.
std::optional<int64_t> CastExactly(NpyType type, const std::string& stored, std::string& sent);

// Returns value number `place`, counted from 0, as text. REQUIRES: `type` is an integer type.
std::string IntegerText(NpyType type, const std::string& stored, int64_t place);

// Content of an array's header.
struct NpyHeader {
  NpyType type = NpyType::kFloat32;
  // Whether the values are stored column by column (Fortran order) instead of row by row.
  bool by_column = false;
  int64_t rows = 0;
  int32_t columns = 0;
};

// Parses the dictionary of a header, for instance {'descr': '<f4', 'fortran_order': False, 'shape':
// (3, 2), }. kInvalidArgument unless the array is two-dimensional and holds little-endian numbers;
// the message gives the NumPy call that converts it. Pure.
absl::StatusOr<NpyHeader> ParseNpyDictionary(absl::string_view text);

// Where a file's dictionary is, by its first bytes: the magic, the version, and the size of the
// dictionary in 2 bytes (version 1.0) or 4 (2.0).
struct NpyStart {
  // Bytes before the dictionary.
  size_t start = 0;
  size_t dictionary = 0;
};

// Number of bytes that ReadNpyStart needs at most.
inline constexpr size_t kNpyStartSizeBytes = 12;

// Reads the first bytes of a file, of which there are kNpyStartSizeBytes unless the file is
// shorter. INVALID_ARGUMENT if this is not a .npy file, has another version, or if the dictionary
// is larger than that of any array.
absl::StatusOr<NpyStart> ReadNpyStart(absl::string_view bytes);

// Size of the header: a multiple of 64, as the format requires, with space for the longest shape.
inline constexpr int64_t kNpyHeaderSizeBytes = 128;

// Returns the header of a version 1.0 file.
std::string NpyHeaderBytes(bool float32, int64_t rows, int32_t columns);

}  // namespace phimap

#endif  // PHIMAP_PROTO_ROWS_NPY_FORMAT_H_
