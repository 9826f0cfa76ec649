// Features as CSV.
#ifndef PHIMAP_CLIENT_CLI_CSV_WRITER_H_
#define PHIMAP_CLIENT_CLI_CSV_WRITER_H_

#include <memory>

#include "client/cli/output_file.h"
#include "client/cli/row_writer.h"

namespace phimap::cli {

// A header f0,f1,…, then one line a row; each number is the shortest text that reads back as the
// same float32 or float64. Lines end with LF.
class CsvWriter : public RowWriter {
 public:
  // `started`: the file holds the header already, and stands behind its last row.
  explicit CsvWriter(std::unique_ptr<OutputFile> file, bool started = false)
      : file_(std::move(file)), started_(started) {}

  absl::Status Append(const client::RowBlock& block) override;
  absl::Status Finish() override { return file_->Commit(); }

 private:
  const std::unique_ptr<OutputFile> file_;
  bool started_;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_CSV_WRITER_H_
