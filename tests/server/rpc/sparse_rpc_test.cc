// Tests sparse rows in Build, Transform and TransformStream.
#include <cmath>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {
namespace {

using Code = grpc::StatusCode;
using ::testing::HasSubstr;

template <typename T>
void Put(T value, int64_t index, std::string* to) {
  to->replace(static_cast<size_t>(index) * sizeof(T), sizeof(T),
              std::string(reinterpret_cast<const char*>(&value), sizeof(T)));
}

class SparseRpcTest : public ServerFixture {
 protected:
  SparseRpcTest() { Start(); }

  v1::TransformRequest Request(v1::Examples examples) {
    v1::TransformRequest request;
    request.set_reference("letter");
    *request.mutable_examples() = std::move(examples);
    return request;
  }
  // Dense examples of 70 rows, in which most of the numbers are 0.
  static v1::Examples Thin() {
    v1::Examples examples = UniformExamples(70, 3, 5);
    for (int64_t n = 0; n < 210; ++n) {
      if (n % 4 != 0) Put(0.0f, n, examples.mutable_dense()->mutable_float32_le());
    }
    return examples;
  }
};

TEST_F(SparseRpcTest, FeaturesAndResidualsAreThoseOfTheDenseRows) {
  MustBuild();
  for (const bool residual : {false, true}) {
    v1::TransformRequest dense = Request(Thin());
    dense.set_residual(residual);
    v1::TransformRequest sparse = Request(SparseExamples(Thin().dense()));
    sparse.set_residual(residual);
    v1::TransformResponse expected, answer;
    ASSERT_TRUE(Transform(dense, &expected).ok());
    ASSERT_TRUE(Transform(sparse, &answer).ok());
    EXPECT_EQ(answer.SerializeAsString(), expected.SerializeAsString());
    EXPECT_EQ(answer.residuals_size(), residual ? 70 : 0);
  }
}

TEST_F(SparseRpcTest, StreamsTakeBothFormsInTurn) {
  MustBuild();
  grpc::ClientContext context;
  const auto stream = transforms_->TransformStream(&context);
  v1::TransformStreamRequest request;
  request.set_reference("letter");
  v1::TransformStreamResponse answers[2];
  for (int i = 0; i < 2; ++i) {
    *request.mutable_examples() = i == 0 ? SparseExamples(Thin().dense()) : Thin();
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&answers[i]));
    request.clear_reference();
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(answers[0].features().SerializeAsString(), answers[1].features().SerializeAsString());
}

TEST_F(SparseRpcTest, FaultsOfEntriesAreNamedInATransformAndInABuild) {
  MustBuild();
  const struct {
    const char* what;
    std::function<void(v1::SparseRows&)> change;
    const char* reason;
    const char* field;
  } cases[] = {
      {"offset", [](auto& s) { Put(int64_t{7}, 1, s.mutable_row_offsets_le()); }, "OFFSETS_INVALID",
       "examples.sparse.row_offsets[1]"},
      {"negative offset", [](auto& s) { Put(int64_t{-7}, 1, s.mutable_row_offsets_le()); },
       "OFFSETS_INVALID", "examples.sparse.row_offsets[1]"},
      {"column", [](auto& s) { Put(3, 2, s.mutable_column_indices_le()); }, "COLUMN_INDEX_INVALID",
       "examples.sparse.column_indices[2]"},
      {"negative column", [](auto& s) { Put(-1, 0, s.mutable_column_indices_le()); },
       "COLUMN_INDEX_INVALID", "examples.sparse.column_indices[0]"},
      {"column twice", [](auto& s) { Put(1, 5, s.mutable_column_indices_le()); },
       "COLUMN_INDEX_INVALID", "examples.sparse.column_indices[5]"},
      {"value", [](auto& s) { Put(INFINITY, 4, s.mutable_float32_le()); }, "VALUE_NOT_FINITE",
       "examples.sparse.values[4]"},
  };
  for (const auto& bad : cases) {
    SCOPED_TRACE(bad.what);
    v1::Examples examples = SparseUniformExamples(2, 3);
    bad.change(*examples.mutable_sparse());
    v1::TransformResponse response;
    const grpc::Status transform = Transform(Request(examples), &response);
    EXPECT_EQ(transform.error_code(), Code::INVALID_ARGUMENT) << transform.error_message();
    EXPECT_EQ(FactsOf(transform).reason, bad.reason);
    EXPECT_EQ(FactsOf(transform).field, bad.field);

    BuildStream stream(*mappings_);
    ASSERT_TRUE(stream.Send(Spec("other")));
    stream.Send(SparseUniformExamples(20, 3));
    stream.Send(examples);
    const grpc::Status build = stream.Finish();
    EXPECT_EQ(build.error_code(), Code::INVALID_ARGUMENT) << build.error_message();
    EXPECT_EQ(FactsOf(build).reason, bad.reason);
    EXPECT_EQ(FactsOf(build).field, bad.field);
    EXPECT_THAT(build.error_message(), HasSubstr("of the stream"));
  }
  v1::TransformResponse response;
  EXPECT_TRUE(Transform(Request(Thin()), &response).ok());
}

TEST_F(SparseRpcTest, TextIsRefusedWhereRowsOfNumbersAreExpected) {
  MustBuild();
  v1::Examples text;
  text.mutable_text()->add_values("x");
  v1::TransformResponse response;
  const grpc::Status transform = Transform(Request(text), &response);
  EXPECT_EQ(transform.error_code(), Code::INVALID_ARGUMENT);
  EXPECT_EQ(FactsOf(transform).reason, "EXAMPLE_KIND_MISMATCH");
  EXPECT_EQ(FactsOf(transform).field, "examples.text");

  for (const bool first : {true, false}) {
    BuildStream stream(*mappings_);
    ASSERT_TRUE(stream.Send(Spec("other")));
    if (!first) stream.Send(UniformExamples(20, 3));
    stream.Send(text);
    const grpc::Status build = stream.Finish();
    EXPECT_EQ(build.error_code(), Code::INVALID_ARGUMENT);
    EXPECT_EQ(FactsOf(build).reason, first ? "KERNEL_NOT_APPLICABLE" : "EXAMPLE_KINDS_MIXED");
    EXPECT_EQ(FactsOf(build).field, first ? "spec.kernel" : "examples.text");
  }
}

}  // namespace
}  // namespace phimap::testing
