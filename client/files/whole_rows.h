// Counts the rows in an unfinished file of features.
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
  // Bytes up to the end of the last whole row; 0 if the header is incomplete.
  int64_t end = 0;
  // Header of an npy file.
  NpyHeader npy;
};

// Counts the whole rows of a file that was begun by CsvWriter or NpyWriter, depending on `format`.
// kInvalidArgument for any other file. Reads all of a CSV file, but only the header of npy.
absl::StatusOr<WholeRows> FindWholeRows(const std::string& path, FileFormat format);

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_WHOLE_ROWS_H_
