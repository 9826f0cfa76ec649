// Cells that are copied from the input to the output, next to what is computed from their rows.
#ifndef PHIMAP_CLIENT_FILES_PASSTHROUGH_CELLS_H_
#define PHIMAP_CLIENT_FILES_PASSTHROUGH_CELLS_H_

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace phimap::cli {

// The reader pushes the cells of each row, and the writer takes them out in the same order and
// writes them in its format. The queue holds the cells of the rows that a transform has in flight.
// Thread-safe.
class PassthroughCells {
 public:
  void SetNames(std::vector<std::string> names) {
    const std::lock_guard<std::mutex> lock(mutex_);
    names_ = std::move(names);
  }
  // Names of the columns.
  std::vector<std::string> names() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return names_;
  }

  // Drops the cells of the next `rows` rows, which are not mapped.
  void Skip(int64_t rows) {
    const std::lock_guard<std::mutex> lock(mutex_);
    skipped_ = rows;
  }
  // Adds the cells of the next row. REQUIRES: no cell has a line end.
  void Push(std::vector<std::string> cells) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (skipped_ > 0) {
      --skipped_;
    } else {
      rows_.push_back(std::move(cells));
    }
  }
  // Takes the cells of the next row. REQUIRES: the row was read.
  std::vector<std::string> Pop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> cells = std::move(rows_.front());
    rows_.pop_front();
    return cells;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
  int64_t skipped_ = 0;
  std::deque<std::vector<std::string>> rows_;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_PASSTHROUGH_CELLS_H_
