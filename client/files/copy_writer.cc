#include "client/files/copy_writer.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

// Appends a cell and a tab. A backslash begins an escape in COPY, and a tab ends a column. An empty
// cell stays an empty text; COPY's option NULL '' reads it as NULL.
void AppendCopyCell(absl::string_view cell, std::string& line) {
  for (const char c : cell) {
    if (c == '\t') {
      line.append("\\t");
    } else {
      line.append(c == '\\' ? 2 : 1, c);
    }
  }
  line.push_back('\t');
}

// Features are finite in their own type (core/engine), but a float64 may be over the largest
// float32.
absl::Status CheckHasFloat32(double value, int32_t column) {
  if (std::isfinite(static_cast<float>(value))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--output-format=copy: feature ", column, " of a row is ", value,
      ", but pgvector's type vector holds float32, up to about 3.4e38; scale the inputs and build "
      "again (--standardize), or write csv or npy"));
}

template <typename T>
absl::Status AppendVectors(const client::RowBlock& block, PassthroughCells* passthrough,
                           std::string& text) {
  // The longest float, -1.17549435e-38, has 15 characters.
  char digits[32];
  const char* next = block.values_le.data();
  for (int32_t row = 0; row < block.rows; ++row) {
    if (passthrough != nullptr) {
      for (const std::string& cell : passthrough->Pop()) AppendCopyCell(cell, text);
    }
    text.push_back('[');
    for (int32_t column = 0; column < block.columns; ++column, next += sizeof(T)) {
      T value;
      std::memcpy(&value, next, sizeof(T));
      PHIMAP_RETURN_IF_ERROR(CheckHasFloat32(value, column));
      const char* end =
          std::to_chars(digits, digits + sizeof(digits), static_cast<float>(value)).ptr;
      text.append(digits, end - digits);
      text.push_back(column + 1 < block.columns ? ',' : ']');
    }
    text.push_back('\n');
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CopyWriter::Append(const client::RowBlock& block) {
  if (block.columns > kMostVectorDimensions) {
    return absl::InvalidArgumentError(
        absl::StrCat("--output-format=copy: pgvector's type vector holds at most ",
                     WithThousands(kMostVectorDimensions), " dimensions, but a row has ",
                     WithThousands(block.columns),
                     " features; build with fewer landmarks or dimensions, or write csv or npy"));
  }
  std::string text;
  if (block.type == client::FloatType::kFloat32) {
    PHIMAP_RETURN_IF_ERROR(AppendVectors<float>(block, passthrough_.get(), text));
  } else {
    PHIMAP_RETURN_IF_ERROR(AppendVectors<double>(block, passthrough_.get(), text));
  }
  return file_->Append(text);
}

}  // namespace phimap::cli
