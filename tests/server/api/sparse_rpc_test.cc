// Tests sparse rows in Build, Transform and TransformStream.
#include <string>

#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class SparseRpcTest : public ServerFixture {
 protected:
  SparseRpcTest() { Start(); }

  v1::TransformRequest Request(v1::Examples examples) {
    return TransformOf("letter", std::move(examples));
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
  v1::TransformRequest request;
  request.set_reference("letter");
  v1::TransformResponse answers[2];
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

}  // namespace
}  // namespace phimap::testing
