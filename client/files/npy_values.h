// Converts the values of a .npy file to the numbers that are sent, float32 or float64.
#ifndef PHIMAP_CLIENT_FILES_NPY_VALUES_H_
#define PHIMAP_CLIENT_FILES_NPY_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/row_source.h"

namespace phimap::cli {

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

// Returns the smaller of float32 and float64 that holds every value of the type. For integers of 64
// bits returns float64, which holds them exactly only up to 2^53.
client::FloatType SentType(NpyType type);

// Converts the values of `stored` to type SentType, in `sent`. Returns the position of the first
// value that cannot be converted exactly, in which case `sent` is unspecified.
std::optional<int64_t> CastExactly(NpyType type, const std::string& stored, std::string& sent);

// Returns value number `place`, counted from 0, as text. REQUIRES: `type` is an integer type.
std::string IntegerText(NpyType type, const std::string& stored, int64_t place);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_NPY_VALUES_H_
