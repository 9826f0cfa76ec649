// Sends every kind of malformed ModelInfer request over gRPC. Expects the code, the reason, the
// field, and what was expected and received.
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/rpc/inference_fixture.h"

namespace phimap::testing {
namespace {

using ::testing::HasSubstr;
using Code = grpc::StatusCode;
using Request = inference::ModelInferRequest;
using Facts = std::map<std::string, std::string>;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

class InferenceErrorsTest : public InferenceFixture {
 protected:
  InferenceErrorsTest() {
    Start();
    MustBuild();
  }
};

struct Malformed {
  const char* what;
  // Makes a valid request malformed. Before the change, the request has 2 rows of 3 columns in raw
  // contents.
  std::function<void(Request&)> change;
  const char* reason;
  const char* field;
  const char* message;
  Facts facts;
  Code code = Code::INVALID_ARGUMENT;
};

std::function<void(Request&)> Shape(std::vector<int64_t> shape) {
  return [shape](Request& r) {
    r.mutable_inputs(0)->mutable_shape()->Assign(shape.begin(), shape.end());
  };
}

inference::InferTensorContents& Typed(Request& request) {
  request.clear_raw_input_contents();
  return *request.mutable_inputs(0)->mutable_contents();
}

// Sets one float32 of the raw contents to `value`.
std::function<void(Request&)> RawValue(int row, int column, float value) {
  return [=](Request& r) {
    const std::string bytes(reinterpret_cast<const char*>(&value), sizeof(value));
    r.mutable_raw_input_contents(0)->replace(4 * (3 * row + column), 4, bytes);
  };
}

std::vector<Malformed> MalformedInputs() {
  return {
      {"no input",
       [](auto& r) { r.clear_inputs(); },
       "INPUT_MISSING",
       "inputs",
       "expected one input, \"x\", got none",
       {{"expected", "1"}, {"actual", "0"}}},
      {"two inputs",
       [](auto& r) { r.add_inputs()->set_name("y"); },
       "INPUTS_TOO_MANY",
       "inputs",
       "expected one input, \"x\", got 2: \"x\", \"y\"",
       {{"actual", "2"}}},
      {"x twice",
       [](auto& r) { r.add_inputs()->set_name("x"); },
       "INPUTS_TOO_MANY",
       "inputs",
       "got 2: \"x\", \"x\"",
       {}},
      {"six inputs",
       [](auto& r) {
         for (int i = 0; i < 5; ++i) r.add_inputs()->set_name("y");
       },
       "INPUTS_TOO_MANY",
       "inputs",
       "\"x\", \"y\", \"y\", \"y\" and 2 more",
       {{"actual", "6"}}},
      {"another input",
       [](auto& r) { r.mutable_inputs(0)->set_name("rows"); },
       "INPUT_UNKNOWN",
       "inputs[0].name",
       "the only input is \"x\", got \"rows\"",
       {{"expected", "x"}, {"actual", "rows"}}},
      {"another datatype",
       [](auto& r) { r.mutable_inputs(0)->set_datatype("INT32"); },
       "DATATYPE_NOT_SUPPORTED",
       "inputs[x].datatype",
       "expected FP32 or FP64, got \"INT32\"",
       {{"input", "x"}, {"expected", "FP32 or FP64"}, {"actual", "INT32"}}},
      {"a datatype in lower case",
       [](auto& r) { r.mutable_inputs(0)->set_datatype("fp32"); },
       "DATATYPE_NOT_SUPPORTED",
       "inputs[x].datatype",
       "got \"fp32\"",
       {}},
      {"no datatype",
       [](auto& r) { r.mutable_inputs(0)->clear_datatype(); },
       "DATATYPE_NOT_SUPPORTED",
       "inputs[x].datatype",
       "got \"\"",
       {}},
  };
}

std::vector<Malformed> MalformedShapes() {
  const std::string max = absl::StrCat(kHuge);
  return {
      {"no shape",
       Shape({}),
       "SHAPE_MISMATCH",
       "inputs[x].shape",
       "expected two dimensions, [rows, columns], got []",
       {{"actual", "[]"}}},
      {"one dimension",
       Shape({6}),
       "SHAPE_MISMATCH",
       "inputs[x].shape",
       "got [6]",
       {{"input", "x"}, {"expected", "[rows, columns]"}, {"actual", "[6]"}}},
      {"three dimensions",
       Shape({1, 2, 3}),
       "SHAPE_MISMATCH",
       "inputs[x].shape",
       "got [1, 2, 3]",
       {}},
      {"many dimensions",
       Shape(std::vector<int64_t>(100'000, 1)),
       "SHAPE_MISMATCH",
       "inputs[x].shape",
       "got [1, 1, 1, 1, 1, 1, 1, 1, …]",
       {}},
      {"no rows",
       Shape({0, 3}),
       "FIELD_OUT_OF_RANGE",
       "inputs[x].shape",
       "expected 1..65536 rows, got 0 in the shape [0, 3]",
       {{"input", "x"}, {"actual", "0"}, {"limit", "65536"}}},
      {"negative rows",
       Shape({-1, 3}),
       "FIELD_OUT_OF_RANGE",
       "inputs[x].shape",
       "rows, got -1",
       {}},
      {"too many rows",
       Shape({65537, 3}),
       "FIELD_OUT_OF_RANGE",
       "inputs[x].shape",
       "rows, got 65537",
       {}},
      {"no columns",
       Shape({2, 0}),
       "FIELD_OUT_OF_RANGE",
       "inputs[x].shape",
       "expected 1..65536 columns, got 0 in the shape [2, 0]",
       {}},
      {"negative columns",
       Shape({2, -3}),
       "FIELD_OUT_OF_RANGE",
       "inputs[x].shape",
       "columns, got -3",
       {}},
      {"both negative, with the right product",
       Shape({-2, -3}),
       "FIELD_OUT_OF_RANGE",
       "inputs[x].shape",
       "rows, got -2",
       {}},
      {"huge rows",
       Shape({kHuge, 3}),
       "FIELD_OUT_OF_RANGE",
       "inputs[x].shape",
       "rows, got 922337203685",
       {{"actual", max}}},
      {"the most negative",
       Shape({2, std::numeric_limits<int64_t>::min()}),
       "FIELD_OUT_OF_RANGE",
       "inputs[x].shape",
       "columns, got -9223372036854775808",
       {}},
      // In 64-bit arithmetic, 2^32 · 2^32 is 0, and 2 rows of 2^62 + 3 float32 numbers take 24
      // bytes, which is the right size.
      {"a product that wraps to nothing",
       Shape({int64_t{1} << 32, int64_t{1} << 32}),
       "FIELD_OUT_OF_RANGE",
       "inputs[x].shape",
       "rows, got 4294967296",
       {}},
      {"a product that wraps to the right size",
       Shape({2, (int64_t{1} << 62) + 3}),
       "FIELD_OUT_OF_RANGE",
       "inputs[x].shape",
       "columns, got 4611686018427387907",
       {}},
      {"the largest shape, with other bytes",
       Shape({65536, 65536}),
       "LENGTH_MISMATCH",
       "raw_input_contents[0]",
       "input \"x\" is FP32 of shape [65536, 65536]: expected 17179869184 bytes, got 24",
       {{"expected", "17179869184"}, {"actual", "24"}}},
      {"other columns",
       [](auto& r) {
         Shape({3, 2})(r);
       },
       "COLUMNS_MISMATCH",
       "inputs[x].shape",
       "expected [-1, 3] (any number of rows), got [3, 2]",
       {{"input", "x"}, {"expected", "[-1, 3]"}, {"actual", "[3, 2]"}}},
  };
}

std::vector<Malformed> MalformedContents() {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  return {
      {"a byte too few",
       [](auto& r) { r.mutable_raw_input_contents(0)->pop_back(); },
       "LENGTH_MISMATCH",
       "raw_input_contents[0]",
       "input \"x\" is FP32 of shape [2, 3]: expected 24 bytes, got 23",
       {{"input", "x"},
        {"datatype", "FP32"},
        {"shape", "[2, 3]"},
        {"expected", "24"},
        {"actual", "23"}}},
      {"a byte too many",
       [](auto& r) { r.mutable_raw_input_contents(0)->push_back('\0'); },
       "LENGTH_MISMATCH",
       "raw_input_contents[0]",
       "expected 24 bytes, got 25",
       {}},
      {"float32 bytes said to be FP64",
       [](auto& r) { r.mutable_inputs(0)->set_datatype("FP64"); },
       "LENGTH_MISMATCH",
       "raw_input_contents[0]",
       "input \"x\" is FP64 of shape [2, 3]: expected 48 bytes, got 24",
       {{"datatype", "FP64"}}},
      {"a row too many",
       Shape({3, 3}),
       "LENGTH_MISMATCH",
       "raw_input_contents[0]",
       "of shape [3, 3]: expected 36 bytes, got 24",
       {}},
      {"two entries",
       [](auto& r) { r.add_raw_input_contents("x"); },
       "LENGTH_MISMATCH",
       "raw_input_contents",
       "expected one entry, for input \"x\", got 2",
       {{"expected", "1"}, {"actual", "2"}}},
      {"an empty entry",
       [](auto& r) { r.set_raw_input_contents(0, ""); },
       "LENGTH_MISMATCH",
       "raw_input_contents[0]",
       "expected 24 bytes, got 0",
       {}},
      {"no contents",
       [](auto& r) { r.clear_raw_input_contents(); },
       "CONTENTS_MISSING",
       "inputs[x].contents",
       "input \"x\" has no numbers; expected 6 in contents, or 24 bytes in raw_input_contents",
       {}},
      {"raw and typed",
       [](auto& r) { r.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1); },
       "CONTENTS_MIXED",
       "inputs[x].contents",
       "both inputs[x].contents and raw_input_contents",
       {{"input", "x"}}},
      {"typed, a number too few",
       [](auto& r) {
         for (int i = 0; i < 5; ++i) Typed(r).add_fp32_contents(0);
       },
       "LENGTH_MISMATCH",
       "inputs[x].contents.fp32_contents",
       "input \"x\" is FP32 of shape [2, 3]: expected 6 numbers, got 5",
       {{"datatype", "FP32"}, {"expected", "6"}, {"actual", "5"}}},
      {"typed, FP64 in an FP32 input",
       [](auto& r) {
         for (int i = 0; i < 6; ++i) Typed(r).add_fp64_contents(0);
       },
       "CONTENTS_MISMATCH",
       "inputs[x].contents.fp64_contents",
       "input \"x\" is FP32: expected its numbers in fp32_contents, got 6 in fp64_contents",
       {{"expected", "fp32_contents"}, {"actual", "fp64_contents"}}},
      {"typed, FP32 in an FP64 input",
       [](auto& r) {
         r.mutable_inputs(0)->set_datatype("FP64");
         Typed(r).add_fp32_contents(0);
       },
       "CONTENTS_MISMATCH",
       "inputs[x].contents.fp32_contents",
       "expected its numbers in fp64_contents",
       {}},
      {"typed, integers",
       [](auto& r) {
         for (int i = 0; i < 6; ++i) Typed(r).add_fp32_contents(0);
         Typed(r).add_int64_contents(0);
       },
       "CONTENTS_MISMATCH",
       "inputs[x].contents.int64_contents",
       "got 1 in int64_contents",
       {}},
      {"NaN",
       RawValue(1, 2, nan),
       "VALUE_NOT_FINITE",
       "inputs[x].rows[1].columns[2]",
       "inputs[x].rows[1].columns[2]: expected a finite number, got nan",
       {{"row", "1"}, {"column", "2"}}},
      {"infinity",
       RawValue(0, 1, -infinity),
       "VALUE_NOT_FINITE",
       "inputs[x].rows[0].columns[1]",
       "got -inf",
       {{"row", "0"}, {"column", "1"}}},
      {"typed NaN",
       [nan](auto& r) {
         for (int i = 0; i < 6; ++i) Typed(r).add_fp32_contents(i == 4 ? nan : 0);
       },
       "VALUE_NOT_FINITE",
       "inputs[x].rows[1].columns[1]",
       "got nan",
       {{"row", "1"}, {"column", "1"}}},
  };
}

std::vector<Malformed> MalformedRest() {
  return {
      {"an output that there is not",
       [](auto& r) {
         r.add_outputs()->set_name("features");
         r.add_outputs()->set_name("scores");
       },
       "OUTPUT_UNKNOWN",
       "outputs[1].name",
       "there is no output \"scores\"; the outputs are \"features\" and, for f2, \"residual\"",
       {{"actual", "scores"}}},
      {"an output without a name",
       [](auto& r) { r.add_outputs(); },
       "OUTPUT_UNKNOWN",
       "outputs[0].name",
       "there is no output \"\"",
       {}},
      {"an output twice",
       [](auto& r) {
         r.add_outputs()->set_name("features");
         r.add_outputs()->set_name("features");
       },
       "OUTPUT_DUPLICATED",
       "outputs[1].name",
       "output \"features\" is already requested in outputs[0]",
       {}},
      {"a negative timeout",
       [](auto& r) { (*r.mutable_parameters())["timeout"].set_int64_param(-1); },
       "FIELD_OUT_OF_RANGE",
       "parameters[timeout]",
       "got -1",
       {{"actual", "-1"}}},
      {"a timeout in words",
       [](auto& r) { (*r.mutable_parameters())["timeout"].set_string_param("1s"); },
       "PARAMETER_TYPE_MISMATCH",
       "parameters[timeout]",
       "expected microseconds as int64 or uint64, got string",
       {{"actual", "string"}}},
      {"a timeout without a value",
       [](auto& r) { (*r.mutable_parameters())["timeout"]; },
       "PARAMETER_TYPE_MISMATCH",
       "parameters[timeout]",
       "got nothing",
       {}},
      {"an id too long",
       [](auto& r) { r.set_id(std::string(513, 'i')); },
       "FIELD_TOO_LONG",
       "id",
       "expected at most 512 bytes, got 513",
       {{"limit", "512"}, {"actual", "513"}}},
  };
}

void ExpectRefused(const Malformed& malformed, const grpc::Status& status) {
  EXPECT_EQ(status.error_code(), malformed.code) << status.error_message();
  const ErrorFacts facts = FactsOf(status);
  EXPECT_EQ(facts.reason, malformed.reason);
  EXPECT_EQ(facts.field, malformed.field);
  EXPECT_THAT(status.error_message(), HasSubstr(malformed.message));
  for (const auto& [key, value] : malformed.facts) {
    EXPECT_EQ(facts.metadata.count(key) ? facts.metadata.at(key) : "missing", value) << key;
  }
}

TEST_F(InferenceErrorsTest, EachMalformedRequestIsNamedAndTheServerServesOn) {
  const v1::Examples examples = UniformExamples(2, 3);
  for (const auto& table :
       {MalformedInputs(), MalformedShapes(), MalformedContents(), MalformedRest()}) {
    for (const Malformed& malformed : table) {
      SCOPED_TRACE(malformed.what);
      Request request = RawRequest(examples);
      malformed.change(request);
      inference::ModelInferResponse response;
      ExpectRefused(malformed, Infer(request, &response));
    }
  }
  EXPECT_EQ(MustInfer(RawRequest(examples)), NativeFeatures(examples));
}

TEST_F(InferenceErrorsTest, WhatAClientSentIsShownShort) {
  Request request = RawRequest(UniformExamples(2, 3));
  request.mutable_inputs(0)->set_datatype(std::string(1 << 20, 'F'));
  inference::ModelInferResponse response;
  const grpc::Status status = Infer(request, &response);
  EXPECT_EQ(FactsOf(status).reason, "DATATYPE_NOT_SUPPORTED");
  EXPECT_LT(status.error_message().size(), 300u);
  EXPECT_LT(status.error_details().size(), 1000u);
}

class InferenceLimitsTest : public InferenceFixture {};

TEST_F(InferenceLimitsTest, FeaturesThatDoNotFitIntoAMessageAreRefusedWithTheRowsThatWould) {
  options_.max_message_bytes = 64 << 10;
  Start();
  MustBuild("letter", "f1(landmarks=30)");
  // A row takes 12 bytes in the request and 120 in the answer. Of the message limit, 1,024 bytes
  // are kept free, so (65,536 − 1,024) / 120 = 537 rows fit.
  inference::ModelInferResponse response;
  const grpc::Status status = Infer(RawRequest(UniformExamples(538, 3)), &response);
  EXPECT_EQ(status.error_code(), Code::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(FactsOf(status).reason, "MESSAGE_TOO_LARGE");
  EXPECT_EQ(FactsOf(status).field, "inputs[x].rows");
  EXPECT_EQ(FactsOf(status).metadata.at("limit"), "537");
  // Even the longest id fits into an answer with 537 rows.
  Request fits = RawRequest(UniformExamples(537, 3));
  fits.set_id(std::string(512, 'i'));
  EXPECT_EQ(MustInfer(fits).size(), 537 * 120);
}

}  // namespace
}  // namespace phimap::testing
