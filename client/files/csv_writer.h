// Features as CSV.
#ifndef PHIMAP_CLIENT_FILES_CSV_WRITER_H_
#define PHIMAP_CLIENT_FILES_CSV_WRITER_H_

#include <memory>
#include <utility>

#include "client/files/output_file.h"
#include "client/files/passthrough_cells.h"
#include "client/files/row_writer.h"

namespace phimap::cli {

// Writes a header f0,f1,…, then one line per row. Each number is the shortest text that reads back
// as the same float32 or float64. Lines end with LF.
class CsvWriter : public RowWriter {
 public:
  // With `passthrough`, each line begins with the passthrough cells of its row. `started`: the file
  // already has a header, and is positioned after its last row.
  explicit CsvWriter(std::unique_ptr<OutputFile> file,
                     std::shared_ptr<PassthroughCells> passthrough = nullptr, bool started = false)
      : file_(std::move(file)), passthrough_(std::move(passthrough)), started_(started) {}

  absl::Status Append(const client::RowBlock& block) override;
  absl::Status Finish() override { return file_->Commit(); }

 private:
  const std::unique_ptr<OutputFile> file_;
  const std::shared_ptr<PassthroughCells> passthrough_;
  bool started_;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_CSV_WRITER_H_
