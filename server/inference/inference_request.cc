#include "server/inference/inference_request.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/registry/reference.h"
#include "server/transform/row_messages.h"

namespace phimap {

const char* DatatypeOf(FloatType type) { return type == FloatType::kFloat32 ? "FP32" : "FP64"; }

absl::StatusOr<std::string> ReferenceToModel(absl::string_view name, absl::string_view version,
                                             const ModelFields& fields) {
  PHIMAP_RETURN_IF_ERROR(CheckMappingName(name, fields.name));
  if (version.empty()) return std::string(name);
  std::string reference = absl::StrCat(name, "@", version);
  if (ParseReference(reference).ok()) return reference;
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kVersionInvalid, fields.version,
      absl::StrCat(
          "expected a number such as \"7\", an alias such as \"prod\", \"sha256:\" followed by "
          "the digits of a digest, or nothing for the newest version; got ",
          Quoted(version)));
}

absl::Status InModelFields(const absl::Status& status, const ModelFields& fields) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value() || detail->field != "reference") return status;
  return WithField(status, fields.version);
}

namespace {

using inference::InferParameter;

struct Unsupported {
  const char* name;
  const char* why;
};

constexpr char kNoState[] =
    "a model keeps no state between requests and maps each row by itself: omit this parameter";

constexpr Unsupported kOfRequest[] = {
    {"sequence_id", kNoState}, {"sequence_start", kNoState}, {"sequence_end", kNoState}};
constexpr Unsupported kOfInput[] = {
    {"shared_memory_region",
     "shared memory is not supported: send the rows in raw_input_contents or in contents"}};
constexpr Unsupported kOfOutput[] = {
    {"shared_memory_region",
     "shared memory is not supported: the answer has the features in raw_output_contents"},
    {"classification",
     "features are not classes and have no order: omit this parameter, and train a model on the "
     "features"}};

bool AsksForNothing(const InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return !parameter.bool_param();
    case InferParameter::kInt64Param:
      return parameter.int64_param() == 0;
    case InferParameter::kUint64Param:
      return parameter.uint64_param() == 0;
    case InferParameter::kDoubleParam:
      return parameter.double_param() == 0;
    case InferParameter::kStringParam:
      return parameter.string_param().empty();
    case InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return true;
}

absl::Status CheckEach(const InferParameters& parameters, absl::Span<const Unsupported> table,
                       const std::string& prefix) {
  if (parameters.empty()) return absl::OkStatus();
  for (const Unsupported& unsupported : table) {
    const auto found = parameters.find(unsupported.name);
    if (found == parameters.end() || AsksForNothing(found->second)) continue;
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kParameterNotSupported,
                     absl::StrCat(prefix, "parameters[", unsupported.name, "]"), unsupported.why,
                     {{"parameter", unsupported.name}});
  }
  return absl::OkStatus();
}

std::optional<InferenceOutput> OutputNamed(absl::string_view name) {
  for (const InferenceOutput output :
       {InferenceOutput::kFeatures, InferenceOutput::kResidual, InferenceOutput::kLabel,
        InferenceOutput::kScore, InferenceOutput::kProbability}) {
    if (name == OutputName(output)) return output;
  }
  return std::nullopt;
}

// Returns the prefix of a field, such as "inputs[x].". An unknown name is not repeated there; the
// prefix then contains the index instead.
std::string PrefixOf(const char* list, int index, const std::string& name) {
  if (name == kInputName || OutputNamed(name).has_value()) {
    return absl::StrCat(list, "[", name, "].");
  }
  return absl::StrCat(list, "[", index, "].");
}

}  // namespace

const char* OutputName(InferenceOutput output) {
  switch (output) {
    case InferenceOutput::kFeatures:
      return kFeaturesName;
    case InferenceOutput::kResidual:
      return kResidualName;
    case InferenceOutput::kLabel:
      return kLabelName;
    case InferenceOutput::kScore:
      return kScoreName;
    case InferenceOutput::kProbability:
      return kProbabilityName;
  }
  return "";
}

absl::Status CheckParameters(const inference::ModelInferRequest& request) {
  PHIMAP_RETURN_IF_ERROR(CheckEach(request.parameters(), kOfRequest, ""));
  for (int i = 0; i < request.inputs_size(); ++i) {
    PHIMAP_RETURN_IF_ERROR(CheckEach(request.inputs(i).parameters(), kOfInput,
                                     PrefixOf("inputs", i, request.inputs(i).name())));
  }
  for (int i = 0; i < request.outputs_size(); ++i) {
    PHIMAP_RETURN_IF_ERROR(CheckEach(request.outputs(i).parameters(), kOfOutput,
                                     PrefixOf("outputs", i, request.outputs(i).name())));
  }
  return absl::OkStatus();
}

namespace {

constexpr char kTimeout[] = "timeout";
constexpr char kField[] = "parameters[timeout]";

const char* TypeName(const InferParameter& parameter) {
  switch (parameter.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return "bool";
    case InferParameter::kStringParam:
      return "string";
    case InferParameter::kDoubleParam:
      return "double";
    case InferParameter::kInt64Param:
      return "int64";
    case InferParameter::kUint64Param:
      return "uint64";
    case InferParameter::PARAMETER_CHOICE_NOT_SET:
      break;
  }
  return "nothing";
}

absl::StatusOr<int64_t> MicrosecondsOf(const InferParameter& parameter) {
  constexpr auto kLongest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (parameter.has_uint64_param()) {
    return static_cast<int64_t>(std::min(parameter.uint64_param(), kLongest));
  }
  if (parameter.has_int64_param()) return parameter.int64_param();
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kParameterTypeMismatch, kField,
      absl::StrCat("expected microseconds as int64 or uint64, got ", TypeName(parameter)),
      {{"expected", "int64 or uint64"}, {"actual", TypeName(parameter)}});
}

}  // namespace

absl::StatusOr<absl::Duration> TimeoutOf(const InferParameters& parameters) {
  const auto timeout = parameters.find(kTimeout);
  if (timeout == parameters.end()) return absl::InfiniteDuration();
  PHIMAP_ASSIGN_OR_RETURN(const int64_t microseconds, MicrosecondsOf(timeout->second));
  if (microseconds < 0) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kFieldOutOfRange, kField,
        absl::StrCat("expected microseconds, at least 0 (which means no timeout), got ",
                     microseconds),
        {{"actual", absl::StrCat(microseconds)}});
  }
  return microseconds == 0 ? absl::InfiniteDuration() : absl::Microseconds(microseconds);
}

namespace {

using Input = inference::ModelInferRequest::InferInputTensor;

// Returns a text such as "[2, 64]". Shows only the first dimensions of a shape that has many.
std::string ShapeText(const google::protobuf::RepeatedField<int64_t>& shape) {
  constexpr int kShown = 8;
  std::string text = "[";
  for (int i = 0; i < std::min(shape.size(), kShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", shape.Get(i));
  }
  return text + (shape.size() > kShown ? ", …]" : "]");
}

// Returns an error about the input, with `facts` and the input's name as its metadata.
absl::Status BadInput(absl::string_view reason, absl::string_view field, absl::string_view message,
                      std::map<std::string, std::string> facts) {
  facts.emplace("input", kInputName);
  return MakeError(absl::StatusCode::kInvalidArgument, reason, field, message, std::move(facts));
}

// Returns the inputs' names for a message, such as: "x", "y" and 3 more.
std::string NamesOf(const inference::ModelInferRequest& request) {
  constexpr int kShown = 4;
  std::string names;
  for (int i = 0; i < std::min(request.inputs_size(), kShown); ++i) {
    absl::StrAppend(&names, i == 0 ? "" : ", ", Quoted(request.inputs(i).name()));
  }
  if (request.inputs_size() > kShown) {
    absl::StrAppend(&names, " and ", request.inputs_size() - kShown, " more");
  }
  return names;
}

absl::Status CheckOneInput(const inference::ModelInferRequest& request) {
  const int count = request.inputs_size();
  if (count == 0) {
    return BadInput(reason::kInputMissing, "inputs", "expected one input, \"x\", got none",
                    {{"expected", "1"}, {"actual", "0"}});
  }
  if (count > 1) {
    return BadInput(reason::kInputsTooMany, "inputs",
                    absl::StrCat("expected one input, \"x\", got ", count, ": ", NamesOf(request)),
                    {{"expected", "1"}, {"actual", absl::StrCat(count)}});
  }
  if (request.inputs(0).name() != kInputName) {
    const std::string& actual = request.inputs(0).name();
    return BadInput(reason::kInputUnknown, "inputs[0].name",
                    absl::StrCat("the only input is \"x\", got ", Quoted(actual)),
                    {{"expected", kInputName}, {"actual", Excerpt(actual)}});
  }
  return absl::OkStatus();
}

absl::StatusOr<FloatType> TypeOf(const Input& input) {
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    if (input.datatype() == DatatypeOf(type)) return type;
  }
  return BadInput(reason::kDatatypeNotSupported, "inputs[x].datatype",
                  absl::StrCat("expected FP32 or FP64, got ", Quoted(input.datatype())),
                  {{"expected", "FP32 or FP64"}, {"actual", Excerpt(input.datatype())}});
}

absl::Status CheckCount(const Input& input, const char* what, int64_t count, int64_t limit) {
  if (count >= 1 && count <= limit) return absl::OkStatus();
  return BadInput(reason::kFieldOutOfRange, "inputs[x].shape",
                  absl::StrCat("expected 1..", limit, " ", what, ", got ", count, " in the shape ",
                               ShapeText(input.shape())),
                  {{"actual", absl::StrCat(count)}, {"limit", absl::StrCat(limit)}});
}

// Returns a view with the tensor's shape and no data. It describes at most 65536 · 65536 · 8 = 2^35
// bytes, so later products do not overflow.
absl::StatusOr<RowsView> ShapeOf(const Input& input, FloatType type) {
  if (input.shape_size() != 2) {
    const std::string actual = ShapeText(input.shape());
    return BadInput(reason::kShapeMismatch, "inputs[x].shape",
                    absl::StrCat("expected two dimensions, [rows, columns], got ", actual),
                    {{"expected", "[rows, columns]"}, {"actual", actual}});
  }
  PHIMAP_RETURN_IF_ERROR(CheckCount(input, "rows", input.shape(0), kMaxRowsPerMessage));
  PHIMAP_RETURN_IF_ERROR(CheckCount(input, "columns", input.shape(1), kMaxColumnsPerMessage));
  return RowsView{nullptr, type, input.shape(0), input.shape(1)};
}

absl::Status WrongLength(const std::string& field, const char* unit, int64_t expected,
                         int64_t actual, const RowsView& rows) {
  const std::string shape = absl::StrCat("[", rows.rows, ", ", rows.columns, "]");
  return BadInput(reason::kLengthMismatch, field,
                  absl::StrCat("input \"x\" is ", DatatypeOf(rows.type), " of shape ", shape,
                               ": expected ", expected, " ", unit, ", got ", actual),
                  {{"expected", absl::StrCat(expected)},
                   {"actual", absl::StrCat(actual)},
                   {"datatype", DatatypeOf(rows.type)},
                   {"shape", shape}});
}

absl::StatusOr<RowsView> FromRaw(const inference::ModelInferRequest& request, RowsView rows) {
  const int entries = request.raw_input_contents_size();
  if (entries != 1) {
    return BadInput(reason::kLengthMismatch, "raw_input_contents",
                    absl::StrCat("expected one entry, for input \"x\", got ", entries),
                    {{"expected", "1"}, {"actual", absl::StrCat(entries)}});
  }
  const std::string& bytes = request.raw_input_contents(0);
  const int64_t expected = rows.rows * rows.RowBytes();
  if (std::ssize(bytes) != expected) {
    return WrongLength("raw_input_contents[0]", "bytes", expected, bytes.size(), rows);
  }
  rows.data = bytes.data();
  return rows;
}

// A field of typed contents, and its number of values.
struct Held {
  const char* field;
  int count;
};

// Returns the number of values in each field of typed contents. The fields that no supported
// datatype uses come first.
std::array<Held, 8> AllHeld(const inference::InferTensorContents& contents) {
  return {{{"bool_contents", contents.bool_contents_size()},
           {"int_contents", contents.int_contents_size()},
           {"int64_contents", contents.int64_contents_size()},
           {"uint_contents", contents.uint_contents_size()},
           {"uint64_contents", contents.uint64_contents_size()},
           {"bytes_contents", contents.bytes_contents_size()},
           {"fp32_contents", contents.fp32_contents_size()},
           {"fp64_contents", contents.fp64_contents_size()}}};
}

bool HoldsAny(const inference::InferTensorContents& contents) {
  const std::array<Held, 8> all = AllHeld(contents);
  return std::any_of(all.begin(), all.end(), [](const Held& held) { return held.count > 0; });
}

absl::StatusOr<RowsView> FromTyped(const inference::InferTensorContents& contents, RowsView rows) {
  const bool single = rows.type == FloatType::kFloat32;
  const absl::string_view wanted = single ? "fp32_contents" : "fp64_contents";
  for (const Held& held : AllHeld(contents)) {
    if (held.count == 0 || held.field == wanted) continue;
    return BadInput(
        reason::kContentsMismatch, absl::StrCat("inputs[x].contents.", held.field),
        absl::StrCat("input \"x\" is ", DatatypeOf(rows.type), ": expected its numbers in ", wanted,
                     ", got ", held.count, " in ", held.field),
        {{"expected", std::string(wanted)}, {"actual", held.field}});
  }
  const int64_t count = single ? contents.fp32_contents_size() : contents.fp64_contents_size();
  const int64_t expected = rows.rows * rows.columns;
  if (count != expected) {
    return WrongLength(absl::StrCat("inputs[x].contents.", wanted), "numbers", expected, count,
                       rows);
  }
  rows.data = single ? reinterpret_cast<const char*>(contents.fp32_contents().data())
                     : reinterpret_cast<const char*>(contents.fp64_contents().data());
  return rows;
}

}  // namespace

absl::StatusOr<RowsView> RowsFromInput(const inference::ModelInferRequest& request) {
  PHIMAP_RETURN_IF_ERROR(CheckOneInput(request));
  const Input& input = request.inputs(0);
  PHIMAP_ASSIGN_OR_RETURN(const FloatType type, TypeOf(input));
  PHIMAP_ASSIGN_OR_RETURN(const RowsView shape, ShapeOf(input, type));
  const bool raw = request.raw_input_contents_size() > 0;
  const bool typed = HoldsAny(input.contents());
  if (raw && typed) {
    return BadInput(reason::kContentsMixed, "inputs[x].contents",
                    "both inputs[x].contents and raw_input_contents have numbers; expected them in "
                    "one of the two",
                    {});
  }
  if (!raw && !typed) {
    return BadInput(reason::kContentsMissing, "inputs[x].contents",
                    absl::StrCat("input \"x\" has no numbers; expected ",
                                 shape.rows * shape.columns, " in contents, or ",
                                 shape.rows * shape.RowBytes(), " bytes in raw_input_contents"),
                    {{"expected", absl::StrCat(shape.rows * shape.RowBytes())}, {"actual", "0"}});
  }
  return raw ? FromRaw(request, shape) : FromTyped(input.contents(), shape);
}

absl::Status CheckInputShape(const VersionHandle& version, const RowsView& rows) {
  const int64_t columns = version.input_columns();
  if (version.TakesColumns(rows.columns)) return absl::OkStatus();
  if (columns == 0) {
    return BadInput(reason::kDatatypeNotSupported, "inputs[x].datatype",
                    "the model maps text or bytes, which this protocol does not carry here: call "
                    "Transform of phimap.v1.TransformService",
                    {});
  }
  const std::string expected = absl::StrCat("[-1, ", columns, "]");
  const std::string actual = absl::StrCat("[", rows.rows, ", ", rows.columns, "]");
  return BadInput(reason::kColumnsMismatch, "inputs[x].shape",
                  absl::StrCat("expected ", expected, " (any number of rows), got ", actual),
                  {{"expected", expected}, {"actual", actual}});
}

namespace {

absl::Status UnknownOutput(int index, const std::string& name) {
  return MakeError(absl::StatusCode::kInvalidArgument, reason::kOutputUnknown,
                   absl::StrCat("outputs[", index, "].name"),
                   absl::StrCat("there is no output ", Quoted(name),
                                "; the outputs are \"features\", for f2 \"residual\", and for "
                                "versions that were trained \"label\", \"score\" and "
                                "\"probability\""),
                   {{"expected", kFeaturesName}, {"actual", Excerpt(name)}});
}

absl::Status TwiceTheSame(int index, int before, const std::string& name) {
  return MakeError(
      absl::StatusCode::kInvalidArgument, reason::kOutputDuplicated,
      absl::StrCat("outputs[", index, "].name"),
      absl::StrCat("output ", Quoted(name), " is already requested in outputs[", before, "]"),
      {{"output", name}});
}

}  // namespace

absl::StatusOr<std::vector<InferenceOutput>> OutputsOf(
    const inference::ModelInferRequest& request) {
  std::vector<InferenceOutput> outputs;
  for (int i = 0; i < request.outputs_size(); ++i) {
    const std::string& name = request.outputs(i).name();
    const std::optional<InferenceOutput> output = OutputNamed(name);
    if (!output.has_value()) return UnknownOutput(i, name);
    const auto before = std::find(outputs.begin(), outputs.end(), *output);
    if (before != outputs.end()) {
      return TwiceTheSame(i, static_cast<int>(before - outputs.begin()), name);
    }
    outputs.push_back(*output);
  }
  if (outputs.empty()) outputs.push_back(InferenceOutput::kFeatures);
  return outputs;
}

}  // namespace phimap
