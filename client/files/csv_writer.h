// Features as CSV, with cells that are copied from the input next to them.
#ifndef PHIMAP_CLIENT_FILES_CSV_WRITER_H_
#define PHIMAP_CLIENT_FILES_CSV_WRITER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/files/file_format.h"
#include "client/files/output_file.h"
#include "client/files/passthrough_cells.h"

namespace phimap::cli {

// Appends a cell to a line of CSV, in quotes where it needs them, and a comma.
inline void AppendCsvCell(absl::string_view cell, std::string& line) {
  if (cell.find_first_of(",\"\r\n") == absl::string_view::npos) {
    line.append(cell.data(), cell.size());
  } else {
    line.push_back('"');
    for (const char c : cell) line.append(c == '"' ? 2 : 1, c);
    line.push_back('"');
  }
  line.push_back(',');
}

// Appends the cells to a line of CSV, each followed by a comma.
inline void AppendCsvCells(const std::vector<std::string>& cells, std::string& line) {
  for (const std::string& cell : cells) AppendCsvCell(cell, line);
}

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
