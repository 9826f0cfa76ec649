// Compares the residual of every leaf kernel with an oracle in numbers of 113 digits, at three
// length scales and in both serving types. The oracle knows only the kernel's formula and the rows
// of the plan's landmarks.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_program.h"
#include "core/kernel/leaf_kernel.h"
#include "core/plan/artifact.h"
#include "core/random/stream_ids.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/core/mapping/csv_rows.h"
#include "tests/core/mapping/residual_oracle.h"
#include "tests/core/mapping/wide_kernels.h"
#include "tests/support/matchers.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr int64_t kColumns = 4;
constexpr int64_t kLandmarks = 30;
// Queries: rows like those of the stream, rows very near to a landmark, and landmarks themselves.
constexpr int64_t kQueriesOfAKind = 12;

// Kernels that are not positive semidefinite: F2 has no span to project to, and builds refuse them.
const std::set<absl::string_view> kIndefinite = {"sigmoid"};

TEST(ResidualKernelsTest, EveryLeafKernelIsTested) {
  for (const LeafKernel* leaf : LeafKernels()) {
    const auto is_leaf = [&](const auto& kernel) { return kernel.leaf == leaf->name; };
    EXPECT_TRUE(std::any_of(RowKernels().begin(), RowKernels().end(), is_leaf) ||
                std::any_of(TextKernels().begin(), TextKernels().end(), is_leaf) ||
                kIndefinite.count(leaf->name) > 0)
        << leaf->name << ": add its formula to wide_kernels.cc";
  }
  for (const RowKernel& kernel : RowKernels()) {
    EXPECT_TRUE(absl::StrContains(kernel.text, absl::StrCat(kernel.leaf, "("))) << kernel.text;
  }
}

// All numbers are numbers of float32, so that rows are served as they are if there is no shift.
Matrix<double> RowsOfKind(RowKind kind, double scale, int64_t count, uint64_t seed) {
  Matrix<double> rows = NormalRows({.rows = count, .cols = kColumns, .seed = seed});
  for (int64_t k = 0; k < rows.size(); ++k) {
    double& number = rows.data()[k];
    if (kind == RowKind::kPositive) number = std::abs(number);
    if (kind == RowKind::kCategories) number = number < 0 ? 1 : 2;
    number = static_cast<float>(scale * number);
  }
  return rows;
}

// Returns new rows, rows near to the first rows of the stream, which are landmarks, by 1e-3 and
// 1e-6 of their length, and these rows themselves.
Matrix<double> QueriesOf(RowKind kind, double scale, const Matrix<double>& stream) {
  Matrix<double> queries(3 * kQueriesOfAKind, kColumns);
  const Matrix<double> other = RowsOfKind(kind, scale, kQueriesOfAKind, 2);
  for (int64_t i = 0; i < kQueriesOfAKind; ++i) {
    const double step = kind == RowKind::kCategories ? 0 : i % 2 == 0 ? 1e-3 : 1e-6;
    for (int64_t j = 0; j < kColumns; ++j) {
      queries(i, j) = other(i, j);
      queries(kQueriesOfAKind + i, j) = static_cast<float>(stream(i, j) + step * other(i, j));
      if (kind == RowKind::kPositive) {
        queries(kQueriesOfAKind + i, j) = std::abs(queries(kQueriesOfAKind + i, j));
      }
      queries(2 * kQueriesOfAKind + i, j) = stream(i, j);
    }
  }
  return queries;
}

std::string MappingOf(const char* type) {
  return absl::StrCat("f2(landmarks=", kLandmarks, ", policy=given, serving_type=", type, ")");
}

constexpr const char* kTypes[] = {"float32", "float64"};
constexpr std::array<double, 3> kScales = {0.1, 1, 10};

void Print(const std::string& what, const Found& found) {
  std::printf("%-60s row at %.4f, pair at %.4f of its bound; allowance %.1e; bare failures %ld\n",
              what.c_str(), found.row, found.pair, found.allowance, static_cast<long>(found.bare));
}

Found FoundOf(const RowKernel& kernel, double scale, const char* type) {
  const Matrix<double> stream = RowsOfKind(kernel.rows, scale, 300, 1);
  const Matrix<double> queries = QueriesOf(kernel.rows, scale, stream);
  const BuiltVersion built = MustBuild(SpecOf(MappingOf(type), kernel.text), stream);
  const Artifact artifact = DecodeArtifact(built.bytes).value();
  Compared compared;
  Serve(artifact, WireRows(queries), compared);
  std::vector<WideRow> landmarks = WideLandmarks(artifact.plan);
  // A folded kernel has as many independent landmarks as features, and these span all rows.
  if (landmarks.empty()) {
    landmarks = WideRowsOf(stream);
    landmarks.resize(kColumns);
  }
  // The landmarks of a plan are rows after its input stage. Pairs are compared with K of the rows
  // as they were sent.
  compared.gram = ValuesOf(kernel.formula, landmarks, landmarks);
  compared.cross =
      ValuesOf(kernel.formula, WideRowsOf(AsServed(artifact.plan, queries)), landmarks);
  compared.among = ValuesOf(kernel.formula, WideRowsOf(queries), WideRowsOf(queries));
  return Compare(std::move(compared));
}

TEST(ResidualKernelsTest, RowsHaveTheResidualOfTheOracleUpToTheAllowance) {
  double row = 0;
  double pair = 0;
  int64_t bare = 0;
  for (const RowKernel& kernel : RowKernels()) {
    for (size_t s = 0; s < kScales.size(); ++s) {
      for (const char* type : kTypes) {
        const std::string what = absl::StrCat(kernel.text, " ", kScales[s], " ", type);
        SCOPED_TRACE(what);
        const Found found = FoundOf(kernel, kScales[s], type);
        Print(what, found);
        const double share = std::string(type) == "float32" ? 1 : 0x1p-20;
        EXPECT_LE(found.allowance, kernel.largest_share[s] * share);
        row = std::max(row, found.row);
        pair = std::max(pair, found.pair);
        bare += found.bare;
      }
    }
  }
  // Without allowances the bound of pairs fails. An allowance covers the worst pair of errors of a
  // row, so the error of one row stays far below it: a twentieth of it would be too small.
  // residual_test shows that a third of η would be.
  EXPECT_GT(row, 1.0 / 20);
  EXPECT_GT(pair, 0.9);
  EXPECT_GT(bare, 0);
}

// Returns the comparison of rows as they were served. The plan must have landmarks.
Compared ComparedAsServed(const RowKernel& kernel, const Artifact& artifact,
                          const Matrix<double>& queries) {
  Compared compared;
  Serve(artifact, WireRows(queries), compared);
  const std::vector<WideRow> landmarks = WideLandmarks(artifact.plan);
  const std::vector<WideRow> served = WideRowsOf(AsServed(artifact.plan, queries));
  compared.gram = ValuesOf(kernel.formula, landmarks, landmarks);
  compared.cross = ValuesOf(kernel.formula, served, landmarks);
  compared.among = ValuesOf(kernel.formula, served, served);
  return compared;
}

const RowKernel kMaternOfLetter = {"matern", "matern(nu=0.5, length_scale=4)",
                                   [](const WideRow& x, const WideRow& y) {
                                     Wide square = 0;
                                     for (size_t k = 0; k < x.size(); ++k)
                                       square += (x[k] - y[k]) * (x[k] - y[k]);
                                     return WideExp(-WideSqrt(square) / 4);
                                   }};

// K(x, x) is 1, and 400 landmarks leave .39 of the median row. From ‖x‖² + ‖a‖² − 2xᵀa the
// allowance would be 8.3.
TEST(ResidualKernelsTest, MaternOneHalfOnLetterLeavesAThirdAndItsAllowanceIsSmall) {
  const Matrix<double> rows = CsvRows("letter.csv");
  const BuiltVersion built =
      MustBuild(SpecOf("f2(landmarks=400)", kMaternOfLetter.text, /*standardize=*/true), rows);
  EXPECT_EQ(built.serving_type, FloatType::kFloat32);
  const Artifact artifact = DecodeArtifact(built.bytes).value();
  Matrix<double> queries(100, rows.cols());
  for (int64_t i = 0; i < 100; ++i) std::copy_n(rows.row(200 * i), rows.cols(), queries.row(i));
  Compared compared = ComparedAsServed(kMaternOfLetter, artifact, queries);
  EXPECT_NEAR(MedianOf(compared.residuals), 0.385, 0.03);
  ASSERT_TRUE(built.certificate.residual_share.has_value());
  EXPECT_NEAR(MedianOf(compared.residuals), built.certificate.residual_share->median, 0.03);
  const Found found = Compare(std::move(compared));
  Print("letter", found);
  EXPECT_LE(found.allowance, 1e-3);
}

// Gives the features of a plan the program that earlier builds wrote.
template <typename T>
void Expand(ServingStages<T>& stages) {
  auto& features = std::get<ProductFeatures<T>>(stages.features);
  const KernelProgram expanded = WithExpandedDistances(features.program);
  EXPECT_FALSE(expanded == features.program);
  features.program = expanded;
}

TEST(ResidualKernelsTest, PlansWithTheProgramOfEarlierBuildsKeepTheirResidual) {
  const double scale = 1;
  const Matrix<double> stream = RowsOfKind(RowKind::kNormal, scale, 300, 1);
  for (const char* type : kTypes) {
    SCOPED_TRACE(type);
    const BuiltVersion built = MustBuild(SpecOf(MappingOf(type), kMaternOfLetter.text), stream);
    absl::StatusOr<Artifact> artifact = DecodeArtifact(built.bytes);
    ASSERT_TRUE(artifact.ok());
    std::visit([](auto& stages) { Expand(stages); }, artifact->plan.stages);
    artifact = DecodeArtifact(*EncodeArtifact(*artifact));
    ASSERT_TRUE(artifact.ok()) << artifact.status();
    const Found found = Compare(
        ComparedAsServed(kMaternOfLetter, *artifact, QueriesOf(RowKind::kNormal, scale, stream)));
    Print(type, found);
    // Rounding near r = 0 makes these features err by the root of what others err by.
    EXPECT_GT(found.allowance, 1e-3);
  }
}

// Strings of `length` letters out of four, so that many n-grams are shared.
struct RandomTexts {
  RandomTexts(int64_t count, size_t length, uint64_t seed) {
    const RandomStream random(seed, StreamId::kSelfCheck);
    uint64_t draw = 0;
    for (int64_t i = 0; i < count; ++i) {
      std::string& text = values.emplace_back();
      while (text.size() < length) {
        text += static_cast<char>('a' + random.UniformBelow(draw++, 4));
      }
    }
  }
  StringsView view() {
    places.clear();
    int64_t bytes = 0;
    for (const std::string& value : values) {
      places.push_back(&value);
      bytes += static_cast<int64_t>(value.size());
    }
    return {ExampleKind::kText, places.data(), static_cast<int64_t>(values.size()), bytes};
  }
  std::vector<std::string> values;
  std::vector<const std::string*> places;
};

template <typename T>
std::vector<std::string> TextLandmarks(const ServingStages<T>& stages) {
  return std::get<StringFeatures>(stages.features).strings;
}

Found FoundOfTexts(const TextKernel& kernel, size_t length, const char* type) {
  RandomTexts stream(300, length, 1);
  RandomTexts queries(2 * kQueriesOfAKind, length, 2);
  std::copy_n(stream.values.begin(), kQueriesOfAKind, queries.values.begin() + kQueriesOfAKind);
  const BuiltVersion built = Build(SpecOf(MappingOf(type), kernel.text), stream.view()).value();
  const Artifact artifact = DecodeArtifact(built.bytes).value();
  Compared compared;
  Serve(artifact, queries.view(), compared);
  const std::vector<std::string> landmarks =
      std::visit([](const auto& stages) { return TextLandmarks(stages); }, artifact.plan.stages);
  compared.gram = ValuesOf(kernel.formula, landmarks, landmarks);
  compared.cross = ValuesOf(kernel.formula, queries.values, landmarks);
  compared.among = ValuesOf(kernel.formula, queries.values, queries.values);
  return Compare(std::move(compared));
}

TEST(ResidualKernelsTest, TextsHaveTheResidualOfTheOracleUpToTheAllowance) {
  double pair = 0;
  for (const TextKernel& kernel : TextKernels()) {
    for (const size_t length : {8, 32, 128}) {
      for (const char* type : kTypes) {
        const std::string what = absl::StrCat(kernel.text, " of ", length, " letters, ", type);
        SCOPED_TRACE(what);
        const Found found = FoundOfTexts(kernel, length, type);
        Print(what, found);
        EXPECT_LE(found.allowance, std::string(type) == "float32" ? 0.01 : 1e-8);
        pair = std::max(pair, found.pair);
      }
    }
  }
  EXPECT_GT(pair, 0.9);
}

TEST(ResidualKernelsTest, IndefiniteKernelsAreRefused) {
  for (const double scale : kScales) {
    const Matrix<double> stream = RowsOfKind(RowKind::kNormal, scale, 300, 1);
    const absl::StatusOr<BuiltVersion> built =
        Build(SpecOf(MappingOf("float64"), "sigmoid(gamma=1, coef0=0)"), stream);
    ASSERT_FALSE(built.ok()) << scale;
    EXPECT_EQ(ReasonOf(built.status()), "KERNEL_NOT_POSITIVE_SEMIDEFINITE");
  }
}

}  // namespace
}  // namespace phimap::testing
