#include "server/http/row_answer.h"

#include <charconv>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "phimap/v1/predict_service.pb.h"
#include "phimap/v1/transform_service.pb.h"
#include "proto/rows/npy_format.h"

namespace phimap {
namespace {

using google::protobuf::Message;

// Columns of numbers beside each other, row by row.
struct Block {
  std::vector<std::string> names;
  std::vector<double> values;
};

template <typename Number>
void AppendValues(const std::string& bytes, std::vector<double>& values) {
  for (size_t at = 0; at + sizeof(Number) <= bytes.size(); at += sizeof(Number)) {
    Number value;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    values.push_back(static_cast<double>(value));
  }
}

Block BlockOf(const v1::DenseRows& rows, std::vector<std::string> names) {
  Block block{std::move(names), {}};
  rows.has_float64_le() ? AppendValues<double>(rows.float64_le(), block.values)
                        : AppendValues<float>(rows.float32_le(), block.values);
  return block;
}

// Adds a column, unless `values` is empty.
template <typename Values>
void AddColumn(const char* name, const Values& values, std::vector<Block>& blocks) {
  if (values.empty()) return;
  blocks.push_back({{name}, std::vector<double>(values.begin(), values.end())});
}

std::vector<Block> BlocksOf(const v1::TransformResponse& answer) {
  std::vector<std::string> names;
  for (int32_t j = 0; j < answer.features().columns(); ++j) names.push_back(absl::StrCat("f", j));
  std::vector<Block> blocks = {BlockOf(answer.features(), std::move(names))};
  AddColumn("residual", answer.residuals(), blocks);
  AddColumn("residual_allowance", answer.residual_allowances(), blocks);
  return blocks;
}

std::vector<std::string> NamesOf(absl::string_view name, const v1::DenseRows& rows,
                                 const v1::PredictResponse& answer) {
  if (rows.columns() != answer.class_names_size()) return {std::string(name)};
  std::vector<std::string> names;
  for (const std::string& label : answer.class_names()) {
    names.push_back(absl::StrCat(name, "_", label));
  }
  return names;
}

// What was predicted is the first column.
std::vector<Block> BlocksOf(const v1::PredictResponse& answer) {
  std::vector<Block> blocks;
  AddColumn("predicted", answer.labels(), blocks);
  AddColumn("predicted", answer.values(), blocks);
  for (const auto& [name, rows] :
       {std::pair{"score", &answer.scores()}, std::pair{"probability", &answer.probabilities()}}) {
    if (rows->rows() > 0) blocks.push_back(BlockOf(*rows, NamesOf(name, *rows, answer)));
  }
  AddColumn("low", answer.interval_lows(), blocks);
  AddColumn("high", answer.interval_highs(), blocks);
  AddColumn("deviation", answer.deviations(), blocks);
  return blocks;
}

void AppendCell(absl::string_view cell, std::string& line) {
  if (cell.find_first_of(",\"\r\n") == absl::string_view::npos) {
    absl::StrAppend(&line, cell, ",");
  } else {
    absl::StrAppend(&line, "\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\",");
  }
}

void AppendNumberCell(double value, std::string& line) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), value);
  line.append(digits, static_cast<size_t>(end.ptr - digits));
  line.push_back(',');
}

// The classes of a set, divided by |.
std::string SetText(const v1::PredictResponse::ClassSet& set, const v1::PredictResponse& answer) {
  std::string text;
  for (const int32_t label : set.classes()) {
    if (!text.empty()) text.push_back('|');
    text.append(absl::StrReplaceAll(answer.class_names(label), {{"\\", "\\\\"}, {"|", "\\|"}}));
  }
  return text;
}

std::vector<Block> BlocksOf(const Message& answer) {
  if (answer.GetDescriptor() == v1::TransformResponse::descriptor()) {
    return BlocksOf(static_cast<const v1::TransformResponse&>(answer));
  }
  return BlocksOf(static_cast<const v1::PredictResponse&>(answer));
}

size_t RowsOf(const std::vector<Block>& blocks) {
  if (blocks.empty() || blocks[0].names.empty()) return 0;
  return blocks[0].values.size() / blocks[0].names.size();
}

}  // namespace

bool IsRowAnswer(const google::protobuf::Descriptor& type) {
  return &type == v1::TransformResponse::descriptor() || &type == v1::PredictResponse::descriptor();
}

std::string CsvOf(const Message& answer) {
  const std::vector<Block> blocks = BlocksOf(answer);
  const v1::PredictResponse* const predicted =
      answer.GetDescriptor() == v1::PredictResponse::descriptor()
          ? static_cast<const v1::PredictResponse*>(&answer)
          : nullptr;
  const bool named = predicted != nullptr && predicted->label_names_size() > 0;
  const bool classes = predicted != nullptr && predicted->labels_size() > 0;
  const bool sets = predicted != nullptr && predicted->sets_size() > 0;
  std::string text;
  for (const Block& block : blocks) {
    for (const std::string& name : block.names) AppendCell(name, text);
  }
  if (sets) text.append("set,");
  if (named) text.insert(0, "predicted,");
  if (text.empty()) return "\n";
  text.back() = '\n';
  const size_t rows = named ? static_cast<size_t>(predicted->label_names_size()) : RowsOf(blocks);
  for (size_t i = 0; i < rows; ++i) {
    if (named) AppendCell(predicted->label_names(static_cast<int>(i)), text);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Block& block = blocks[b];
      if (b == 0 && classes) {
        AppendCell(predicted->class_names(predicted->labels(static_cast<int>(i))), text);
        continue;
      }
      for (size_t j = 0; j < block.names.size(); ++j) {
        AppendNumberCell(block.values[i * block.names.size() + j], text);
      }
    }
    if (sets) AppendCell(SetText(predicted->sets(static_cast<int>(i)), *predicted), text);
    text.back() = '\n';
  }
  return text;
}

std::string NpyOf(const Message& answer) {
  if (answer.GetDescriptor() == v1::TransformResponse::descriptor()) {
    const auto& features = static_cast<const v1::TransformResponse&>(answer);
    if (features.features().has_float32_le() && features.residuals().empty()) {
      return absl::StrCat(NpyHeaderBytes(/*float32=*/true, features.features().rows(),
                                         features.features().columns()),
                          features.features().float32_le());
    }
  }
  const std::vector<Block> blocks = BlocksOf(answer);
  const size_t rows = RowsOf(blocks);
  size_t columns = 0;
  for (const Block& block : blocks) columns += block.names.size();
  std::string text =
      NpyHeaderBytes(/*float32=*/false, static_cast<int64_t>(rows), static_cast<int32_t>(columns));
  for (size_t i = 0; i < rows; ++i) {
    for (const Block& block : blocks) {
      text.append(reinterpret_cast<const char*>(block.values.data() + i * block.names.size()),
                  block.names.size() * sizeof(double));
    }
  }
  return text;
}

}  // namespace phimap
