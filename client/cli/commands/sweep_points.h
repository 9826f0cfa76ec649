// The points of a sweep and the file that keeps them, and the rows: their identity, and some of
// them for timing.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_SWEEP_POINTS_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_SWEEP_POINTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/row_source.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {

// Identity of a point. A point that is already in the file is not measured again.
struct SweepKey {
  // For example "f2(landmarks=100, policy=uniform)".
  std::string spec;
  std::string kernel;
  // At most 2^53, the largest integer that JSON's numbers hold exactly.
  int64_t seed = 0;
  std::string learner;
  // SHA-256 of the labels and rows.
  std::string data;
  bool standardize = false;

  bool operator==(const SweepKey&) const = default;
};

// One version, and a learner's result on it.
struct SweepPoint {
  SweepKey key;
  // Family, such as "f2"; landmarks and policy are unset where there are no landmarks.
  std::string family;
  std::optional<int64_t> landmarks;
  std::optional<std::string> policy;
  int32_t output_columns = 0;
  // Share of the tested rows that the learner got wrong, and its standard error.
  double error = 0;
  double error_standard_error = 0;
  // Interval of the error on rows to come, confidence 0.95. Unset in lines of earlier releases.
  std::optional<double> error_low = std::nullopt;
  std::optional<double> error_high = std::nullopt;
  // Unset if it was not measured.
  std::optional<double> kernel_error_mean;
  double microseconds_per_row = 0;
  int64_t rows = 0;
  int64_t tested_rows = 0;
  // SHA-256 of the version's artifact.
  std::string digest;
};

// Returns a point as one line of JSON without a line end, in the format phimap-sweep-1, which
// phimap.sweep in Python also writes and reads. Numbers parse back exactly. Pure.
std::string SweepLine(const SweepPoint& point);
// Parses a line of SweepLine; kInvalidArgument for any other text. Pure.
absl::StatusOr<SweepPoint> ParseSweepLine(const std::string& line);

// A parameter of a sweep, and its values, separated by commas; "" if the user gave none.
struct SweptParameter {
  std::string name;
  std::string values;
};

// Returns the specs of a sweep, each once: every family of the list `families`, such as
// "f1,f2(landmarks=50)", with all combinations of those of `parameters` that the family has. A spec
// with parentheses is used as it is. `known` are the server's families. kInvalidArgument for an
// unknown family, and for a parameter that no family has. Pure.
absl::StatusOr<std::vector<std::string>> SweepSpecs(
    const std::string& families, const std::vector<SweptParameter>& parameters,
    const google::protobuf::RepeatedPtrField<v1::Capability>& known);

// Reads the points of a file; none if there is no file. A last line without a line end is dropped,
// because it is the rest of an interrupted write. The message of kInvalidArgument contains the
// number of the invalid line.
absl::StatusOr<std::vector<SweepPoint>> ReadSweep(const std::string& path);
// Checks that AppendToSweep can write to the file, and leaves it as it was. kInvalidArgument with
// the cause.
absl::Status CheckSweepIsWritable(const std::string& path);
// Appends a line and returns once it is on the disk. An incomplete last line is replaced.
absl::Status AppendToSweep(const std::string& path, const SweepPoint& point);

struct SweepData {
  // SHA-256 over all rows, in hexadecimal. Each row contributes its label, a zero byte, and then
  // its numbers as little-endian float64, or its text and another zero byte. Equal to the digest of
  // phimap.sweep in Python.
  std::string digest;
  int64_t rows = 0;
  // 0 for strings.
  int32_t columns = 0;
  // The first rows, which are used for timing.
  client::ExampleBlock timed;
};

// Reads all rows, in bounded memory.
absl::StatusOr<SweepData> ReadSweepData(client::LabeledRowSource& rows);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_SWEEP_POINTS_H_
