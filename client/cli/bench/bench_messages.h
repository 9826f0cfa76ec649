// Requests and answers of a load test, in either protocol that a server speaks.
#ifndef PHIMAP_CLIENT_CLI_BENCH_BENCH_MESSAGES_H_
#define PHIMAP_CLIENT_CLI_BENCH_BENCH_MESSAGES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace phimap::cli {

enum class BenchProtocol {
  // phimap.v1.TransformService/Transform.
  kNative,
  // The Open Inference Protocol's ModelInfer, raw contents.
  kInference,
};

// "native" or "inference".
absl::string_view ProtocolName(BenchProtocol protocol);

// "/package.Service/Method".
const std::string& MethodOf(BenchProtocol protocol);

// Rows to send, and the version that maps them.
struct BenchRows {
  // "name", "name@7", "name@alias" or "name@sha256:digest".
  absl::string_view reference;
  int32_t rows = 0;
  int32_t columns = 0;
  // Float32 numbers, row after row.
  std::string values;
};

// Returns a serialized request.
std::string RequestBytes(BenchProtocol protocol, const BenchRows& rows);

struct BenchAnswer {
  // "name@number".
  std::string version;
  int64_t rows = 0;
  int64_t feature_columns = 0;
  int64_t feature_bytes = 0;
};

// Parses the bytes of an answer. INTERNAL if they are malformed.
absl::StatusOr<BenchAnswer> ReadAnswer(BenchProtocol protocol, absl::string_view bytes);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_BENCH_BENCH_MESSAGES_H_
