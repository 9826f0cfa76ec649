// Texts from a file that has one on each line, or from a column of a CSV file.
#ifndef PHIMAP_CLIENT_FILES_TEXT_READER_H_
#define PHIMAP_CLIENT_FILES_TEXT_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/row_source.h"
#include "client/files/input_file.h"
#include "client/files/line_reader.h"
#include "proto/rows/csv_tokenizer.h"

namespace phimap::cli {

// Every line is a text, even an empty one, so that the output has a row for each line. Texts are
// UTF-8. Errors are kInvalidArgument and contain the file and the line. Memory: one block of texts.
//
// Thread-safety: as RowSource.
class TextLinesReader : public client::RowSource {
 public:
  explicit TextLinesReader(std::unique_ptr<InputFile> file)
      : file_(std::move(file)), lines_(*file_) {}

  int32_t columns() const override { return 0; }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override;
  bool CanRewind() const override { return file_->CanRewind(); }
  absl::Status Rewind() override { return lines_.Rewind(); }
  void Interrupt() override { file_->Interrupt(); }
  std::optional<double> share_read() const override { return file_->share_read(); }

 private:
  const std::unique_ptr<InputFile> file_;
  LineReader lines_;
};

// Reads the records after a header. In each record, the cell of one column is the text, and the
// cell of another column may be its label; other cells are ignored. Blank lines are skipped. Texts
// are UTF-8. Errors are kInvalidArgument and contain the file, the line and the expected text.
// Memory: one block of texts.
//
// Thread-safety: as RowSource.
class TextColumnReader : public client::LabeledRowSource {
 public:
  // Reads the header. `label`: the name of the column of labels; no labels are kept if it is empty.
  static absl::StatusOr<std::unique_ptr<TextColumnReader>> Open(std::unique_ptr<InputFile> file,
                                                                const std::string& text,
                                                                const std::string& label,
                                                                char delimiter = ',');

  int32_t columns() const override { return 0; }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override;
  bool CanRewind() const override { return file_->CanRewind(); }
  absl::Status Rewind() override;
  void Interrupt() override { file_->Interrupt(); }
  std::optional<double> share_read() const override { return file_->share_read(); }
  std::vector<std::string> TakeLabels() override;
  // Names of all columns.
  const std::vector<std::string>& header() const { return header_; }

 private:
  TextColumnReader(std::unique_ptr<InputFile> file, char delimiter)
      : file_(std::move(file)), tokenizer_(*file_, delimiter) {}

  absl::Status ReadHeader();
  absl::StatusOr<int> ColumnNamed(const std::string& name, const char* option) const;
  // Reads the next record that is not blank; returns false at the end.
  absl::StatusOr<bool> NextRecord();
  absl::Status LineError(const std::string& message) const;

  const std::unique_ptr<InputFile> file_;
  CsvTokenizer tokenizer_;
  CsvRecord record_;
  std::vector<std::string> header_;
  int text_column_ = 0;
  int label_column_ = -1;
  std::vector<std::string> labels_;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_TEXT_READER_H_
