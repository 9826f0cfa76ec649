#include "server/http/infer_body.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/http/http_status.h"
#include "server/http/json.h"
#include "server/http/json_values.h"

namespace phimap {
namespace {

namespace dom = simdjson::dom;
using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;
using Input = inference::ModelInferRequest::InferInputTensor;
using OutputTensor = inference::ModelInferResponse::InferOutputTensor;

static_assert(std::endian::native == std::endian::little, "tensors are little-endian bytes");

constexpr char kSize[] = "binary_data_size";
constexpr char kHeaderName[] = "Inference-Header-Content-Length";

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

absl::Status Expected(const std::string& field, absl::string_view expected,
                      absl::string_view actual) {
  return MalformedHttp(field, absl::StrCat("expected ", expected, ", got ", actual));
}

// Finds a member that is there and not null.
bool Find(dom::object object, const char* key, dom::element& value) {
  return object.at_key(key).get(value) == simdjson::SUCCESS && !value.is_null();
}

// "inputs[x]" if the name could be one of a tensor, "inputs[2]" if not.
std::string PathOf(const char* list, int index, absl::string_view name) {
  const bool plain =
      !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
      });
  return plain ? absl::StrCat(list, "[", name, "]") : absl::StrCat(list, "[", index, "]");
}

absl::Status ReadText(dom::object object, const char* key, const std::string& path,
                      std::string& text) {
  dom::element value;
  std::string_view view;
  if (!Find(object, key, value)) return Expected(path, absl::StrCat("a text in ", key), "nothing");
  if (value.get_string().get(view) != simdjson::SUCCESS) {
    return Expected(absl::StrCat(path, ".", key), "a text", NameOf(value));
  }
  text.assign(view.data(), view.size());
  return absl::OkStatus();
}

absl::Status ReadParameter(dom::element value, const std::string& field,
                           inference::InferParameter& parameter) {
  switch (value.type()) {
    case dom::element_type::BOOL:
      parameter.set_bool_param(bool(value));
      return absl::OkStatus();
    case dom::element_type::INT64:
      parameter.set_int64_param(int64_t(value));
      return absl::OkStatus();
    case dom::element_type::UINT64:
      parameter.set_uint64_param(uint64_t(value));
      return absl::OkStatus();
    case dom::element_type::DOUBLE:
      parameter.set_double_param(double(value));
      return absl::OkStatus();
    case dom::element_type::STRING: {
      const std::string_view text = value.get_string().value();
      parameter.set_string_param(text.data(), text.size());
      return absl::OkStatus();
    }
    case dom::element_type::NULL_VALUE:
      return absl::OkStatus();
    case dom::element_type::ARRAY:
    case dom::element_type::OBJECT:
      break;
  }
  return Expected(field, "a number, a text, true or false", NameOf(value));
}

// Reads the parameters of `object`, but for the one that is the door's: it is returned by `own`.
absl::Status ReadParameters(dom::object object, const std::string& path, const char* own_name,
                            std::optional<dom::element>& own, Parameters& parameters) {
  dom::element value;
  dom::object members;
  if (!Find(object, "parameters", value)) return absl::OkStatus();
  const std::string field = absl::StrCat(path, path.empty() ? "" : ".", "parameters");
  if (value.get_object().get(members) != simdjson::SUCCESS) {
    return Expected(field, "an object", NameOf(value));
  }
  for (const dom::key_value_pair member : members) {
    const absl::string_view key = View(member.key);
    if (key == own_name) {
      if (!member.value.is_null()) own = member.value;
      continue;
    }
    PHIMAP_RETURN_IF_ERROR(ReadParameter(member.value, absl::StrCat(field, "[", Excerpt(key), "]"),
                                         parameters[std::string(key)]));
  }
  return absl::OkStatus();
}

absl::Status ReadFlag(const std::optional<dom::element>& value, const std::string& field,
                      bool& flag) {
  if (!value.has_value() || value->get_bool().get(flag) == simdjson::SUCCESS) {
    return absl::OkStatus();
  }
  return Expected(field, "true or false", NameOf(*value));
}

// Reads the numbers of an input, which are flat or nested as its shape says, as bytes.
template <typename Number>
class NumbersReader {
 public:
  NumbersReader(const Input& input, std::string field, int64_t count)
      : input_(input), field_(std::move(field)), count_(count) {}

  absl::StatusOr<std::string> Read(dom::array array) {
    const auto first = array.begin();
    const bool nested = input_.shape_size() > 1 && first != array.end() && (*first).is_array();
    PHIMAP_RETURN_IF_ERROR(nested ? ReadNested(array, 0) : ReadRow(array));
    const auto actual = static_cast<int64_t>(bytes_.size() / sizeof(Number));
    if (actual == count_) return std::move(bytes_);
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kLengthMismatch, field_,
        absl::StrCat("input ", Quoted(input_.name()), " is ", input_.datatype(), " of shape ",
                     Shape(), ": expected ", count_, " numbers, got ", actual),
        {{"input", Excerpt(input_.name())},
         {"expected", absl::StrCat(count_)},
         {"actual", absl::StrCat(actual)},
         {"datatype", input_.datatype()},
         {"shape", Shape()}});
  }

 private:
  std::string Shape() const {
    std::string text = "[";
    for (int i = 0; i < input_.shape_size(); ++i) {
      if (i == 8) return absl::StrCat(text, ", …]");
      absl::StrAppend(&text, i == 0 ? "" : ", ", input_.shape(i));
    }
    return absl::StrCat(text, "]");
  }

  absl::Status Wrong(absl::string_view expected, absl::string_view actual) const {
    return Expected(field_,
                    absl::StrCat(expected, " after ", bytes_.size() / sizeof(Number), " numbers"),
                    actual);
  }

  // REQUIRES: the shape has two dimensions or more from `depth` on.
  absl::Status ReadNested(dom::array array, int depth) {
    int64_t entries = 0;
    for (const dom::element entry : array) {
      dom::array inner;
      if (entry.get_array().get(inner) != simdjson::SUCCESS) {
        return Wrong("an array", NameOf(entry));
      }
      const bool last = depth + 2 == input_.shape_size();
      const size_t before = bytes_.size();
      PHIMAP_RETURN_IF_ERROR(last ? ReadRow(inner) : ReadNested(inner, depth + 1));
      const auto length = static_cast<int64_t>((bytes_.size() - before) / sizeof(Number));
      if (last && length != input_.shape(depth + 1)) {
        return Wrong(absl::StrCat("arrays as long as the shape ", Shape(), " says"),
                     absl::StrCat("one of ", length));
      }
      ++entries;
    }
    if (entries == input_.shape(depth)) return absl::OkStatus();
    return Wrong(absl::StrCat("arrays as long as the shape ", Shape(), " says"),
                 absl::StrCat("one of ", entries));
  }

  absl::Status ReadRow(dom::array array) {
    for (const dom::element entry : array) {
      double number = 0;
      if (entry.get_double().get(number) != simdjson::SUCCESS) {
        return Wrong("a number", NameOf(entry));
      }
      const auto value = static_cast<Number>(number);
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    return absl::OkStatus();
  }

  const Input& input_;
  const std::string field_;
  const int64_t count_;
  std::string bytes_;
};

// Returns how many numbers a shape has; nothing for a shape that no call takes, with a negative
// dimension or more numbers than memory has.
std::optional<int64_t> CountOf(const Input& input) {
  constexpr int64_t kMany = int64_t{1} << 40;
  int64_t count = 1;
  for (const int64_t size : input.shape()) {
    if (size < 0 || size > kMany / std::max<int64_t>(count, 1)) return std::nullopt;
    count *= size;
  }
  return count;
}

// Reads the message of a request.
class InferReader {
 public:
  InferReader(inference::ModelInferRequest& request, BinaryOutputs& binary, absl::string_view tail)
      : request_(request), binary_(binary), tail_(tail) {}

  absl::Status Read(dom::object object) {
    dom::element id;
    if (Find(object, "id", id)) {
      PHIMAP_RETURN_IF_ERROR(ReadText(object, "id", "id", *request_.mutable_id()));
    }
    std::optional<dom::element> all;
    PHIMAP_RETURN_IF_ERROR(
        ReadParameters(object, "", "binary_data_output", all, *request_.mutable_parameters()));
    PHIMAP_RETURN_IF_ERROR(ReadFlag(all, "parameters[binary_data_output]", binary_.others));
    PHIMAP_RETURN_IF_ERROR(ReadEach(object, "inputs", &InferReader::ReadInput));
    PHIMAP_RETURN_IF_ERROR(ReadEach(object, "outputs", &InferReader::ReadOutput));
    if (tail_.empty()) return absl::OkStatus();
    return Expected("body",
                    absl::StrCat("as many bytes behind the JSON as the inputs' ", kSize, " say"),
                    absl::StrCat(tail_.size(), " more"));
  }

 private:
  absl::Status ReadEach(dom::object object, const char* list,
                        absl::Status (InferReader::*read)(dom::object, int)) {
    dom::element value;
    dom::array entries;
    if (!Find(object, list, value)) return absl::OkStatus();
    if (value.get_array().get(entries) != simdjson::SUCCESS) {
      return Expected(list, "an array of tensors", NameOf(value));
    }
    int index = 0;
    for (const dom::element entry : entries) {
      dom::object tensor;
      if (entry.get_object().get(tensor) != simdjson::SUCCESS) {
        return Expected(absl::StrCat(list, "[", index, "]"), "an object", NameOf(entry));
      }
      PHIMAP_RETURN_IF_ERROR((this->*read)(tensor, index));
      ++index;
    }
    return absl::OkStatus();
  }

  absl::Status ReadInput(dom::object tensor, int index) {
    Input& input = *request_.add_inputs();
    const std::string number = absl::StrCat("inputs[", index, "]");
    PHIMAP_RETURN_IF_ERROR(ReadText(tensor, "name", number, *input.mutable_name()));
    const std::string path = PathOf("inputs", index, input.name());
    PHIMAP_RETURN_IF_ERROR(ReadText(tensor, "datatype", path, *input.mutable_datatype()));
    PHIMAP_RETURN_IF_ERROR(ReadShape(tensor, path, input));
    std::optional<dom::element> size;
    PHIMAP_RETURN_IF_ERROR(ReadParameters(tensor, path, kSize, size, *input.mutable_parameters()));
    dom::element data;
    const bool has_data = Find(tensor, "data", data);
    if (size.has_value() && has_data) {
      return Expected(path, absl::StrCat("data or ", kSize), "both");
    }
    if (size.has_value()) return TakeBytes(*size, path);
    return has_data ? ReadData(data, path, input) : absl::OkStatus();
  }

  absl::Status ReadShape(dom::object tensor, const std::string& path, Input& input) {
    const std::string field = absl::StrCat(path, ".shape");
    dom::element value;
    dom::array sizes;
    if (!Find(tensor, "shape", value)) return Expected(field, "an array of integers", "nothing");
    if (value.get_array().get(sizes) != simdjson::SUCCESS) {
      return Expected(field, "an array of integers", NameOf(value));
    }
    for (const dom::element entry : sizes) {
      int64_t size = 0;
      if (entry.get_int64().get(size) != simdjson::SUCCESS) {
        return Expected(field, "integers of at most 64 bits", std::string(simdjson::minify(entry)));
      }
      input.add_shape(size);
    }
    return absl::OkStatus();
  }

  // Takes the next bytes behind the JSON.
  absl::Status TakeBytes(dom::element stated, const std::string& path) {
    const std::string field = absl::StrCat(path, ".parameters[", kSize, "]");
    uint64_t size = 0;
    if (stated.get_uint64().get(size) != simdjson::SUCCESS) {
      return Expected(field, "a number of bytes", std::string(simdjson::minify(stated)));
    }
    if (size > tail_.size()) {
      return Expected(field,
                      absl::StrCat(size, " bytes behind the JSON, whose length the header ",
                                   kHeaderName, " states"),
                      absl::StrCat(tail_.size()));
    }
    request_.add_raw_input_contents(tail_.data(), size);
    tail_.remove_prefix(size);
    return absl::OkStatus();
  }

  absl::Status ReadData(dom::element data, const std::string& path, Input& input) {
    dom::array array;
    const std::string field = absl::StrCat(path, ".data");
    if (data.get_array().get(array) != simdjson::SUCCESS) {
      return Expected(field, "an array of numbers", NameOf(data));
    }
    const bool single = input.datatype() == "FP32";
    const std::optional<int64_t> count = CountOf(input);
    // The call refuses other datatypes and shapes, before it asks for what they hold.
    if ((!single && input.datatype() != "FP64") || !count.has_value()) return absl::OkStatus();
    PHIMAP_ASSIGN_OR_RETURN(std::string bytes,
                            single ? NumbersReader<float>(input, field, *count).Read(array)
                                   : NumbersReader<double>(input, field, *count).Read(array));
    request_.add_raw_input_contents(std::move(bytes));
    return absl::OkStatus();
  }

  absl::Status ReadOutput(dom::object tensor, int index) {
    auto& output = *request_.add_outputs();
    const std::string number = absl::StrCat("outputs[", index, "]");
    PHIMAP_RETURN_IF_ERROR(ReadText(tensor, "name", number, *output.mutable_name()));
    const std::string path = PathOf("outputs", index, output.name());
    std::optional<dom::element> own;
    PHIMAP_RETURN_IF_ERROR(
        ReadParameters(tensor, path, "binary_data", own, *output.mutable_parameters()));
    if (!own.has_value()) return absl::OkStatus();
    binary_.named.emplace_back(output.name(), false);
    return ReadFlag(own, absl::StrCat(path, ".parameters[binary_data]"),
                    binary_.named.back().second);
  }

  inference::ModelInferRequest& request_;
  BinaryOutputs& binary_;
  // Bytes behind the JSON that no tensor has taken yet.
  absl::string_view tail_;
};

// Appends texts, each of which comes behind its length in four bytes. Returns false if the bytes
// are no such texts.
bool AppendTexts(absl::string_view bytes, std::string& text) {
  bool first = true;
  while (!bytes.empty()) {
    uint32_t size = 0;
    if (bytes.size() < sizeof(size)) return false;
    std::memcpy(&size, bytes.data(), sizeof(size));
    bytes.remove_prefix(sizeof(size));
    if (bytes.size() < size) return false;
    if (!std::exchange(first, false)) text.push_back(',');
    AppendString(bytes.substr(0, size), text);
    bytes.remove_prefix(size);
  }
  return true;
}

template <typename Number>
bool AppendNumbers(absl::string_view bytes, std::string& text) {
  if (bytes.size() % sizeof(Number) != 0) return false;
  text.reserve(text.size() + bytes.size() / sizeof(Number) * 25);
  for (size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
    if (at > 0) text.push_back(',');
    Number number;
    std::memcpy(&number, bytes.data() + at, sizeof(number));
    AppendNumber(static_cast<double>(number), text);
  }
  return true;
}

// Appends the values of a tensor. Returns false, with `text` unchanged, if JSON has no form of
// them.
bool AppendData(const OutputTensor& tensor, absl::string_view bytes, std::string& text) {
  const size_t before = text.size();
  text.append(",\"data\":[");
  const bool appended = tensor.datatype() == "FP32"    ? AppendNumbers<float>(bytes, text)
                        : tensor.datatype() == "FP64"  ? AppendNumbers<double>(bytes, text)
                        : tensor.datatype() == "BYTES" ? AppendTexts(bytes, text)
                                                       : false;
  if (appended) {
    text.push_back(']');
  } else {
    text.resize(before);
  }
  return appended;
}

void AppendParameters(const Parameters& parameters, std::string& text) {
  char before = '{';
  for (const auto& [name, value] : parameters) {
    if (value.parameter_choice_case() == inference::InferParameter::PARAMETER_CHOICE_NOT_SET) {
      continue;
    }
    text.push_back(before);
    before = ',';
    AppendString(name, text);
    text.push_back(':');
    if (value.has_bool_param()) text.append(value.bool_param() ? "true" : "false");
    if (value.has_int64_param()) absl::StrAppend(&text, value.int64_param());
    if (value.has_uint64_param()) absl::StrAppend(&text, value.uint64_param());
    if (value.has_double_param()) AppendNumber(value.double_param(), text);
    if (value.has_string_param()) AppendString(value.string_param(), text);
  }
  text.append(before == '{' ? "{}" : "}");
}

void AppendMember(absl::string_view name, absl::string_view value, std::string& text) {
  absl::StrAppend(&text, ",\"", name, "\":");
  AppendString(value, text);
}

}  // namespace

bool BinaryOutputs::Has(absl::string_view name) const {
  for (const auto& [output, binary] : named) {
    if (output == name) return binary;
  }
  return others;
}

bool BinaryOutputs::MayLackAny() const {
  return !others ||
         std::any_of(named.begin(), named.end(), [](const auto& output) { return !output.second; });
}

// A byte of JSON costs what it does in JsonCost. Tensors and parameters are more: each has a colon,
// and takes at most this much.
int64_t InferBodyCost(absl::string_view body, size_t json_bytes) {
  constexpr int64_t kOfColon = 256;
  const absl::string_view json = body.substr(0, json_bytes);
  const int64_t colons = std::count(json.begin(), json.end(), ':');
  return JsonCost(static_cast<int64_t>(json.size())) + kOfColon * colons +
         static_cast<int64_t>(body.size() - json.size());
}

absl::Status ReadInferBody(absl::string_view body, size_t json_bytes,
                           inference::ModelInferRequest& request, BinaryOutputs& binary) {
  if (json_bytes > body.size()) {
    return Expected(
        kHeaderName,
        absl::StrCat("the length of the JSON, within the body's ", body.size(), " bytes"),
        absl::StrCat(json_bytes));
  }
  if (json_bytes == 0) {
    return Expected("body", "a JSON object that describes the inputs", "no JSON");
  }
  dom::parser parser;
  dom::object object;
  PHIMAP_RETURN_IF_ERROR(ParseObject(parser, body.substr(0, json_bytes), object));
  return InferReader(request, binary, body.substr(json_bytes)).Read(object);
}

// A float32 of four bytes takes at most 25 characters, a byte of a text at most six, in a text that
// grows by doubling.
int64_t InferAnswerCost(int64_t bytes, const BinaryOutputs& binary) {
  return 4096 + (binary.MayLackAny() ? 20 : 2) * bytes;
}

HttpAnswer WriteInferBody(inference::ModelInferResponse& response, const BinaryOutputs& binary) {
  HttpAnswer answer;
  std::string& text = answer.body;
  text.append("{\"model_name\":");
  AppendString(response.model_name(), text);
  AppendMember("model_version", response.model_version(), text);
  if (!response.id().empty()) AppendMember("id", response.id(), text);
  text.append(",\"parameters\":");
  AppendParameters(response.parameters(), text);
  text.append(",\"outputs\":[");
  for (int i = 0; i < response.outputs_size(); ++i) {
    const OutputTensor& tensor = response.outputs(i);
    text.append(i == 0 ? "{\"name\":" : ",{\"name\":");
    AppendString(tensor.name(), text);
    AppendMember("datatype", tensor.datatype(), text);
    text.append(",\"shape\":[");
    for (int d = 0; d < tensor.shape_size(); ++d) {
      absl::StrAppend(&text, d == 0 ? "" : ",", tensor.shape(d));
    }
    text.push_back(']');
    std::string bytes;
    if (i < response.raw_output_contents_size())
      bytes.swap(*response.mutable_raw_output_contents(i));
    if (binary.Has(tensor.name()) || !AppendData(tensor, bytes, text)) {
      absl::StrAppend(&text, ",\"parameters\":{\"", kSize, "\":", bytes.size(), "}");
      answer.more.push_back(std::move(bytes));
    }
    text.push_back('}');
  }
  text.append("]}");
  if (answer.more.empty()) {
    text.push_back('\n');
    answer.headers = {{"content-type", "application/json"}};
  } else {
    answer.headers = {{"content-type", "application/octet-stream"},
                      {"inference-header-content-length", absl::StrCat(text.size())}};
  }
  return answer;
}

}  // namespace phimap
