// Features as the text format of PostgreSQL's COPY, for columns of pgvector's type `vector`.
#ifndef PHIMAP_CLIENT_FILES_COPY_WRITER_H_
#define PHIMAP_CLIENT_FILES_COPY_WRITER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "client/files/file_format.h"
#include "client/files/output_file.h"
#include "client/files/passthrough_cells.h"

namespace phimap::cli {

// The most dimensions that a `vector` of pgvector has.
inline constexpr int32_t kMostVectorDimensions = 16'000;

// Writes a line per row, without a header: its passthrough cells, each followed by a tab, and then
// its features as [0.1,0.2,…]. `COPY items (id, embedding) FROM STDIN` reads it if the one
// passthrough column is the id.
//
// A `vector` holds float32. Each number is the shortest text that reads back as the same float32;
// a float64 is rounded to the nearest float32.
class CopyWriter : public RowWriter {
 public:
  // `file` is at its start, or after its last row.
  explicit CopyWriter(std::unique_ptr<OutputFile> file,
                      std::shared_ptr<PassthroughCells> passthrough = nullptr)
      : file_(std::move(file)), passthrough_(std::move(passthrough)) {}

  // kInvalidArgument for what a `vector` does not hold: more than kMostVectorDimensions features,
  // or a number over the largest float32.
  absl::Status Append(const client::RowBlock& block) override;
  absl::Status Finish() override { return file_->Commit(); }

 private:
  const std::unique_ptr<OutputFile> file_;
  const std::shared_ptr<PassthroughCells> passthrough_;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_COPY_WRITER_H_
