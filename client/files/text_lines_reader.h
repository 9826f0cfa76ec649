// Texts from a file that has one on each line.
#ifndef PHIMAP_CLIENT_FILES_TEXT_LINES_READER_H_
#define PHIMAP_CLIENT_FILES_TEXT_LINES_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/row_source.h"
#include "client/files/input_file.h"
#include "client/files/line_reader.h"

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

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_FILES_TEXT_LINES_READER_H_
