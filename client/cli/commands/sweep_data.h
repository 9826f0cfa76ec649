// The rows of a sweep: their identity, and some of them for timing.
#ifndef PHIMAP_CLIENT_CLI_COMMANDS_SWEEP_DATA_H_
#define PHIMAP_CLIENT_CLI_COMMANDS_SWEEP_DATA_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/cpp/row_source.h"

namespace phimap::cli {

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

#endif  // PHIMAP_CLIENT_CLI_COMMANDS_SWEEP_DATA_H_
