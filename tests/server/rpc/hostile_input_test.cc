// Tests input that is well-formed but hostile: endless expressions, shapes whose product overflows,
// and numbers at the ends of their types. Every such request must be refused with an error that
// names the field and quotes little of the input. Nothing may be stored, and the server must go on
// serving.
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {
namespace {

using Code = grpc::StatusCode;

constexpr int32_t kMin = std::numeric_limits<int32_t>::min();
constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
// The maximum size of an error's message and details together.
constexpr size_t kMaxErrorBytes = 8 << 10;

std::string Repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) absl::StrAppend(&all, text);
  return all;
}

class HostileInputTest : public ServerFixture {
 protected:
  HostileInputTest() { Start(); }

  static void ExpectRefused(const grpc::Status& status, const std::string& field) {
    EXPECT_EQ(status.error_code(), Code::INVALID_ARGUMENT) << status.error_message();
    EXPECT_EQ(FactsOf(status).field, field);
    EXPECT_LE(status.error_message().size() + status.error_details().size(), kMaxErrorBytes);
  }
  void ExpectServesOn() {
    v1::TransformRequest request;
    request.set_reference("letter");
    *request.mutable_examples() = UniformExamples(1, 3);
    v1::TransformResponse response;
    EXPECT_TRUE(Transform(request, &response).ok());
  }
};

TEST_F(HostileInputTest, ExpressionsAreBoundedInDepthLengthAndParts) {
  const std::vector<std::string> kernels = {
      std::string(10 << 20, '('),                          // very long
      std::string(4096, '('),                              // deeply nested, and as long as allowed
      Repeated("(", 33) + "linear()" + Repeated(")", 33),  // one level too deep
      Repeated("2*(", 1000) + "linear()" + Repeated(")", 1000),
      Repeated("linear()+", 400) + "linear()",  // many parts
      Repeated("linear()*", 400) + "linear()",
      "rbf(gamma=" + std::string(4000, '9') + ")",  // larger than any number
      "rbf(gamma=1e" + std::string(4000, '9') + ")",
      "rbf(gamma=1e-" + std::string(4000, '9') + ")",
      "rbf(gamma=nan)",
      "rbf(gamma=inf)",
      "rbf(gamma=-1)",
      "poly(degree=18446744073709551617)",  // 2^64 + 1
      "poly(degree=4294967297)",            // 2^32 + 1
      "poly(degree=-1)",
      "poly(degree=65)",
      Repeated("1e300*", 20) + "linear()",  // the product of the factors
      std::string("rbf(gamma=1)\0+", 14) + "rbf(gamma=1)",
      Repeated("rbf", 1000),
      "rbf(" + Repeated("gamma=1,", 400) + "gamma=1)",
  };
  for (const std::string& kernel : kernels) {
    SCOPED_TRACE(absl::StrCat(kernel.substr(0, 40), " … ", kernel.size(), " bytes"));
    v1::BuildSpec spec = Spec();
    spec.set_kernel(kernel);
    ExpectRefused(Build(spec), "spec.kernel");
  }
  const std::vector<std::string> mappings = {
      std::string(10 << 20, 'f'),
      "f2(" + std::string(4000, '(') + ")",
      "f2(landmarks=" + std::string(4000, '9') + ")",
      "f2(landmarks=4294967301)",            // 2^32 + 5
      "f2(landmarks=18446744073709551621)",  // 2^64 + 5
      "f2(landmarks=-5)",
      "f2(landmarks=5, pool_rows=9223372036854775807)",
      "f3(landmarks=5, dimensions=4294967298)",
      "f2(" + Repeated("landmarks=5,", 300) + "landmarks=5)",
  };
  for (const std::string& mapping : mappings) {
    SCOPED_TRACE(absl::StrCat(mapping.substr(0, 40), " … ", mapping.size(), " bytes"));
    v1::BuildSpec spec = Spec();
    spec.mutable_spec()->set_text(mapping);
    ExpectRefused(Build(spec), "spec.spec.text");
  }
  ExpectNothingStored();
  MustBuild();
  ExpectServesOn();
}

TEST_F(HostileInputTest, ShapesWhoseProductOverflowsAreRefused) {
  MustBuild();
  const struct {
    int32_t rows;
    int32_t columns;
    const char* field;
  } shapes[] = {
      {kMax, kMax, "rows"},         {kMin, kMin, "rows"},         {-1, -3, "rows"},
      {kMin, -1, "rows"},           {65537, 65535, "rows"},       {1 << 30, 4, "rows"},
      {3, kMin, "columns"},         {2, kMax, "columns"},         {1, -3, "columns"},
      {1, 1 << 30, "columns"},      {65536, 65536, "float32_le"},  // 2^34 bytes, 0 in 32 bits
      {16384, 65536, "float32_le"},
  };
  for (const auto& shape : shapes) {
    SCOPED_TRACE(absl::StrCat(shape.rows, " x ", shape.columns));
    v1::TransformRequest request;
    request.set_reference("letter");
    v1::DenseRows& dense = *request.mutable_examples()->mutable_dense();
    dense.set_rows(shape.rows);
    dense.set_columns(shape.columns);
    dense.set_float32_le(std::string(12, '\0'));  // 1 row × 3 columns
    v1::TransformResponse response;
    const std::string field = absl::StrCat("examples.dense.", shape.field);
    ExpectRefused(Transform(request, &response), field);

    grpc::ClientContext context;
    const auto stream = transforms_->TransformStream(&context);
    v1::TransformStreamRequest first;
    first.set_reference("letter");
    *first.mutable_examples() = request.examples();
    stream->Write(first);
    ExpectRefused(stream->Finish(), field);

    BuildStream build(*mappings_);
    build.Send(Spec("digit"));
    build.Send(request.examples());
    ExpectRefused(build.Finish(), field);
  }
  ExpectServesOn();
}

// In 32-bit arithmetic, 2^16 rows × 2^16 columns have 0 values, and those take 0 bytes as float32
// or as float64.
TEST_F(HostileInputTest, AShapeWhoseProductWrapsToNothingIsNotOneOfNoNumbers) {
  MustBuild();
  const auto expect_length = [this](const char* field, const char* expected,
                                    const std::function<void(v1::DenseRows&)>& empty) {
    SCOPED_TRACE(field);
    v1::TransformRequest request;
    request.set_reference("letter");
    v1::DenseRows& dense = *request.mutable_examples()->mutable_dense();
    dense.set_rows(1 << 16);
    dense.set_columns(1 << 16);
    empty(dense);
    v1::TransformResponse response;
    const grpc::Status status = Transform(request, &response);
    ExpectRefused(status, absl::StrCat("examples.dense.", field));
    EXPECT_EQ(FactsOf(status).metadata["expected"], expected);
    EXPECT_EQ(FactsOf(status).metadata["actual"], "0");
  };
  expect_length("float32_le", "17179869184", [](v1::DenseRows& d) { d.set_float32_le(""); });
  expect_length("float64_le", "34359738368", [](v1::DenseRows& d) { d.set_float64_le(""); });
  expect_length("numbers", "4294967296", [](v1::DenseRows& d) { d.mutable_numbers(); });
  ExpectServesOn();
}

TEST_F(HostileInputTest, NumbersAtTheEndsOfTheirTypesAreRefused) {
  MustBuild();
  const auto expect_spec = [this](const char* field,
                                  const std::function<void(v1::MappingSpec&)>& set) {
    SCOPED_TRACE(field);
    v1::BuildSpec spec = Spec("digit");
    spec.mutable_spec()->Clear();
    spec.mutable_spec()->set_kind(v1::MappingSpec::F2);
    spec.mutable_spec()->set_landmarks(5);
    set(*spec.mutable_spec());
    ExpectRefused(Build(spec), absl::StrCat("spec.spec.", field));
  };
  for (const int32_t number : {kMin, -1, kMax}) {
    expect_spec("landmarks", [=](v1::MappingSpec& spec) { spec.set_landmarks(number); });
    expect_spec("dimensions", [=](v1::MappingSpec& spec) {
      spec.set_kind(v1::MappingSpec::F3);
      spec.set_dimensions(number);
    });
  }
  for (const int64_t number :
       {std::numeric_limits<int64_t>::min(), int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    expect_spec("pool_rows", [=](v1::MappingSpec& spec) { spec.set_pool_rows(number); });
    BuildStream build(*mappings_);
    build.Send(Spec("digit"));
    build.Send(UniformExamples(40, 3));
    build.SendFinish(number);
    EXPECT_EQ(build.Finish().error_code(), Code::DATA_LOSS) << number;
  }
  for (const int32_t size : {kMin, -1}) {  // too large a page size is not an error
    SCOPED_TRACE(size);
    grpc::ClientContext context;
    v1::ListMappingsRequest request;
    request.set_page_size(size);
    v1::ListMappingsResponse response;
    ExpectRefused(mappings_->ListMappings(&context, request, &response), "page_size");
  }
  ExpectServesOn();
}

TEST_F(HostileInputTest, NamesWithoutEndAreRefusedAndHardlyQuoted) {
  MustBuild();
  const std::string endless(8 << 20, 'a');
  for (const std::string& reference :
       {endless, "letter@" + endless, "letter@" + std::string(1 << 20, '9'),
        std::string("letter@18446744073709551617"), std::string("letter@-1"),
        std::string("letter@0"), std::string("letter\0@1", 9), std::string("../../etc/passwd@1")}) {
    SCOPED_TRACE(absl::StrCat(reference.substr(0, 40), " … ", reference.size(), " bytes"));
    v1::TransformRequest request;
    request.set_reference(reference);
    *request.mutable_examples() = UniformExamples(1, 3);
    v1::TransformResponse response;
    ExpectRefused(Transform(request, &response), "reference");
  }
  v1::BuildSpec spec = Spec(endless);
  ExpectRefused(Build(spec), "spec.mapping");
  spec = Spec("digit", "f2(landmarks=5)", endless);
  ExpectRefused(Build(spec), "spec.build_id");
  grpc::ClientContext context;
  v1::ListMappingsRequest page;
  page.set_page_token(endless);
  v1::ListMappingsResponse response;
  ExpectRefused(mappings_->ListMappings(&context, page, &response), "page_token");
  v1::TransformRequest request;
  request.set_reference("letter");
  request.set_expected_digest(endless);
  *request.mutable_examples() = UniformExamples(1, 3);
  v1::TransformResponse features;
  const grpc::Status digest = Transform(request, &features);
  EXPECT_FALSE(digest.ok());
  EXPECT_LE(digest.error_message().size() + digest.error_details().size(), kMaxErrorBytes);
  ExpectServesOn();
}

}  // namespace
}  // namespace phimap::testing
