// Source of the examples that are sent to the server, and errors about the names of its columns.
#ifndef PHIMAP_CLIENT_CPP_ROW_SOURCE_H_
#define PHIMAP_CLIENT_CPP_ROW_SOURCE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/example_block.h"

namespace phimap::client {

// Limits of one block.
struct BlockLimits {
  // > 0.
  int32_t rows = 65'536;  // The API's limit.
  // Approximate: a block has at least one example, however large.
  int64_t bytes = 1 << 20;

  // Returns the number of rows of `row_bytes` bytes that fit, at least one.
  int32_t RowsOf(int64_t row_bytes) const {
    return static_cast<int32_t>(std::clamp<int64_t>(bytes / row_bytes, 1, rows));
  }
};

// A stream of examples of one kind, which is read once, in order, in blocks. All rows have the same
// width and type. Each example counts as one row.
//
// Thread-safety: Interrupt and share_read may be called from any thread. All other functions are
// called from one thread.
class RowSource {
 public:
  virtual ~RowSource() = default;

  // Number of columns, > 0; 0 for strings.
  virtual int32_t columns() const = 0;
  // Names of the columns, one per column; empty if the columns have none. A build stores them with
  // the version, and the server compares them in every call that maps rows.
  virtual std::vector<std::string> column_names() const { return {}; }
  // Returns the next rows, as many as the limits allow. At the end, returns an empty block, also
  // when called again. Errors: faults of the input; kCancelled after Interrupt.
  virtual absl::StatusOr<ExampleBlock> Next(const BlockLimits& limits) = 0;
  // Number of rows, if it is known before they are read.
  virtual std::optional<int64_t> row_count() const { return std::nullopt; }
  // Share of the input that was read so far, 0..1, if known. Any thread may call.
  virtual std::optional<double> share_read() const { return std::nullopt; }

  // Whether Rewind can succeed.
  virtual bool CanRewind() const { return false; }
  // Restarts at the first row and clears an Interrupt.
  virtual absl::Status Rewind() { return absl::UnimplementedError("this input is read only once"); }
  // Makes a Next that waits for input, and every later Next, return kCancelled soon. May be a no-op
  // in a source that never waits.
  virtual void Interrupt() {}
};

// What may be known of labeled rows besides their labels. Each list is empty, or has one entry per
// row.
struct RowFacts {
  // Over 0.
  std::vector<double> weights = {};
  // Rows of equal groups, but for "", share a part.
  std::vector<std::string> groups = {};
  // "train", "validate", "calibrate-link", "calibrate-sets", "test", or "" where the server
  // decides.
  std::vector<std::string> parts = {};
};

// A stream of labeled rows.
class LabeledRowSource : public RowSource {
 public:
  // Returns the labels of the rows that Next returned since the last TakeLabels, in order.
  virtual std::vector<std::string> TakeLabels() = 0;
  // Returns what else is known of the rows that the last Next returned, for a training. Called once
  // after each Next.
  virtual RowFacts TakeFacts() { return {}; }
};

// Rows that are in memory already. Can rewind.
class MemoryRowSource : public RowSource {
 public:
  explicit MemoryRowSource(ExampleBlock rows, std::vector<std::string> column_names = {})
      : rows_(std::move(rows)), column_names_(std::move(column_names)) {}

  int32_t columns() const override { return rows_.columns(); }
  std::vector<std::string> column_names() const override { return column_names_; }
  absl::StatusOr<ExampleBlock> Next(const BlockLimits& limits) override;
  std::optional<int64_t> row_count() const override { return rows_.rows(); }
  bool CanRewind() const override { return true; }
  absl::Status Rewind() override;

 private:
  const ExampleBlock rows_;
  const std::vector<std::string> column_names_;
  int32_t next_row_ = 0;
};

// Returns the error for rows whose column names differ from those of the version `reference`:
// kInvalidArgument (reason COLUMN_NAMES_MISMATCH, field "columns"). `came` has the names of the
// rows, and `expected` those of the version. The message says how the lists differ and shows
// each name once.
// If `then` is not empty, the message ends with this text, which is the remedy. REQUIRES: the lists
// differ.
absl::Status ColumnsDiffer(absl::string_view reference, const std::vector<std::string>& expected,
                           const std::vector<std::string>& came, absl::string_view then);

// Returns the elements of `names` that are not in `others`, in the order of `names`.
std::vector<std::string> NamesNotAmong(const std::vector<std::string>& names,
                                       const std::vector<std::string>& others);

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_ROW_SOURCE_H_
