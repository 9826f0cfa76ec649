// Tests the plain C interface: wrong arguments give errors, and results are written only inside the
// caller's buffers. The Python client's tests check that features computed through this interface
// have the same bits as the server's.
#include "core/binding/engine_binding.h"

#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/plan/artifact.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/plans.h"

namespace phimap::testing {
namespace {

constexpr auto kOk = static_cast<int32_t>(StatusCode::kOk);
constexpr auto kInvalid = static_cast<int32_t>(StatusCode::kInvalidArgument);
constexpr auto kDataLoss = static_cast<int32_t>(StatusCode::kDataLoss);

// An engine that was loaded through the C interface, and the message of its last error.
class Bound {
 public:
  explicit Bound(const std::string& artifact) {
    code_ = phimap_engine_load(artifact.data(), static_cast<int64_t>(artifact.size()), &engine_,
                               error_.data(), error_.size());
  }
  ~Bound() { phimap_engine_free(engine_); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  int32_t Dense(const std::vector<double>& values, int64_t rows, int64_t columns,
                std::vector<float>& features, int32_t number_bytes = 8) {
    return phimap_engine_transform_dense(engine_, values.data(), number_bytes, rows, columns,
                                         features.data(), error_.data(), error_.size());
  }
  int32_t Sparse(const std::vector<int64_t>& offsets, const std::vector<int32_t>& indices,
                 const std::vector<double>& values, std::vector<float>& features) {
    return phimap_engine_transform_sparse(engine_, offsets.data(), indices.data(), values.data(),
                                          static_cast<int64_t>(values.size()), 8,
                                          static_cast<int64_t>(offsets.size()) - 1, columns(),
                                          features.data(), error_.data(), error_.size());
  }

  int32_t code() const { return code_; }
  const phimap_engine* engine() const { return engine_; }
  int64_t columns() const { return phimap_engine_input_columns(engine_); }
  int64_t outputs() const { return phimap_engine_output_columns(engine_); }
  std::string error() const { return error_.data(); }

 private:
  phimap_engine* engine_ = nullptr;
  std::array<char, 256> error_ = {};
  int32_t code_ = 0;
};

std::string SomeArtifact() {
  return *EncodeArtifact({.plan = MakePlan({}), .provenance = {}, .certificate = ""});
}

TEST(EngineBindingTest, FeaturesFillWhatWasGivenAndNothingBeyond) {
  Bound bound(SomeArtifact());
  ASSERT_EQ(bound.code(), kOk) << bound.error();
  ASSERT_EQ(phimap_engine_feature_bytes(bound.engine()), 4);
  const float untouched = -12345.0f;
  std::vector<float> features(3 * bound.outputs() + 8, untouched);
  ASSERT_EQ(
      bound.Dense(std::vector<double>(3 * bound.columns(), 0.25), 3, bound.columns(), features),
      kOk)
      << bound.error();
  const std::vector<float> beyond(features.end() - 8, features.end());
  EXPECT_THAT(beyond, Each(untouched));
  features.resize(3 * bound.outputs());
  EXPECT_THAT(features, Each(::testing::Ne(untouched)));
}

TEST(EngineBindingTest, SparseRowsGiveTheBitsOfDenseOnes) {
  Bound bound(SomeArtifact());
  ASSERT_EQ(bound.code(), kOk) << bound.error();
  ASSERT_GE(bound.columns(), 2);
  std::vector<double> dense(2 * bound.columns());
  dense[1] = 0.5;
  dense[bound.columns()] = -2;
  std::vector<float> expected(2 * bound.outputs());
  std::vector<float> features(2 * bound.outputs(), 7);
  ASSERT_EQ(bound.Dense(dense, 2, bound.columns(), expected), kOk) << bound.error();
  ASSERT_EQ(bound.Sparse({0, 1, 2}, {1, 0}, {0.5, -2}, features), kOk) << bound.error();
  EXPECT_EQ(std::memcmp(features.data(), expected.data(), features.size() * sizeof(float)), 0);
}

// Sparse rows whose offsets or column indices point outside of the arrays. AddressSanitizer would
// detect a read beyond the vectors.
TEST(EngineBindingTest, RowsThatLeadOutOfTheirArraysAreRefused) {
  Bound bound(SomeArtifact());
  ASSERT_EQ(bound.code(), kOk) << bound.error();
  const auto columns = static_cast<int32_t>(bound.columns());
  struct Case {
    const char* claim;
    std::vector<int64_t> offsets;
    std::vector<int32_t> indices;
  };
  const Case kCases[] = {
      {"the last offset is beyond the entries", {0, 1, 3}, {0, 1}},
      {"the last offset is before the end of the entries", {0, 1, 1}, {0, 1}},
      {"the first offset is after the first entry", {1, 1, 2}, {0, 1}},
      {"the first offset is before the first entry", {-1, 1, 2}, {0, 1}},
      {"a middle offset is beyond the entries", {0, 1'000'000, 2}, {0, 1}},
      {"the offsets decrease", {0, 2, 1, 2}, {0, 1}},
      {"a middle offset is below 0", {0, -5, 2}, {0, 1}},
      {"a column index is beyond the last column", {0, 1, 2}, {0, columns}},
      {"a column index is before the first column", {0, 1, 2}, {-1, 0}},
      {"a row has the same column twice", {0, 2, 2}, {1, 1}},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.claim);
    std::vector<float> features(3 * bound.outputs());
    EXPECT_EQ(bound.Sparse(c.offsets, c.indices, {1, 1}, features), kInvalid) << bound.error();
    EXPECT_NE(bound.error(), "");
  }
}

TEST(EngineBindingTest, DenseRowsOfAnotherShapeAreRefused) {
  Bound bound(SomeArtifact());
  ASSERT_EQ(bound.code(), kOk) << bound.error();
  const std::vector<double> values(2 * bound.columns() + 2);
  std::vector<float> features(2 * bound.outputs());
  EXPECT_EQ(bound.Dense(values, 2, bound.columns() + 1, features), kInvalid);
  EXPECT_THAT(bound.error(), HasSubstr(std::to_string(bound.columns())));
  EXPECT_EQ(bound.Dense(values, -1, bound.columns(), features), kInvalid);
  EXPECT_EQ(bound.Dense(values, 2, 0, features), kInvalid);
  EXPECT_EQ(bound.Dense(values, 2, bound.columns(), features, 2), kInvalid);
  EXPECT_EQ(bound.Dense(values, 0, bound.columns(), features), kOk);
}

TEST(EngineBindingTest, AValueThatIsNotFiniteIsNamed) {
  Bound bound(SomeArtifact());
  ASSERT_EQ(bound.code(), kOk) << bound.error();
  std::vector<double> values(2 * bound.columns());
  values.back() = std::numeric_limits<double>::infinity();
  std::vector<float> features(2 * bound.outputs());
  EXPECT_EQ(bound.Dense(values, 2, bound.columns(), features), kInvalid);
  EXPECT_THAT(bound.error(), HasSubstr("rows[1].columns["));
}

TEST(EngineBindingTest, DamagedArtifactsAreErrors) {
  const std::string artifact = SomeArtifact();
  for (const size_t size : {size_t{0}, size_t{1}, artifact.size() / 2, artifact.size() - 1}) {
    EXPECT_EQ(Bound(artifact.substr(0, size)).code(), kDataLoss) << size;
  }
}

TEST(EngineBindingTest, AnErrorIsCutToWhatItsCallerHas) {
  std::array<char, 8> error;
  error.fill('x');
  phimap_engine* engine = nullptr;
  EXPECT_EQ(phimap_engine_load("", 0, &engine, error.data(), 5), kDataLoss);
  EXPECT_EQ(std::strlen(error.data()), 4);
  EXPECT_EQ(error[5], 'x');
  EXPECT_EQ(phimap_engine_load("", 0, &engine, error.data() + 5, 0), kDataLoss);
  EXPECT_EQ(error[5], 'x');
  EXPECT_EQ(engine, nullptr);
}

}  // namespace
}  // namespace phimap::testing
