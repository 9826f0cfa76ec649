// Rows of numbers in a body that is a file: CSV with a header, or a .npy array. A body is read in
// pieces of whole rows as it arrives, so its size is not limited; its header is the first piece.
#ifndef PHIMAP_SERVER_HTTP_BODY_ROWS_H_
#define PHIMAP_SERVER_HTTP_BODY_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "phimap/v1/examples.pb.h"
#include "phimap/v1/learning_service.pb.h"
#include "proto/rows/npy_format.h"

namespace phimap {

enum class FileType { kCsv, kNpy };

// A row of a body that is read in pieces must not be longer.
inline constexpr size_t kMaxBodyRowBytes = 1 << 20;

// Columns of a CSV body with a role, by their names; "" for a role that no column has.
struct ColumnRoles {
  // The inputs, in this order. If empty, all columns that have no other role.
  std::vector<std::string> columns;
  // Columns that are not inputs.
  std::vector<std::string> exclude;
  std::string label;
  std::string weights;
  std::string groups;
  std::string parts;
  char delimiter = ',';
};

// Finds where a body may be cut. Sees its bytes before anything else is known of them, so what is
// wrong with them is found by BodyRows.
class BodyCutter {
 public:
  explicit BodyCutter(FileType type) : type_(type) {}

  // Returns how many of the first bytes of `arrived` are the next piece, over 0; nullopt if more
  // must arrive. A piece has at most 64 KiB, or is one longer row, so it has at most 65,536 rows.
  // If `ended`, no more arrive, and every byte is in some piece.
  std::optional<size_t> Next(absl::string_view arrived, bool ended);

 private:
  std::optional<size_t> NextLines(absl::string_view arrived, bool ended);
  std::optional<size_t> NpyHeaderSize(absl::string_view arrived, bool ended);

  const FileType type_;
  bool header_cut_ = false;
  // Bytes of `arrived` that were looked at for the end of a line, and whether quotes are open
  // there.
  size_t scanned_ = 0;
  bool quoted_ = false;
  // Bytes of a row of a .npy array; 0 if its header is not one.
  size_t row_bytes_ = 0;
};

class BodyRows {
 public:
  BodyRows(FileType type, ColumnRoles roles) : type_(type), roles_(std::move(roles)) {}

  // Bytes of memory that Read takes at most for a piece of so many bytes, with the rows.
  static int64_t Cost(FileType type, const ColumnRoles& roles, int64_t bytes);
  int64_t Cost(int64_t bytes) const { return Cost(type_, roles_, bytes); }

  // Reads the first piece. INVALID_ARGUMENT (REQUEST_MALFORMED): it is not a header; a role's
  // column is not in it; the format has no column for a role.
  absl::Status ReadHeader(absl::string_view piece);
  // Names of the inputs; empty for .npy.
  const std::vector<std::string>& column_names() const { return names_; }
  // Reads a piece of rows. INVALID_ARGUMENT (REQUEST_MALFORMED), with line and column. May throw
  // std::bad_alloc.
  absl::Status Read(absl::string_view piece, v1::TrainingExamples& rows);
  // Reads all rows of a body at once, which may have up to 65,536.
  absl::Status ReadAll(absl::string_view body, v1::TrainingExamples& rows);
  // To be called when no piece follows. INVALID_ARGUMENT if a .npy array has other rows than its
  // header says.
  absl::Status CheckEnd() const;
  // Number of rows that were read.
  int64_t rows() const { return rows_; }

 private:
  absl::Status ReadCsvHeader(absl::string_view piece);
  absl::Status ReadCsv(absl::string_view piece, v1::TrainingExamples& rows);
  absl::Status ReadNpy(absl::string_view piece, v1::TrainingExamples& rows);
  // What may help where a cell of an input is no number.
  std::string HintFor(int column, absl::string_view cell) const;
  // Sets `place` to the position of a role's column, -1 for none.
  absl::Status FindColumn(const std::string& name, const char* role, int& place) const;

  const FileType type_;
  const ColumnRoles roles_;
  // Of CSV: all columns, positions of the inputs and of the other roles.
  std::vector<std::string> header_;
  std::vector<int> inputs_;
  int label_ = -1;
  int weights_ = -1;
  int groups_ = -1;
  int parts_ = -1;
  int64_t lines_ = 0;
  // A blank line was read, after which only blank lines may come.
  bool blank_ = false;
  std::vector<std::string> names_;
  NpyHeader npy_;
  int64_t rows_ = 0;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_BODY_ROWS_H_
