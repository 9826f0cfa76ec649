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

// One mapping, and a learner's result on it.
struct SweepPoint {
  SweepKey key;
  // Kind of mapping, such as "f2"; landmarks and policy are unset where there are no landmarks.
  std::string mapping;
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

// Returns the texts of all mappings of a sweep: each of `mappings`, such as "f1,f2(landmarks=50)",
// combined with each of `landmarks`, `dimensions` and `policies`. All four are lists separated by
// commas; the last three may be empty. A mapping with parentheses is not combined. kInvalidArgument
// if there are no mappings. Pure.
absl::StatusOr<std::vector<std::string>> SweepSpecs(const std::string& mappings,
                                                    const std::string& landmarks,
                                                    const std::string& dimensions,
                                                    const std::string& policies);

// Reads the points of a file; none if there is no file. A last line without a line end is dropped,
// because it is the rest of an interrupted write. The message of kInvalidArgument contains the
// number of the invalid line.
absl::StatusOr<std::vector<SweepPoint>> ReadSweep(const std::string& path);
// Appends a line and returns once it is on the disk. An incomplete last line is replaced.
absl::Status AppendToSweep(const std::string& path, const SweepPoint& point);

struct SweepData {
  // SHA-256 over all rows, in hexadecimal. Each row contributes its label, a zero byte, and then
  // its numbers as little-endian float64, or its text and another zero byte. Equal to the digest of
  // phimap.sweep in Python.
  std::string digest;
  // The first rows, which are used for timing.
  client::ExampleBlock timed;
};

// Reads all rows, in bounded memory.
absl::StatusOr<SweepData> ReadSweepData(client::LabeledRowSource& rows);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_SWEEP_POINTS_H_
