#include "client/files/csv_writer.h"

#include <charconv>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace phimap::cli {
namespace {

template <typename T>
void AppendRows(const client::RowBlock& block, PassthroughCells* passthrough, std::string& text) {
  // The longest double, -2.2250738585072014e-308, has 24 characters.
  char digits[32];
  const char* next = block.values_le.data();
  for (int32_t row = 0; row < block.rows; ++row) {
    if (passthrough != nullptr) AppendCsvCells(passthrough->Pop(), text);
    for (int32_t column = 0; column < block.columns; ++column, next += sizeof(T)) {
      T value;
      std::memcpy(&value, next, sizeof(T));
      const char* end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
      text.append(digits, end - digits);
      text.push_back(column + 1 < block.columns ? ',' : '\n');
    }
  }
}

}  // namespace

absl::Status CsvWriter::Append(const client::RowBlock& block) {
  std::string text;
  if (!started_) {
    started_ = true;
    if (passthrough_ != nullptr) AppendCsvCells(passthrough_->names(), text);
    for (int32_t column = 0; column < block.columns; ++column) {
      absl::StrAppend(&text, column > 0 ? ",f" : "f", column);
    }
    text.push_back('\n');
  }
  if (block.type == client::FloatType::kFloat32) {
    AppendRows<float>(block, passthrough_.get(), text);
  } else {
    AppendRows<double>(block, passthrough_.get(), text);
  }
  return file_->Append(text);
}

}  // namespace phimap::cli
