#include "server/http/infer_body.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

using ::testing::HasSubstr;
using Request = inference::ModelInferRequest;

template <typename Number>
std::string BytesOf(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

// A request of one input; `rest` are its members behind name, shape and datatype.
std::string One(absl::string_view shape, absl::string_view datatype, absl::string_view rest,
                absl::string_view more = "") {
  return absl::StrCat(R"({"inputs":[{"name":"x","shape":)", shape, R"(,"datatype":")", datatype,
                      "\"", rest, "}]", more, "}");
}

absl::Status Read(absl::string_view json, absl::string_view tail, Request& request,
                  BinaryOutputs& binary) {
  return ReadInferBody(absl::StrCat(json, tail), json.size(), request, binary);
}

absl::Status StatusOf(absl::string_view json, absl::string_view tail = "") {
  Request request;
  BinaryOutputs binary;
  return Read(json, tail, request, binary);
}

// Writes a tensor as the naive reader of the protocol's description would.
template <typename Number>
std::string Nested(const std::vector<Number>& numbers, const std::vector<int>& shape, size_t depth,
                   size_t& at) {
  std::vector<std::string> entries;
  for (int i = 0; i < shape[depth]; ++i) {
    if (depth + 1 < shape.size()) {
      entries.push_back(Nested(numbers, shape, depth + 1, at));
    } else {
      char text[40];
      std::snprintf(text, sizeof(text), "%.17g", static_cast<double>(numbers[at++]));
      entries.emplace_back(text);
    }
  }
  return absl::StrCat("[", absl::StrJoin(entries, ","), "]");
}

template <typename Number>
Number Random(std::mt19937_64& random) {
  using Bits = std::conditional_t<sizeof(Number) == 4, uint32_t, uint64_t>;
  for (;;) {
    const auto bits = static_cast<Bits>(random());
    Number number;
    std::memcpy(&number, &bits, sizeof(number));
    if (std::isfinite(number)) return number;
  }
}

// Compares the forms of tensors of all bits, of one to four dimensions.
template <typename Number>
void CompareForms(const char* datatype) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<int> shape(1 + random() % 4);
    size_t count = 1;
    for (int& size : shape) count *= size = static_cast<int>(1 + random() % 4);
    std::vector<Number> numbers(count);
    for (Number& number : numbers) number = Random<Number>(random);
    const std::string shape_text = absl::StrCat("[", absl::StrJoin(shape, ","), "]");
    const std::string bytes = BytesOf(numbers);
    size_t at = 0;
    size_t flat_at = 0;
    const std::string nested = Nested(numbers, shape, 0, at);
    const std::string flat = Nested(numbers, {static_cast<int>(count)}, 0, flat_at);

    Request expected;
    BinaryOutputs binary;
    const std::string size =
        absl::StrCat(R"(,"parameters":{"binary_data_size":)", bytes.size(), "}");
    ASSERT_EQ(Read(One(shape_text, datatype, size), bytes, expected, binary), absl::OkStatus());
    ASSERT_EQ(expected.raw_input_contents_size(), 1);
    EXPECT_EQ(expected.raw_input_contents(0), bytes);
    for (const std::string& data : {nested, flat}) {
      Request request;
      ASSERT_EQ(
          Read(One(shape_text, datatype, absl::StrCat(",\"data\":", data)), "", request, binary),
          absl::OkStatus());
      EXPECT_EQ(request.SerializeAsString(), expected.SerializeAsString()) << data;
    }
  }
}

TEST(InferBody, TensorsInJsonAndInBytesAreTheSameMessage) {
  CompareForms<float>("FP32");
  CompareForms<double>("FP64");
}

TEST(InferBody, EverythingElseOfARequestIsKept) {
  Request request;
  BinaryOutputs binary;
  ASSERT_EQ(Read(
                R"({"id":"7","model_name":"other","unknown":[{}],"parameters":{"a":true,"b":-5,
          "c":"t","d":0.5,"e":18446744073709551615,"f":null,"binary_data_output":true},
          "inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":null,"parameters":{"g":1}}],
          "outputs":[{"name":"features"},
                     {"name":"label","parameters":{"binary_data":false,"h":2}}]})",
                "", request, binary),
            absl::OkStatus());
  EXPECT_EQ(request.id(), "7");
  EXPECT_EQ(request.model_name(), "");
  const auto& parameters = request.parameters();
  EXPECT_EQ(parameters.size(), 6);
  EXPECT_TRUE(parameters.at("a").bool_param());
  EXPECT_EQ(parameters.at("b").int64_param(), -5);
  EXPECT_EQ(parameters.at("c").string_param(), "t");
  EXPECT_EQ(parameters.at("d").double_param(), 0.5);
  EXPECT_EQ(parameters.at("e").uint64_param(), UINT64_MAX);
  EXPECT_EQ(request.inputs(0).parameters().at("g").int64_param(), 1);
  EXPECT_EQ(request.raw_input_contents_size(), 0);
  EXPECT_EQ(request.outputs(1).parameters().size(), 1);
  EXPECT_TRUE(binary.Has("features"));
  EXPECT_FALSE(binary.Has("label"));
  EXPECT_TRUE(binary.MayLackAny());
}

TEST(InferBody, BytesAreTakenInTheOrderOfTheInputs) {
  Request request;
  BinaryOutputs binary;
  ASSERT_EQ(Read(R"({"inputs":[
      {"name":"a","shape":[3],"datatype":"UINT8","parameters":{"binary_data_size":3}},
      {"name":"b","shape":[1],"datatype":"FP32","data":[1]},
      {"name":"c","shape":[0],"datatype":"UINT8","parameters":{"binary_data_size":0}},
      {"name":"d","shape":[2],"datatype":"UINT8","parameters":{"binary_data_size":2}}]})",
                 "abcde", request, binary),
            absl::OkStatus());
  EXPECT_THAT(request.raw_input_contents(),
              ::testing::ElementsAre("abc", BytesOf<float>({1}), "", "de"));
}

TEST(InferBody, WhatIsWrongIsToldWithTheTensor) {
  const struct {
    std::string json;
    const char* words;
  } cases[] = {
      {"", "no JSON"},
      {"[]", "expected a JSON object, got an array"},
      {std::string(5000, '['), "no JSON object"},
      {R"({"inputs":{}})", "inputs: expected an array of tensors, got an object"},
      {R"({"inputs":[1]})", "inputs[0]: expected an object, got a number"},
      {R"({"inputs":[{}]})", "inputs[0]: expected a text in name, got nothing"},
      {R"({"inputs":[{"name":"x"}]})", "inputs[x]: expected a text in datatype"},
      {R"({"inputs":[{"name":"x","datatype":"FP32"}]})", "inputs[x].shape"},
      {R"({"id":7})", "id.id"},
      {R"({"parameters":7})", "parameters: expected an object"},
      {R"({"parameters":{"a":[]}})", "parameters[a]: expected a number, a text"},
      {R"({"parameters":{"binary_data_output":1}})", "parameters[binary_data_output]"},
      {R"({"outputs":[{"name":"label","parameters":{"binary_data":1}}]})",
       "outputs[label].parameters[binary_data]"},
      {One("[2,3]", "FP32", R"(,"data":[1,2,3,4,5])"), "expected 6 numbers, got 5"},
      {One("[2,3]", "FP32", R"(,"data":[1,2,3,[4],5,6])"), "expected a number after 3 numbers"},
      {One("[2,3]", "FP32", R"(,"data":[1,"2",3])"), "got a text"},
      {One("[2,3]", "FP32", R"(,"data":[[1,2],[3,4,5,6]])"), "the shape [2, 3] says"},
      {One("[2,3]", "FP32", R"(,"data":[[1,2,3],[4,5,6],[7,8,9]])"), "got one of 3"},
      {One("[2,3]", "FP32", R"(,"data":[[1,2,3],4,5,6])"), "expected an array after 3 numbers"},
      {One("[6]", "FP32", R"(,"data":[[1,2,3],[4,5,6]])"), "inputs[x].data"},
      {One("[]", "FP32", R"(,"data":[[1]])"), "inputs[x].data"},
      {One("[2,3]", "FP32", R"(,"data":5)"), "expected an array of numbers, got a number"},
      {One("[2,3]", "FP32", R"(,"data":[1e999])"), "no JSON object"},
      {One("[2,3]", "FP32", R"(,"parameters":{"binary_data_size":1})"), "got 0"},
      {One("[2,3]", "FP32", R"(,"parameters":{"binary_data_size":"1"})"), "a number of bytes"},
  };
  for (const auto& [json, words] : cases) {
    const absl::Status status = StatusOf(json);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << json;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words)) << json;
  }
  Request request;
  BinaryOutputs binary;
  EXPECT_THAT(std::string(ReadInferBody("{}", 3, request, binary).message()),
              HasSubstr("within the body's 2 bytes"));
  EXPECT_THAT(std::string(StatusOf("{}", "abc").message()), HasSubstr("got 3 more"));
}

// The call refuses these shapes and datatypes, before it looks for the numbers.
TEST(InferBody, NumbersOfAShapeOrDatatypeThatNoCallTakesAreNotRead) {
  for (const char* shape : {"[-1,5]", "[4294967296,4294967296,4294967296]",
                            "[9223372036854775807,0]", "[0,9223372036854775807]"}) {
    Request request;
    BinaryOutputs binary;
    EXPECT_EQ(Read(One(shape, "FP32", R"(,"data":[1,2])"), "", request, binary), absl::OkStatus())
        << shape;
    EXPECT_EQ(request.raw_input_contents_size(), 0);
  }
  EXPECT_EQ(StatusOf(One("[2]", "BYTES", R"(,"data":["a","b"])")), absl::OkStatus());
}

TEST(InferBody, AnAnswerHasEachOutputInTheFormThatIsWanted) {
  inference::ModelInferResponse response;
  response.set_model_name("m");
  response.set_model_version("3");
  (*response.mutable_parameters())["digest"].set_string_param("d");
  const auto add = [&response](const char* name, const char* datatype, int64_t rows,
                               const std::string& bytes) {
    auto& tensor = *response.add_outputs();
    tensor.set_name(name);
    tensor.set_datatype(datatype);
    tensor.add_shape(rows);
    tensor.add_shape(1);
    response.add_raw_output_contents(bytes);
  };
  // The float32 next to 0.1 is 0.10000000149011612 in float64.
  add("features", "FP32", 2, BytesOf<float>({0.1F, -2}));
  add("score", "FP64", 1, BytesOf<double>({0.1}));
  add("label", "BYTES", 2, std::string("\2\0\0\0a\"\3\0\0\0\xC3\xA9\n", 13));
  BinaryOutputs binary;
  inference::ModelInferResponse copy = response;
  HttpAnswer answer = WriteInferBody(copy, binary);
  EXPECT_EQ(
      answer.body,
      R"({"model_name":"m","model_version":"3","parameters":{"digest":"d"},"outputs":[)"
      R"({"name":"features","datatype":"FP32","shape":[2,1],"data":[0.10000000149011612,-2]},)"
      R"({"name":"score","datatype":"FP64","shape":[1,1],"data":[0.1]},)"
      R"({"name":"label","datatype":"BYTES","shape":[2,1],"data":["a\"","é\u000a"]}]})"
      "\n");
  EXPECT_TRUE(answer.more.empty());
  binary.others = true;
  binary.named = {{"score", false}};
  answer = WriteInferBody(response, binary);
  EXPECT_THAT(answer.body, HasSubstr(R"("shape":[2,1],"parameters":{"binary_data_size":8}})"));
  EXPECT_THAT(answer.body, HasSubstr(R"("data":[0.1])"));
  EXPECT_THAT(answer.more,
              ::testing::ElementsAre(BytesOf<float>({0.1F, -2}), ::testing::SizeIs(13)));
  EXPECT_THAT(answer.headers,
              ::testing::Contains(std::pair<std::string, std::string>(
                  "inference-header-content-length", absl::StrCat(answer.body.size()))));
}

}  // namespace
}  // namespace phimap::testing
