// Tests column names over gRPC. A build stores them in the version, and calls that map rows compare
// their own names with the version's.
#include <optional>
#include <string>
#include <vector>

#include "core/digest/named_columns.h"
#include "gtest/gtest.h"
#include "tests/server/api/server_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

class ColumnNamesRpcTest : public ServerFixture {
 protected:
  ColumnNamesRpcTest() { Start(); }

  v1::BuildSpec Named(const std::vector<std::string>& names) {
    v1::BuildSpec spec = Spec();
    spec.set_build_id("00000000-0000-4000-8000-" + std::to_string(200'000'000'000 + next_id_++));
    spec.mutable_column_names()->Assign(names.begin(), names.end());
    return spec;
  }
  v1::Version GetVersion(const std::string& reference) {
    return Answer(&MappingStub::GetVersion, "reference: '" + reference + "'");
  }
  grpc::Status TransformNamed(uint64_t hash) {
    v1::TransformRequest request = TransformOf("letter", UniformExamples(4, 3, 7));
    request.set_column_names_hash(hash);
    return Transform(request);
  }
  static void ExpectRefused(const grpc::Status& status, const std::string& field) {
    EXPECT_THAT(status, IsError(Code::INVALID_ARGUMENT, "COLUMN_NAMES_MISMATCH", field,
                                HasSubstr("\"x\", \"y\", \"z\"")));
  }
};

TEST_F(ColumnNamesRpcTest, AVersionHasTheNamesOfItsBuildAlsoAfterARestart) {
  std::optional<v1::Version> built;
  ASSERT_TRUE(Build(Named({"x", "y", "z"}), 40, &built).ok());
  EXPECT_THAT(built->column_names(), ElementsAre("x", "y", "z"));
  EXPECT_THAT(GetVersion("letter").column_names(), ElementsAre("x", "y", "z"));
  Restart();
  EXPECT_THAT(GetVersion("letter").column_names(), ElementsAre("x", "y", "z"));
  EXPECT_TRUE(TransformNamed(ColumnNamesHash({"x", "y", "z"})).ok());
}

TEST_F(ColumnNamesRpcTest, TheSameIdWithOtherNamesIsAnotherBuild) {
  v1::BuildSpec spec = Named({"x", "y", "z"});
  ASSERT_TRUE(Build(spec).ok());
  EXPECT_TRUE(Build(spec).ok());
  *spec.mutable_column_names(0) = "w";
  EXPECT_EQ(Build(spec).error_code(), Code::ALREADY_EXISTS);
}

TEST_F(ColumnNamesRpcTest, WhatMapsRowsComparesNamesWhereBothHaveThem) {
  ASSERT_TRUE(Build(Named({"x", "y", "z"})).ok());
  EXPECT_TRUE(TransformNamed(ColumnNamesHash({"x", "y", "z"})).ok());
  EXPECT_TRUE(TransformNamed(0).ok());
  ExpectRefused(TransformNamed(ColumnNamesHash({"y", "x", "z"})), "column_names_hash");
  ExpectRefused(TransformNamed(ColumnNamesHash({"x", "y"})), "column_names_hash");
  MustBuild();
  EXPECT_TRUE(TransformNamed(ColumnNamesHash({"y", "x", "z"})).ok())
      << "this version has no column names";
}

TEST_F(ColumnNamesRpcTest, AStreamComparesThemOnce) {
  ASSERT_TRUE(Build(Named({"x", "y", "z"})).ok());
  const auto run = [this](const std::vector<uint64_t>& hashes) {
    grpc::ClientContext context;
    const auto stream = transforms_->TransformStream(&context);
    for (size_t i = 0; i < hashes.size(); ++i) {
      v1::TransformRequest request = TransformOf(i == 0 ? "letter" : "", UniformExamples(4, 3, 7));
      request.set_column_names_hash(hashes[i]);
      stream->Write(request);
    }
    stream->WritesDone();
    v1::TransformResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  };
  const uint64_t right = ColumnNamesHash({"x", "y", "z"});
  EXPECT_TRUE(run({right, 0, 0}).ok());
  ExpectRefused(run({ColumnNamesHash({"z", "y", "x"})}), "column_names_hash");
  EXPECT_EQ(FactsOf(run({right, right})).reason, "FIELD_UNEXPECTED");
}

}  // namespace
}  // namespace phimap::testing
