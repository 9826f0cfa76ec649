// How many rows a file of features holds that was not finished.
#ifndef PHIMAP_CLIENT_CLI_WHOLE_ROWS_H_
#define PHIMAP_CLIENT_CLI_WHOLE_ROWS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/file_format.h"
#include "client/cli/npy_reader.h"

namespace phimap::cli {

struct WholeRows {
  int64_t rows = 0;
  // Bytes up to the end of the last; 0 if not even the header is whole.
  int64_t end = 0;
  // Of npy.
  NpyHeader npy;
};

// Counts the rows of a file that CsvWriter or NpyWriter (`format`) began. kInvalidArgument if it is
// not one of theirs. Reads a CSV file once, of npy the header alone.
absl::StatusOr<WholeRows> FindWholeRows(const std::string& path, FileFormat format);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_WHOLE_ROWS_H_
