// Destination of rows that leave the program.
#ifndef PHIMAP_CLIENT_FILES_ROW_WRITER_H_
#define PHIMAP_CLIENT_FILES_ROW_WRITER_H_

#include "absl/status/status.h"
#include "client/cpp/row_source.h"

namespace phimap::cli {

// Writes blocks of rows of one width and type in one format. The file appears only when Finish
// succeeds, and is then complete.
//
// Thread-safety: one thread at a time.
class RowWriter {
 public:
  virtual ~RowWriter() = default;
  // REQUIRES: the block is not empty and has the width and type of the first block.
  virtual absl::Status Append(const client::RowBlock& block) = 0;
  // Call once, last.
  virtual absl::Status Finish() = 0;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_ROW_WRITER_H_
