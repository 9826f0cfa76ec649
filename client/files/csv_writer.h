// Features as CSV, with cells that are copied from the input next to them.
#ifndef PHIMAP_CLIENT_FILES_CSV_WRITER_H_
#define PHIMAP_CLIENT_FILES_CSV_WRITER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "client/files/file_format.h"
#include "client/files/output_file.h"

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

// The reader pushes the cells of each row, and the writer takes them out in the same order. The
// queue holds the cells of the rows that a transform has in flight. Thread-safe.
class PassthroughCells {
 public:
  // Sets the names of the columns, as the start of a line: "id,name,".
  void SetHeader(std::string header) {
    const std::lock_guard<std::mutex> lock(mutex_);
    header_ = std::move(header);
  }
  std::string header() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return header_;
  }

  // Drops the cells of the next `rows` rows, which are not mapped.
  void Skip(int64_t rows) {
    const std::lock_guard<std::mutex> lock(mutex_);
    skipped_ = rows;
  }
  // Adds the cells of the next row, formatted as the start of its line.
  void Push(std::string cells) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (skipped_ > 0) {
      --skipped_;
    } else {
      rows_.push_back(std::move(cells));
    }
  }
  // Takes the cells of the next row. REQUIRES: the row was read.
  std::string Pop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string cells = std::move(rows_.front());
    rows_.pop_front();
    return cells;
  }

 private:
  mutable std::mutex mutex_;
  std::string header_;
  int64_t skipped_ = 0;
  std::deque<std::string> rows_;
};

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
