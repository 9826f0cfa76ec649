// Rows on their way to the server or back: a block of them, and where blocks come from.
#ifndef PHIMAP_CLIENT_CPP_ROW_SOURCE_H_
#define PHIMAP_CLIENT_CPP_ROW_SOURCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace phimap::client {

enum class FloatType { kFloat32, kFloat64 };

// A row-major block of rows, held in the bytes of the wire (little-endian) so that it moves into a
// message uncopied. INVARIANT: values_le.size() == rows * columns * value size. A block of no rows
// is empty and has no columns.
struct RowBlock {
  FloatType type = FloatType::kFloat32;
  int32_t rows = 0;
  int32_t columns = 0;
  std::string values_le = {};

  bool empty() const { return rows == 0; }
  // One value, widened. REQUIRES: 0 <= row < rows, 0 <= column < columns.
  double At(int32_t row, int32_t column) const;
};

// A block of copies of `values`, row after row. REQUIRES: columns > 0 and values.size() is a
// multiple of it.
RowBlock MakeRowBlock(absl::Span<const float> values, int32_t columns);
RowBlock MakeRowBlock(absl::Span<const double> values, int32_t columns);

// 4 or 8.
int64_t ValueSizeBytes(FloatType type);

// A stream of rows of one width and type that is read once, in order, in blocks.
//
// Thread-safety: all functions are called from one thread, except Interrupt, which any thread may
// call.
class RowSource {
 public:
  virtual ~RowSource() = default;

  // Columns of each row, > 0.
  virtual int32_t columns() const = 0;
  virtual FloatType type() const = 0;
  // The next 1..max_rows rows; an empty block at the end, and again if asked again. REQUIRES:
  // max_rows > 0. Errors: what is wrong with the input; kCancelled after Interrupt.
  virtual absl::StatusOr<RowBlock> Next(int32_t max_rows) = 0;
  // How many rows there are, if that is known before they are read.
  virtual std::optional<int64_t> row_count() const { return std::nullopt; }

  // Whether Rewind can succeed.
  virtual bool CanRewind() const { return false; }
  // Starts again at the first row and forgets an Interrupt.
  virtual absl::Status Rewind() { return absl::UnimplementedError("this input is read only once"); }
  // Makes a Next that waits for input, and each later one, return kCancelled soon. A source that
  // never waits need not.
  virtual void Interrupt() {}
};

// Rows that have a label each.
class LabeledRowSource : public RowSource {
 public:
  // The labels of the rows that Next returned since the last call, in order.
  virtual std::vector<std::string> TakeLabels() = 0;
};

// Rows that are in memory already. Can rewind.
class MemoryRowSource : public RowSource {
 public:
  explicit MemoryRowSource(RowBlock rows) : rows_(std::move(rows)) {}

  int32_t columns() const override { return rows_.columns; }
  FloatType type() const override { return rows_.type; }
  absl::StatusOr<RowBlock> Next(int32_t max_rows) override;
  std::optional<int64_t> row_count() const override { return rows_.rows; }
  bool CanRewind() const override { return true; }
  absl::Status Rewind() override;

 private:
  const RowBlock rows_;
  int32_t next_row_ = 0;
};

}  // namespace phimap::client

#endif  // PHIMAP_CLIENT_CPP_ROW_SOURCE_H_
