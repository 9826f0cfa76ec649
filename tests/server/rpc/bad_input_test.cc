// Sends every kind of bad input over gRPC. Expects the canonical code, field and reason, and that
// nothing is stored afterwards.
#include <cmath>
#include <functional>
#include <limits>

#include "tests/server/rpc/server_fixture.h"

namespace phimap::testing {
namespace {

using ::testing::HasSubstr;
using Code = grpc::StatusCode;

class BadInputTest : public ServerFixture {
 protected:
  BadInputTest() { Start(); }
};

v1::Examples Numbers(int rows, int columns, std::vector<double> values) {
  v1::Examples examples;
  examples.mutable_dense()->set_rows(rows);
  examples.mutable_dense()->set_columns(columns);
  examples.mutable_dense()->mutable_numbers()->mutable_values()->Add(values.begin(), values.end());
  return examples;
}

struct BadExamples {
  const char* what;
  v1::Examples examples;
  Code code;
  const char* field;
  std::map<std::string, std::string> metadata;
};

std::vector<BadExamples> AllBadExamples() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  v1::Examples short_bytes = UniformExamples(2, 3);
  short_bytes.mutable_dense()->mutable_float32_le()->resize(23);
  v1::Examples no_values;
  no_values.mutable_dense()->set_rows(1);
  no_values.mutable_dense()->set_columns(3);
  const auto sparse = [](const std::function<void(v1::SparseRows&)>& change) {
    v1::Examples examples = SparseUniformExamples(2, 3);
    change(*examples.mutable_sparse());
    return examples;
  };
  v1::Examples text;
  text.mutable_text();
  const Code kInvalid = Code::INVALID_ARGUMENT;
  return {
      {"wrong width",
       UniformExamples(2, 4),
       kInvalid,
       "examples.dense.columns",
       {{"expected", "3"}, {"actual", "4"}}},
      {"NaN",
       Numbers(2, 3, {0, 0, 0, 0, nan, 0}),
       kInvalid,
       "examples.dense.rows[1].columns[1]",
       {{"row", "1"}, {"column", "1"}}},
      {"infinity",
       Numbers(2, 3, {0, 0, inf, 0, 0, 0}),
       kInvalid,
       "examples.dense.rows[0].columns[2]",
       {{"row", "0"}, {"column", "2"}}},
      {"no rows",
       Numbers(0, 3, {}),
       kInvalid,
       "examples.dense.rows",
       {{"actual", "0"}, {"limit", "65536"}}},
      {"negative rows", Numbers(-1, 3, {}), kInvalid, "examples.dense.rows", {{"actual", "-1"}}},
      {"too many rows",
       Numbers(65537, 3, {}),
       kInvalid,
       "examples.dense.rows",
       {{"actual", "65537"}}},
      {"no columns", Numbers(1, 0, {}), kInvalid, "examples.dense.columns", {{"actual", "0"}}},
      {"too many columns", Numbers(1, 1 << 20, {}), kInvalid, "examples.dense.columns", {}},
      {"largest shape, no bytes",
       Numbers(65536, 65536, {}),
       kInvalid,
       "examples.dense.numbers",
       {{"expected", "4294967296"}, {"actual", "0"}}},
      {"bytes cut",
       short_bytes,
       kInvalid,
       "examples.dense.float32_le",
       {{"expected", "24"}, {"actual", "23"}}},
      {"no values", no_values, kInvalid, "examples.dense.values", {}},
      {"nothing", v1::Examples(), kInvalid, "examples", {}},
      {"no sparse rows",
       sparse([](auto& s) { s.set_rows(0); }),
       kInvalid,
       "examples.sparse.rows",
       {{"actual", "0"}, {"limit", "65536"}}},
      {"too many sparse columns",
       sparse([](auto& s) { s.set_columns(65537); }),
       kInvalid,
       "examples.sparse.columns",
       {{"actual", "65537"}}},
      {"no sparse values",
       sparse([](auto& s) { s.clear_values(); }),
       kInvalid,
       "examples.sparse.values",
       {}},
      {"an offset too few",
       sparse([](auto& s) { s.set_rows(3); }),
       kInvalid,
       "examples.sparse.row_offsets_le",
       {{"expected", "32"}, {"actual", "24"}}},
      {"offsets do not begin with 0",
       sparse([](auto& s) { (*s.mutable_row_offsets_le())[0] = 1; }),
       kInvalid,
       "examples.sparse.row_offsets_le",
       {}},
      {"offsets end beyond the entries",
       sparse([](auto& s) { (*s.mutable_row_offsets_le())[23] = 0x7f; }),
       kInvalid,
       "examples.sparse.row_offsets_le",
       {{"expected", "6"}}},
      {"a piece of a column",
       sparse([](auto& s) { s.mutable_column_indices_le()->append("x"); }),
       kInvalid,
       "examples.sparse.column_indices_le",
       {{"expected", "24"}, {"actual", "25"}}},
      {"a sparse value too few",
       sparse([](auto& s) { s.mutable_float32_le()->resize(20); }),
       kInvalid,
       "examples.sparse.float32_le",
       {{"expected", "24"}, {"actual", "20"}}},
      {"no text", text, kInvalid, "examples.text.values", {{"actual", "0"}}},
  };
}

void ExpectFacts(const grpc::Status& status, const BadExamples& bad) {
  EXPECT_EQ(status.error_code(), bad.code) << status.error_message();
  const ErrorFacts facts = FactsOf(status);
  EXPECT_EQ(facts.field, bad.field);
  EXPECT_NE(facts.reason, "");
  for (const auto& [key, value] : bad.metadata) {
    EXPECT_EQ(facts.metadata.count(key) ? facts.metadata.at(key) : "missing", value) << key;
  }
}

TEST_F(BadInputTest, ExamplesOfABuildAreNamedAndTheIdIsFree) {
  for (const BadExamples& bad : AllBadExamples()) {
    SCOPED_TRACE(bad.what);
    BuildStream stream(*mappings_);
    ASSERT_TRUE(stream.Send(Spec()));
    stream.Send(UniformExamples(20, 3));
    stream.Send(bad.examples);
    ExpectFacts(stream.Finish(), bad);
    ExpectNothingStored();
  }
  EXPECT_TRUE(Build(Spec()).ok());
}

TEST_F(BadInputTest, ABadRowOfABuildIsNumberedInItsMessageAndInTheStream) {
  BuildStream stream(*mappings_);
  stream.Send(Spec());
  stream.Send(UniformExamples(20, 3));
  stream.Send(UniformExamples(10, 3));
  stream.Send(Numbers(2, 3, {0, 0, 0, 0, 0, std::numeric_limits<double>::infinity()}));
  const grpc::Status status = stream.Finish();
  EXPECT_THAT(status.error_message(), HasSubstr("row 31 of the stream"));
  const ErrorFacts facts = FactsOf(status);
  EXPECT_EQ(facts.field, "examples.dense.rows[1].columns[2]");
  EXPECT_EQ(facts.metadata.at("row"), "1");
  EXPECT_EQ(facts.metadata.at("stream_row"), "31");
}

TEST_F(BadInputTest, ExamplesOfATransformAreNamedAndTheServerServesOn) {
  MustBuild();
  for (const BadExamples& bad : AllBadExamples()) {
    SCOPED_TRACE(bad.what);
    v1::TransformRequest request;
    request.set_reference("letter");
    *request.mutable_examples() = bad.examples;
    v1::TransformResponse response;
    ExpectFacts(Transform(request, &response), bad);
  }
  v1::TransformRequest good;
  good.set_reference("letter");
  *good.mutable_examples() = UniformExamples(1, 3);
  v1::TransformResponse response;
  EXPECT_TRUE(Transform(good, &response).ok());
}

TEST_F(BadInputTest, SpecsAreRefusedBeforeAnythingIsSent) {
  const struct {
    const char* what;
    std::function<void(v1::BuildSpec&)> change;
    Code code;
    const char* field;
  } cases[] = {
      {"name", [](auto& s) { s.set_mapping("Letter"); }, Code::INVALID_ARGUMENT, "spec.mapping"},
      {"no name", [](auto& s) { s.clear_mapping(); }, Code::INVALID_ARGUMENT, "spec.mapping"},
      {"id", [](auto& s) { s.set_build_id("1"); }, Code::INVALID_ARGUMENT, "spec.build_id"},
      {"no kernel", [](auto& s) { s.clear_kernel(); }, Code::INVALID_ARGUMENT, "spec.kernel"},
      {"kernel", [](auto& s) { s.set_kernel("rbf(gamma=)"); }, Code::INVALID_ARGUMENT,
       "spec.kernel"},
      {"long kernel", [](auto& s) { s.set_kernel(std::string(5000, '(')); }, Code::INVALID_ARGUMENT,
       "spec.kernel"},
      {"not PSD", [](auto& s) { s.set_kernel("poly(degree=2, coef0=-1)"); }, Code::INVALID_ARGUMENT,
       "spec.kernel"},
      {"mapping", [](auto& s) { s.mutable_spec()->set_text("f9(landmarks=5)"); },
       Code::INVALID_ARGUMENT, "spec.spec.text"},
      {"both", [](auto& s) { s.mutable_spec()->set_landmarks(5); }, Code::INVALID_ARGUMENT,
       "spec.spec.text"},
      {"no kind", [](auto& s) { s.mutable_spec()->Clear(); }, Code::INVALID_ARGUMENT,
       "spec.spec.kind"},
      {"no landmarks",
       [](auto& s) {
         s.mutable_spec()->Clear();
         s.mutable_spec()->set_kind(v1::MappingSpec::F2);
       },
       Code::INVALID_ARGUMENT, "spec.spec.landmarks"},
      {"too many landmarks",
       [](auto& s) {
         s.mutable_spec()->Clear();
         s.mutable_spec()->set_kind(v1::MappingSpec::F2);
         s.mutable_spec()->set_landmarks(8193);
       },
       Code::INVALID_ARGUMENT, "spec.spec.landmarks"},
      {"F3 without dimensions",
       [](auto& s) {
         s.mutable_spec()->Clear();
         s.mutable_spec()->set_kind(v1::MappingSpec::F3);
         s.mutable_spec()->set_landmarks(5);
       },
       Code::INVALID_ARGUMENT, "spec.spec.dimensions"},
      {"unknown enum",
       [](auto& s) {
         s.mutable_spec()->Clear();
         s.mutable_spec()->set_kind(static_cast<v1::MappingSpec::Kind>(77));
       },
       Code::INVALID_ARGUMENT, "spec.spec.kind"},
      {"policy",
       [](auto& s) {
         s.mutable_spec()->Clear();
         s.mutable_spec()->set_kind(v1::MappingSpec::F2);
         s.mutable_spec()->set_landmarks(5);
         s.mutable_spec()->set_policy(static_cast<v1::MappingSpec::Policy>(9));
       },
       Code::INVALID_ARGUMENT, "spec.spec.policy"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    v1::BuildSpec spec = Spec();
    c.change(spec);
    const grpc::Status status = Build(spec);
    EXPECT_EQ(status.error_code(), c.code) << status.error_message();
    EXPECT_EQ(FactsOf(status).field, c.field) << status.error_message();
  }
  ExpectNothingStored();
}

TEST_F(BadInputTest, StreamsThatAreEmptyOrTooShortAreFailedPreconditions) {
  const grpc::Status empty = Build(Spec(), 0);
  EXPECT_EQ(empty.error_code(), Code::FAILED_PRECONDITION) << empty.error_message();
  EXPECT_EQ(FactsOf(empty).reason, "STREAM_EMPTY");
  const grpc::Status few =
      Build(Spec("letter", "f2(landmarks=50)", "00000000-0000-4000-8000-000000000002"), 40);
  EXPECT_EQ(few.error_code(), Code::FAILED_PRECONDITION) << few.error_message();
  EXPECT_EQ(FactsOf(few).reason, "ROWS_TOO_FEW");
  EXPECT_THAT(few.error_message(), HasSubstr("50"));
  EXPECT_THAT(few.error_message(), HasSubstr("40"));
  ExpectNothingStored();
}

TEST_F(BadInputTest, MessagesOutOfOrderEndTheBuild) {
  {
    BuildStream stream(*mappings_);
    stream.Send(UniformExamples(1, 3));
    EXPECT_EQ(stream.Finish().error_code(), Code::INVALID_ARGUMENT);
  }
  {
    BuildStream stream(*mappings_);
    stream.SendFinish(0);
    EXPECT_EQ(stream.Finish().error_code(), Code::INVALID_ARGUMENT);
  }
  {
    BuildStream stream(*mappings_);
    stream.HalfClose();
    EXPECT_EQ(stream.Finish().error_code(), Code::INVALID_ARGUMENT);
  }
  {
    BuildStream stream(*mappings_);
    stream.Send(Spec());
    stream.Send(Spec());
    EXPECT_EQ(FactsOf(stream.Finish()).field, "spec");
  }
  {
    BuildStream stream(*mappings_);
    stream.Send(Spec());
    stream.Send(UniformExamples(10, 3));
    stream.HalfClose();
    const grpc::Status status = stream.Finish();
    EXPECT_EQ(status.error_code(), Code::INVALID_ARGUMENT);
    EXPECT_EQ(FactsOf(status).reason, "FINISH_MISSING");
  }
  ExpectNothingStored();
}

TEST_F(BadInputTest, AnotherRowCountIsDataLossWithBothNumbers) {
  BuildStream stream(*mappings_);
  stream.Send(Spec());
  stream.Send(UniformExamples(40, 3));
  stream.SendFinish(41);
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), Code::DATA_LOSS);
  const ErrorFacts facts = FactsOf(status);
  EXPECT_EQ(facts.field, "finish.row_count");
  EXPECT_EQ(facts.metadata.at("expected"), "41");
  EXPECT_EQ(facts.metadata.at("actual"), "40");
  ExpectNothingStored();
}

TEST_F(BadInputTest, UnknownAndMalformedReferencesAreNamed) {
  MustBuild();
  const struct {
    const char* reference;
    Code code;
    const char* field;
  } cases[] = {{"", Code::INVALID_ARGUMENT, "reference"},
               {"Letter", Code::INVALID_ARGUMENT, "reference"},
               {"letter@", Code::INVALID_ARGUMENT, "reference"},
               {"letter@2", Code::NOT_FOUND, "reference"},
               {"digit", Code::NOT_FOUND, ""},
               {"letter@prod", Code::NOT_FOUND, "reference"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.reference);
    v1::TransformRequest request;
    request.set_reference(c.reference);
    *request.mutable_examples() = UniformExamples(1, 3);
    v1::TransformResponse response;
    const grpc::Status refused = Transform(request, &response);
    EXPECT_EQ(refused.error_code(), c.code);
    EXPECT_EQ(FactsOf(refused).field, c.field) << refused.error_message();
    v1::GetVersionRequest get;
    get.set_reference(c.reference);
    v1::Version version;
    grpc::ClientContext context;
    EXPECT_EQ(mappings_->GetVersion(&context, get, &version).error_code(), c.code);
  }
}

}  // namespace
}  // namespace phimap::testing
