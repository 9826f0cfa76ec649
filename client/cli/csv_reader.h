// Rows of numbers from a CSV file with a header.
#ifndef PHIMAP_CLIENT_CLI_CSV_READER_H_
#define PHIMAP_CLIENT_CLI_CSV_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/csv_tokenizer.h"
#include "client/cli/input_file.h"
#include "client/cpp/row_source.h"

namespace phimap::cli {

// The first record is the header. Each later one has as many cells, all finite numbers but for the
// label column, which is skipped. Numbers are read as float64. Blank lines may stand at the end
// only. Memory: one block of rows.
//
// Every error is kInvalidArgument and names file, line, column (number from 1, and name), what was
// expected and what came.
//
// Thread-safety: as RowSource.
class CsvReader : public client::LabeledRowSource {
 public:
  // Reads the header. `label` is the name of a column that is not an input; empty for none. A
  // header whose cells are all numbers is refused: it is a first row, and dropping it silently
  // would be worse.
  static absl::StatusOr<std::unique_ptr<CsvReader>> Open(std::unique_ptr<InputFile> file,
                                                         const std::string& label,
                                                         char delimiter = ',');

  int32_t columns() const override { return columns_; }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override;
  // The same, of rows alone.
  absl::StatusOr<client::RowBlock> NextRows(int32_t max_rows);
  bool CanRewind() const override { return file_->CanRewind(); }
  absl::Status Rewind() override;
  void Interrupt() override { file_->Interrupt(); }
  std::optional<double> share_read() const override { return file_->share_read(); }

  // Names of all columns.
  const std::vector<std::string>& header() const { return header_; }
  // Names of the input columns; the label is not among them.
  std::vector<std::string> input_names() const;
  // Kept only after KeepLabels.
  std::vector<std::string> TakeLabels() override;
  void KeepLabels() { keep_labels_ = true; }

 private:
  CsvReader(std::unique_ptr<InputFile> file, std::string label, char delimiter);

  absl::Status ReadHeader();
  absl::Status CheckNamesDiffer() const;
  absl::Status FindLabel();
  // The next record that is a row; false at the end.
  absl::StatusOr<bool> NextRow();
  // A blank line was read: only blank lines may follow.
  absl::StatusOr<bool> SkipBlankEnd();
  absl::Status AppendRow(std::vector<double>& values);
  absl::Status CellError(int column, absl::string_view message) const;
  // What to try if a cell is not a number; empty if there is nothing to guess.
  std::string HintAt(int column) const;
  absl::Status LineError(int64_t line, absl::string_view message) const;

  const std::unique_ptr<InputFile> file_;
  const std::string label_;
  CsvTokenizer tokenizer_;
  CsvRecord record_;
  std::vector<std::string> header_;
  int label_column_ = -1;
  int32_t columns_ = 0;
  bool keep_labels_ = false;
  std::vector<std::string> labels_;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_CSV_READER_H_
