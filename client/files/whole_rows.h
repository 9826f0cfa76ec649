// Number of rows in a file of features that was not finished.
#ifndef PHIMAP_CLIENT_FILES_WHOLE_ROWS_H_
#define PHIMAP_CLIENT_FILES_WHOLE_ROWS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/files/file_format.h"
#include "client/files/npy_reader.h"

namespace phimap::cli {

struct WholeRows {
  int64_t rows = 0;
  // Bytes up to the end of the last; 0 if not even the header is whole.
  int64_t end = 0;
  // Header of an npy file.
  NpyHeader npy;
};

// Counts the rows of a file that CsvWriter or NpyWriter (`format`) began. kInvalidArgument if it is
// not one of theirs. Reads a CSV file once, of npy the header alone.
absl::StatusOr<WholeRows> FindWholeRows(const std::string& path, FileFormat format);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_WHOLE_ROWS_H_
