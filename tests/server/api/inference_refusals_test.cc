// All errors that a request of the inference protocol alone can cause, as one table, like that of
// refusals_test.cc.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "inference/inference_service.pb.h"
#include "tests/server/api/refusals_fixture.h"

namespace phimap::testing {
namespace {

using Infers = inference::ModelInferRequest;

// A request for "letter", whose input "x" is FP32 unless `input` says otherwise; with raw contents
// unless these are empty.
Infers Infer(const std::string& input, const std::string& raw, const std::string& rest = "") {
  Infers request = Parsed<Infers>("model_name: 'letter' inputs { name: 'x' datatype: 'FP32' }");
  *request.mutable_inputs(0) = Merged(request.inputs(0), input);
  if (!raw.empty()) request.add_raw_input_contents(raw);
  return Merged(request, rest);
}
// Requests of two rows of three columns. Typed has the contents of `input`, the others have raw
// ones.
Infers Raws(const std::string& input) { return Infer(input, std::string(24, '\0')); }
Infers Shape(const std::string& shape) { return Raws(absl::StrCat("shape: [", shape, "]")); }
Infers Typed(const std::string& input) { return Infer("shape: [2, 3] " + input, ""); }
Infers With(const std::string& rest) { return Infer("shape: [2, 3]", std::string(24, '\0'), rest); }
Infers Float(int index, float value) {
  std::string raw(24, '\0');
  Put(value, index, &raw);
  return Infer("shape: [2, 3]", raw);
}

class InferenceRefusalsTest : public RefusalsFixture {
 protected:
  InferenceRefusalsTest() {
    Start();
    MustBuild();
  }
  void Refused(const std::vector<Refusal>& refusals) {
    Refuse("ModelInfer", Code::INVALID_ARGUMENT, refusals);
  }
};

TEST_F(InferenceRefusalsTest, NamesAndVersions) {
  const struct {
    const char* name;
    const char* version;
    const char* reason;
    const char* field;
  } cases[] = {
      {"digit", "", "MAPPING_NOT_FOUND", ""},
      {"digit", "1", "MAPPING_NOT_FOUND", ""},
      {"letter", "2", "VERSION_NOT_FOUND", "version"},
      {"letter", "9223372036854775807", "VERSION_NOT_FOUND", "version"},
      {"letter", "prod", "ALIAS_NOT_FOUND", "version"},
      {"letter", "0", "VERSION_INVALID", "version"},
      {"letter", "-1", "VERSION_INVALID", "version"},
      {"letter", "007", "VERSION_INVALID", "version"},
      {"letter", "1.0", "VERSION_INVALID", "version"},
      {"letter", " 1", "VERSION_INVALID", "version"},
      {"letter", "Prod", "VERSION_INVALID", "version"},
      {"letter", "9223372036854775808", "VERSION_INVALID", "version"},
      {"", "", "NAME_INVALID", "name"},
      {"Letter", "", "NAME_INVALID", "name"},
      {"letter@1", "", "NAME_INVALID", "name"},
      {"letter@1", "1", "NAME_INVALID", "name"},
  };
  for (const auto& c : cases) {
    const bool not_found = absl::EndsWith(c.reason, "NOT_FOUND");
    const Code code = not_found ? Code::NOT_FOUND : Code::INVALID_ARGUMENT;
    const std::string model = absl::StrFormat("name: '%s' version: '%s'", c.name, c.version);
    for (const std::string call :
         {"ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics"}) {
      if (call == "ModelReady" && not_found) continue;             // answers false
      if (call == "ModelStatistics" && *c.name == '\0') continue;  // answers for all models
      Refuse(call, code, {{model, c.reason, c.field}});
    }
    const std::string named =
        absl::StrFormat("model_name: '%s' model_version: '%s'", c.name, c.version);
    const std::string field = *c.field == '\0' ? "" : absl::StrCat("model_", c.field);
    Refuse("ModelInfer", code, {{With(named), c.reason, field}});
  }
  Refuse("RepositoryIndex", Code::INVALID_ARGUMENT,
         {{"repository_name: 'models'", "PARAMETER_NOT_SUPPORTED", "repository_name"}});
}

TEST_F(InferenceRefusalsTest, Inputs) {
  const std::string y = "inputs { name: 'y' } ";
  Refused({{"model_name: 'letter'", "INPUT_MISSING", "inputs",
            "expected one input, \"x\", got none", "expected=1; actual=0"},
           {With(y), "INPUTS_TOO_MANY", "inputs", "expected one input, \"x\", got 2: \"x\", \"y\"",
            "actual=2"},
           {With("inputs { name: 'x' }"), "INPUTS_TOO_MANY", "inputs", "got 2: \"x\", \"x\""},
           {With(Repeated(y, 5)), "INPUTS_TOO_MANY", "inputs",
            "\"x\", \"y\", \"y\", \"y\" and 2 more", "actual=6"},
           {Raws("name: 'rows'"), "INPUT_UNKNOWN", "inputs[0].name",
            "the only input is \"x\", got \"rows\"", "expected=x; actual=rows"}});
  const auto type = [this](const std::string& datatype, const std::string& got) {
    Refused({{Raws("datatype: '" + datatype + "'"), "DATATYPE_NOT_SUPPORTED", "inputs[x].datatype",
              "expected FP32 or FP64, got \"" + got, "input=x; expected=FP32 or FP64"}});
  };
  type("INT32", "INT32\"");
  type("fp32", "fp32\"");
  type("", "\"");
  type(std::string(1 << 20, 'F'), "FFFF");
}

TEST_F(InferenceRefusalsTest, Shapes) {
  const char kField[] = "inputs[x].shape";
  const auto dimensions = [&](const std::string& shape, const std::string& shown) {
    Refused({{Shape(shape), "SHAPE_MISMATCH", kField,
              "expected two dimensions, [rows, columns], got " + shown,
              "input=x; expected=[rows, columns]; actual=" + shown}});
  };
  dimensions("", "[]");
  dimensions("6", "[6]");
  dimensions("1, 2, 3", "[1, 2, 3]");
  dimensions(Repeated("1, ", 99'999) + "1", "[1, 1, 1, 1, 1, 1, 1, 1, …]");
  const auto range = [&](const std::string& what, const std::string& count,
                         const std::string& shape) {
    Refused({{Shape(shape), "FIELD_OUT_OF_RANGE", kField,
              "expected 1..65536 " + what + ", got " + count + " in the shape [" + shape + "]",
              "input=x; limit=65536; actual=" + count}});
  };
  for (const std::string rows : {"0", "-1", "65537", "9223372036854775807"}) {
    range("rows", rows, rows + ", 3");
  }
  for (const std::string columns : {"0", "-3", "-9223372036854775808"}) {
    range("columns", columns, "2, " + columns);
  }
  range("rows", "-2", "-2, -3");  // their product is right
  // In 64-bit arithmetic, 2^32 · 2^32 is 0, and 2 rows of 2^62 + 3 float32 numbers take 24 bytes,
  // which is the right size.
  range("rows", "4294967296", "4294967296, 4294967296");
  range("columns", "4611686018427387907", "2, 4611686018427387907");
  Refused({{Shape("3, 2"), "COLUMNS_MISMATCH", kField,
            "expected [-1, 3] (any number of rows), got [3, 2]",
            "input=x; expected=[-1, 3]; actual=[3, 2]"}});
}

TEST_F(InferenceRefusalsTest, Contents) {
  const auto raw = [this](const Infers& request, const std::string& what, const char* facts) {
    Refused({{request, "LENGTH_MISMATCH", "raw_input_contents[0]", what, facts}});
  };
  const std::string shape = "shape: [2, 3] ";
  raw(Infer(shape, std::string(23, '\0')),
      "input \"x\" is FP32 of shape [2, 3]: expected 24 bytes, got 23",
      "input=x; datatype=FP32; shape=[2, 3]; expected=24; actual=23");
  raw(Infer(shape, std::string(25, '\0')), "expected 24 bytes, got 25", "actual=25");
  raw(Infer(shape, "", "raw_input_contents: ''"), "expected 24 bytes, got 0", "actual=0");
  raw(Raws(shape + "datatype: 'FP64'"), "is FP64 of shape [2, 3]: expected 48 bytes, got 24",
      "datatype=FP64");
  raw(Shape("3, 3"), "of shape [3, 3]: expected 36 bytes, got 24", "shape=[3, 3]");
  raw(Shape("65536, 65536"), "of shape [65536, 65536]: expected 17179869184 bytes, got 24",
      "expected=17179869184; actual=24");
  Refused(
      {{With("raw_input_contents: 'x'"), "LENGTH_MISMATCH", "raw_input_contents",
        "expected one entry, for input \"x\", got 2", "expected=1; actual=2"},
       {Typed(""), "CONTENTS_MISSING", "inputs[x].contents",
        "input \"x\" has no numbers; expected 6 in contents, or 24 bytes in raw_input_contents"},
       {Raws(shape + "contents { fp32_contents: 1 }"), "CONTENTS_MIXED", "inputs[x].contents",
        "both inputs[x].contents and raw_input_contents", "input=x"},
       {Typed("contents { fp32_contents: [0, 0, 0, 0, 0] }"), "LENGTH_MISMATCH",
        "inputs[x].contents.fp32_contents",
        "input \"x\" is FP32 of shape [2, 3]: expected 6 numbers, got 5",
        "datatype=FP32; expected=6; actual=5"}});
  const auto mismatch = [this](const std::string& input, const std::string& field,
                               const std::string& what) {
    Refused({{Typed(input), "CONTENTS_MISMATCH", "inputs[x].contents." + field, what}});
  };
  mismatch("contents { fp64_contents: [0, 0, 0, 0, 0, 0] }", "fp64_contents",
           "input \"x\" is FP32: expected its numbers in fp32_contents, got 6 in fp64_contents");
  mismatch("datatype: 'FP64' contents { fp32_contents: 0 }", "fp32_contents",
           "expected its numbers in fp64_contents");
  mismatch("contents { fp32_contents: [0, 0, 0, 0, 0, 0] int64_contents: 0 }", "int64_contents",
           "got 1 in int64_contents");
  const auto value = [this](const Infers& request, const std::string& field, const char* got,
                            const char* facts) {
    Refused({{request, "VALUE_NOT_FINITE", "inputs[x]." + field, got, facts}});
  };
  value(Float(5, NAN), "rows[1].columns[2]",
        "inputs[x].rows[1].columns[2]: expected a finite number, got nan", "row=1; column=2");
  value(Float(1, -INFINITY), "rows[0].columns[1]", "got -inf", "row=0; column=1");
  value(Typed("contents { fp32_contents: [0, 0, 0, 0, nan, 0] }"), "rows[1].columns[1]", "got nan",
        "row=1; column=1");
}

TEST_F(InferenceRefusalsTest, OutputsAndParameters) {
  const auto timeout = [](const std::string& value) {
    return With("parameters { key: 'timeout' value {" + value + "} }");
  };
  const std::string features = "outputs { name: 'features' } ";
  Refused(
      {{With(features + "outputs { name: 'scores' }"), "OUTPUT_UNKNOWN", "outputs[1].name",
        "there is no output \"scores\"; the outputs are \"features\", for f2 \"residual\", and for "
        "versions that were trained \"label\", \"score\" and \"probability\"",
        "actual=scores"},
       {With("outputs {}"), "OUTPUT_UNKNOWN", "outputs[0].name", "there is no output \"\""},
       {With(features + features), "OUTPUT_DUPLICATED", "outputs[1].name",
        "output \"features\" is already requested in outputs[0]"},
       {timeout("int64_param: -1"), "FIELD_OUT_OF_RANGE", "parameters[timeout]", "got -1",
        "actual=-1"},
       {timeout("string_param: '1s'"), "PARAMETER_TYPE_MISMATCH", "parameters[timeout]",
        "expected microseconds as int64 or uint64, got string", "actual=string"},
       {timeout(""), "PARAMETER_TYPE_MISMATCH", "parameters[timeout]", "got nothing"},
       {With("parameters { key: 'sequence_id' value { int64_param: 1 } }"),
        "PARAMETER_NOT_SUPPORTED", "parameters[sequence_id]"},
       {With(absl::StrCat("id: '", std::string(513, 'i'), "'")), "FIELD_TOO_LONG", "id",
        "expected at most 512 bytes, got 513", "limit=512; actual=513"}});
  MustBuild("similar", "f1(landmarks=5)");
  Refuse("ModelInfer", Code::FAILED_PRECONDITION,
         {{With("model_name: 'similar' outputs { name: 'residual' }"), "RESIDUAL_NOT_AVAILABLE",
           "outputs[residual]"}});
  MustBuildOf("name: 'gram' kernel: 'precomputed()' spec: 'f2(landmarks=3)'",
              Numbers(5, 5, [](int i, int j) { return i == j; }), 5);
  Refused({{With("model_name: 'gram' outputs { name: 'residual' }"), "SELF_VALUES_MISSING",
            "outputs[residual]"}});
  Refuse("ModelInfer", Code::FAILED_PRECONDITION,
         {{With("outputs { name: 'label' }"), "HEAD_MISSING", "model_version"}});
  MustBuildOf("name: 'wide' kernel: '' spec: 'random_projection(dimensions=2000)'",
              UniformExamples(40, 1), 40);
  Refuse("ModelInfer", Code::RESOURCE_EXHAUSTED,
         {{Infer("shape: [65536, 1]", std::string(4 * 65536, '\0'), "model_name: 'wide'"),
           "MESSAGE_TOO_LARGE", "inputs[x].rows"}});
  EXPECT_THAT(Call("ModelInfer", With("")), IsOk());
}

TEST_F(InferenceRefusalsTest, TheseAreAllThatThePageLists) {
  // train_rpc_test has the outputs that a head does not have.
  ExpectAllCame("ModelInfer/VALUE_NOT_REPRESENTABLE ModelInfer/OUTPUT_NOT_AVAILABLE",
                /*inference=*/true);
}

}  // namespace
}  // namespace phimap::testing
