#include "server/http/json.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "google/protobuf/util/json_util.h"
#include "phimap/v1/examples.pb.h"
#include "server/http/http_status.h"
#include "server/http/json_values.h"

namespace phimap {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
namespace dom = simdjson::dom;

static_assert(std::endian::native == std::endian::little, "rows are sent as little-endian bytes");

// Limits of a block of rows, as examples.proto states them.
constexpr int64_t kMaxRows = 65536;
constexpr int64_t kMaxColumns = 65536;

// Reads rows of numbers or texts.
class RowsReader {
 public:
  explicit RowsReader(v1::Examples& examples) : examples_(examples) {}

  absl::Status Read(dom::element value) {
    dom::array rows;
    if (value.get_array().get(rows) != simdjson::SUCCESS) {
      return MalformedHttp("rows",
                           absl::StrCat("expected an array of rows, such as [[1, 2], [3, 4]], "
                                        "got ",
                                        NameOf(value)));
    }
    if (rows.size() == 0) return MalformedHttp("rows", "expected at least one row, got none");
    if (rows.size() > kMaxRows) {
      return MalformedHttp("rows", absl::StrCat("expected at most ", kMaxRows, " rows"));
    }
    is_text_ = rows.at(0).is_string();
    for (const dom::element row : rows) {
      PHIMAP_RETURN_IF_ERROR(is_text_ ? ReadText(row) : ReadNumbers(row));
      ++rows_;
    }
    if (is_text_) return absl::OkStatus();
    v1::DenseRows& dense = *examples_.mutable_dense();
    dense.set_rows(static_cast<int32_t>(rows_));
    dense.set_columns(static_cast<int32_t>(columns_));
    dense.set_float64_le(std::move(values_));
    return absl::OkStatus();
  }

 private:
  absl::Status WrongRow(absl::string_view expected, absl::string_view actual) const {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kRequestMalformed, "rows",
                     absl::StrCat("row ", rows_, ": expected ", expected, ", got ", actual),
                     {{"row", absl::StrCat(rows_)}});
  }

  absl::Status ReadText(dom::element row) {
    std::string_view text;
    if (row.get_string().get(text) != simdjson::SUCCESS) {
      return WrongRow("a text as in row 0", NameOf(row));
    }
    examples_.mutable_text()->add_values(text.data(), text.size());
    return absl::OkStatus();
  }

  absl::Status ReadNumbers(dom::element row) {
    dom::array cells;
    if (row.get_array().get(cells) != simdjson::SUCCESS) {
      return WrongRow("an array of numbers", NameOf(row));
    }
    int64_t column = 0;
    for (const dom::element cell : cells) {
      double number = 0;
      if (cell.get_double().get(number) != simdjson::SUCCESS) {
        return MakeError(absl::StatusCode::kInvalidArgument, reason::kRequestMalformed, "rows",
                         absl::StrCat("row ", rows_, ", column ", column,
                                      ": expected a number, got ", NameOf(cell)),
                         {{"row", absl::StrCat(rows_)}, {"column", absl::StrCat(column)}});
      }
      ++column;
      values_.append(reinterpret_cast<const char*>(&number), sizeof(number));
    }
    if (column == 0 || column > kMaxColumns) {
      return WrongRow(absl::StrCat("1 to ", kMaxColumns, " columns"), absl::StrCat(column));
    }
    if (rows_ == 0) columns_ = column;
    if (column == columns_) return absl::OkStatus();
    return WrongRow(absl::StrCat(columns_, " columns as in row 0"), absl::StrCat(column));
  }

  v1::Examples& examples_;
  // Bytes of float64.
  std::string values_;
  int64_t rows_ = 0;
  int64_t columns_ = 0;
  bool is_text_ = false;
};

// Reads labels or groups into a repeated text. A number, true or false is its text, as a table of
// CSV would have it.
absl::Status ReadTexts(absl::string_view name, dom::element value, const FieldDescriptor& field,
                       Message& message) {
  dom::array texts;
  if (value.get_array().get(texts) != simdjson::SUCCESS) {
    return MalformedHttp(name, absl::StrCat("expected an array of texts, got ", NameOf(value)));
  }
  if (texts.size() > kMaxRows) {
    return MalformedHttp(name, absl::StrCat("expected at most ", kMaxRows, ", one for each row"));
  }
  int64_t row = 0;
  for (const dom::element one : texts) {
    std::string text;
    std::string_view string;
    if (one.get_string().get(string) == simdjson::SUCCESS) {
      text = std::string(string);
    } else if (one.is_double()) {
      AppendNumber(double(one), text);
    } else if (one.is_number() || one.is_bool()) {
      text = simdjson::minify(one);
    } else {
      return MakeError(
          absl::StatusCode::kInvalidArgument, reason::kRequestMalformed, std::string(name),
          absl::StrCat("row ", row, ": expected a text or a number, got ", NameOf(one)),
          {{"row", absl::StrCat(row)}});
    }
    message.GetReflection()->AddString(&message, &field, std::move(text));
    ++row;
  }
  return absl::OkStatus();
}

// Returns the field `name` of a message that has rows if it holds a text for each row, else null.
const FieldDescriptor* TextsOfRows(const Message& message, const std::string& name) {
  if (name != "labels" && name != "groups") return nullptr;
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName(name);
  const bool texts = field != nullptr && field->is_repeated() &&
                     field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  return texts ? field : nullptr;
}

// Returns the field `examples` of a request's message that has rows; null for other messages.
v1::Examples* ExamplesOf(Message& message) {
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName("examples");
  if (field == nullptr || field->message_type() != v1::Examples::descriptor()) return nullptr;
  return static_cast<v1::Examples*>(message.GetReflection()->MutableMessage(&message, field));
}

bool HasRows(const Message& message) {
  const FieldDescriptor* const field = message.GetDescriptor()->FindFieldByName("examples");
  return field != nullptr && field->message_type() == v1::Examples::descriptor();
}

// Reads everything but the rows, by protobuf.
absl::Status ParseRest(const std::string& text, Message& message) {
  google::protobuf::util::JsonParseOptions options;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, &message, options);
  if (parsed.ok()) return absl::OkStatus();
  return MalformedHttp(
      "body", absl::StrCat("the body is not a ", message.GetDescriptor()->name(), ": ",
                           absl::string_view(parsed.message().data(), parsed.message().size())));
}

template <typename Number>
void AppendRows(const v1::DenseRows& rows, const std::string& bytes, std::string& text) {
  size_t at = 0;
  text.push_back('[');
  for (int32_t row = 0; row < rows.rows(); ++row) {
    text.append(row == 0 ? "[" : ",[");
    for (int32_t column = 0; column < rows.columns(); ++column, at += sizeof(Number)) {
      if (column > 0) text.push_back(',');
      Number value;
      std::memcpy(&value, bytes.data() + at, sizeof(value));
      AppendNumber(static_cast<double>(value), text);
    }
    text.push_back(']');
  }
  text.push_back(']');
}

bool IsWhole(const v1::DenseRows& rows, size_t bytes, size_t size) {
  return bytes == static_cast<size_t>(rows.rows()) * static_cast<size_t>(rows.columns()) * size;
}

// Appends `,"name":[[…]]` for each field of rows, and clears it. Returns whether there were any.
void TakeRows(Message& message, std::string& text) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    if (field->message_type() != v1::DenseRows::descriptor() || field->is_repeated()) continue;
    const auto& rows = static_cast<const v1::DenseRows&>(reflection.GetMessage(message, field));
    absl::StrAppend(&text, ",\"", field->name(), "\":");
    if (rows.has_float32_le() && IsWhole(rows, rows.float32_le().size(), sizeof(float))) {
      AppendRows<float>(rows, rows.float32_le(), text);
    } else if (rows.has_float64_le() && IsWhole(rows, rows.float64_le().size(), sizeof(double))) {
      AppendRows<double>(rows, rows.float64_le(), text);
    } else {
      text.append("[]");
    }
    reflection.ClearField(&message, field);
  }
}

}  // namespace

bool IsJsonType(absl::string_view content_type) {
  const absl::string_view type = content_type.substr(0, content_type.find(';'));
  return absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(type), "application/json");
}

// For each byte of text, the parser has 8 bytes of its result, 4 of its index, 2 of strings and 1
// of a copy; and a number of two bytes becomes 8, of which a growing buffer needs three times as
// much. The parser's stack takes 9 KiB. A second copy of the text is made of numbers that are so
// long that the rest takes less.
int64_t JsonCost(int64_t bytes) { return 16384 + 27 * bytes; }

absl::Status ParseJson(absl::string_view text, Message& message) {
  if (text.empty()) return absl::OkStatus();
  dom::parser parser;
  dom::object object;
  PHIMAP_RETURN_IF_ERROR(ParseObject(parser, text, object));
  const bool may_have_rows = HasRows(message);
  v1::Examples rows;
  std::string rest;
  std::vector<std::pair<const FieldDescriptor*, dom::element>> texts;
  for (const dom::key_value_pair field : object) {
    const std::string key(field.key);
    if (const FieldDescriptor* const of_rows =
            may_have_rows ? TextsOfRows(message, key) : nullptr) {
      texts.emplace_back(of_rows, field.value);
      continue;
    }
    if (may_have_rows && key == "rows") {
      if (rows.kind_case() != v1::Examples::KIND_NOT_SET) {
        return MalformedHttp("rows", "expected once, got them twice");
      }
      PHIMAP_RETURN_IF_ERROR(RowsReader(rows).Read(field.value));
      continue;
    }
    if (key.find_first_of("\"\\") != std::string::npos) {
      return MalformedHttp("body", absl::StrCat("this call has no field ", Quoted(key)));
    }
    absl::StrAppend(&rest, rest.empty() ? "{" : ",", "\"", key,
                    "\":", simdjson::minify(field.value));
  }
  if (!rest.empty()) PHIMAP_RETURN_IF_ERROR(ParseRest(absl::StrCat(rest, "}"), message));
  for (const auto& [field, value] : texts) {
    PHIMAP_RETURN_IF_ERROR(ReadTexts(field->name(), value, *field, message));
  }
  if (rows.kind_case() == v1::Examples::KIND_NOT_SET) return absl::OkStatus();
  v1::Examples& examples = *ExamplesOf(message);
  if (examples.kind_case() != v1::Examples::KIND_NOT_SET) {
    return MalformedHttp("rows", "expected rows or examples, got both");
  }
  examples.Swap(&rows);
  return absl::OkStatus();
}

// A float32 of 4 bytes takes at most 25 characters, in a text that grows by doubling.
int64_t PrintedCost(int64_t bytes) { return 4096 + 16 * bytes; }

std::string PrintJson(Message& message) {
  std::string rows;
  TakeRows(message, rows);
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto printed = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!printed.ok() || text.empty()) return "{}\n";
  text.pop_back();  // the closing brace
  if (text.size() == 1 && !rows.empty()) rows.erase(0, 1);
  return absl::StrCat(text, rows, "}\n");
}

}  // namespace phimap
