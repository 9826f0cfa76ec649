// Rows on disk that are read again, several times: what a training keeps of a stream when it builds
// the features that it learns from.
#ifndef PHIMAP_CORE_TRAIN_ROW_SPOOL_H_
#define PHIMAP_CORE_TRAIN_ROW_SPOOL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/learn/parts.h"

namespace phimap {

// Where spools are written, and how many bytes all of them may take together. Thread-safe.
class SpoolSpace {
 public:
  // Files have no name, so nothing is left in `folder` when the process ends, however it ends.
  SpoolSpace(std::string folder, int64_t limit_bytes)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

  const std::string& folder() const { return folder_; }
  // What is written stays, even if it is more than a new limit allows.
  void SetLimitBytes(int64_t limit_bytes) { limit_bytes_.store(limit_bytes); }
  int64_t limit_bytes() const { return limit_bytes_.load(); }
  int64_t used_bytes() const { return used_bytes_.load(); }

 private:
  friend class RowSpool;
  const std::string folder_;
  std::atomic<int64_t> limit_bytes_;
  std::atomic<int64_t> used_bytes_{0};
};

// Not thread-safe.
class RowSpool {
 public:
  // `space` must outlive the spool. No file is opened before rows fill the buffer of 1 MiB.
  explicit RowSpool(SpoolSpace& space) : space_(space) {}
  ~RowSpool();
  RowSpool(const RowSpool&) = delete;
  RowSpool& operator=(const RowSpool&) = delete;

  // Adds a row after the others. Errors: RESOURCE_EXHAUSTED (TRAINING_DISK_FULL) beyond the limit
  // of the space, with its bytes, or DISK_FULL; UNAVAILABLE (FILE_IO_FAILED).
  absl::Status Add(const PartRow& row);
  int64_t rows() const { return rows_; }
  int64_t bytes() const { return written_ + static_cast<int64_t>(buffer_.size()); }

  // Calls `take` with up to `rows_at_a_time` rows at a time, all rows in the order in which they
  // were added. Errors: those of `take`; UNAVAILABLE (FILE_IO_FAILED).
  absl::Status Read(int64_t rows_at_a_time,
                    absl::FunctionRef<absl::Status(const std::vector<PartRow>&)> take);

 private:
  absl::Status Flush();
  absl::Status Open();

  SpoolSpace& space_;
  int file_ = -1;
  int64_t written_ = 0;
  int64_t rows_ = 0;
  std::string buffer_;
};

}  // namespace phimap

#endif  // PHIMAP_CORE_TRAIN_ROW_SPOOL_H_
