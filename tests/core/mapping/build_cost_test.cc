#include "core/mapping/build/build_cost.h"

#include <cmath>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/landmark/count_rule.h"
#include "core/landmark/reservoir.h"
#include "core/linalg/blas.h"
#include "core/mapping/build/version_build.h"
#include "core/mapping/kernel_pca/kernel_pca.h"
#include "core/mapping/sample/stream_sample.h"
#include "core/plan/artifact.h"
#include "core/plan/plan.h"
#include "gtest/gtest.h"
#include "tests/core/mapping/builds.h"
#include "tests/core/mapping/counted_blas.h"
#include "tests/core/mapping/counted_memory.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

struct Case {
  std::string mapping;
  std::string kernel;
  int64_t rows;
  int64_t columns;
  bool standardize = false;

  friend void PrintTo(const Case& c, std::ostream* out) {
    *out << c.mapping << " of " << c.kernel << ", " << c.rows << " x " << c.columns;
  }
};

// The rows are independent normal numbers, so every Gram matrix has the full rank that its kernel
// allows.
const Case kCases[] = {
    {"f1(landmarks=300)", "rbf(gamma=scale)", 3000, 16},
    {"f1(landmarks=300)", "linear()", 3000, 16, true},
    {"f2(landmarks=20)", "rbf(gamma=scale)", 300, 4},
    {"f2(landmarks=300)", "rbf(gamma=scale)", 3000, 16, true},
    {"f2(landmarks=300)", "rbf(gamma=scale)", 30'000, 16},
    {"f2(landmarks=300, serving_type=float64)", "rbf(gamma=scale)", 3000, 16},
    {"f2(landmarks=300)", "rbf(gamma=median)", 3000, 16},
    {"f2(landmarks=300)", "linear()", 3000, 40, true},
    {"f2(landmarks=300)", "2*poly(degree=2, coef0=1)", 3000, 16},
    {"f2(landmarks=300)", "rbf(gamma=scale) + 0.1*poly(degree=2)*linear()", 3000, 100},
    {"f2(landmarks=100)", "rbf(gamma=scale)", 2000, 1000},
    {"f2(landmarks=300)", "rbf(gamma=scale)", 310, 16},  // only 10 rows held out: not measured
    {"f2(landmarks=300, pool_rows=300)", "rbf(gamma=scale)", 30'000, 16},
    {"f2(landmarks=300, policy=given)", "rbf(gamma=scale)", 3000, 16},
    {"f3(landmarks=300, dimensions=100)", "rbf(gamma=scale)", 3000, 16},
    {"f3(landmarks=300, dimensions=100, projection=sign)", "rbf(gamma=scale)", 3000, 16},
    {"f3(landmarks=300, dimensions=30)", "linear()", 3000, 40},
    {"random_projection(dimensions=300)", "linear()", 3000, 40, true},
    {"random_projection(dimensions=300)", "linear()", 100, 40},  // only 10 held out: not measured
    {"random_projection(dimensions=200, projection=sparse)", "2*linear()", 30'000, 100},
    {"random_projection(dimensions=200, projection=orthonormal)", "linear()", 3000, 300},
    {"kpca(landmarks=300, dimensions=20)", "rbf(gamma=scale)", 3000, 16},
    {"kpca(landmarks=300, dimensions=4)", "rbf(gamma=scale)", 3000, 16},
    {"kpca(landmarks=300, dimensions=20, centred=false)", "rbf(gamma=scale)", 3000, 16},
    {"fourier(dimensions=600)", "rbf(gamma=scale)", 3000, 40, true},
    {"fourier(dimensions=300, form=phase)", "2*rbf(gamma=median)", 3000, 40},
    {"fourier(dimensions=500, orthogonal=true)", "rbf(gamma=scale)", 3000, 200},
};

// Returns the cases above, and cases for each rule that finds the number of landmarks. Their goals
// are so low that the limit `most` is reached first.
std::vector<Case> Cases() {
  std::vector<Case> cases(std::begin(kCases), std::end(kCases));
  for (const CountRule* rule : CountRules()) {
    const std::string goal = absl::StrCat(rule->goal.name, "=", rule->goal.largest / 500);
    cases.push_back({absl::StrCat("f2(landmarks=", rule->name, "(", goal, ", most=300))"),
                     "rbf(gamma=scale)", 3000, 16});
    cases.push_back(
        {absl::StrCat("f2(landmarks=", rule->name, "(", goal, ", most=600), pool_rows=2000)"),
         "rbf(gamma=scale)", 9000, 16});
  }
  return cases;
}

class BuildCostTest : public ::testing::TestWithParam<Case> {
 protected:
  BuildCostTest() : spec_(SpecOf(GetParam().mapping, GetParam().kernel, GetParam().standardize)) {}

  BuildCost Cost() const { return CostOfBuild(spec_, GetParam().rows, GetParam().columns); }
  Matrix<double> Rows() const {
    return NormalRows({.rows = GetParam().rows, .cols = GetParam().columns});
  }

  // The reservation must cover the memory in use, and not be much larger.
  void ExpectMemoryFromAbove() const {
    const Matrix<double> rows = Rows();
    UseOneBlasThread();
    const int64_t before = HeldBytes();
    ResetPeakBytes();
    StreamSample sample(spec_, GetParam().columns);
    ASSERT_TRUE(sample.Add(WireRows(rows)).ok());
    RecordingMonitor monitor;
    const BuiltVersion version = BuildVersion(spec_, std::move(sample), monitor).value();
    const int64_t taken = PeakBytes() - before;
    const int64_t forecast = Cost().memory_bytes();
    // The forecast does not count lists of slots, scratch memory and the last block of the
    // reservoir.
    constexpr int64_t kSlack = 1 << 20;
    EXPECT_LE(taken, forecast + kSlack);
    EXPECT_LE(forecast, 2 * taken + kSlack);
  }

  const BuildSpec spec_;
};

TEST_P(BuildCostTest, ArtifactBytesAreForecastToOneInFifty) {
  const auto bytes = static_cast<double>(MustBuild(spec_, Rows()).bytes.size());
  // The texts of spec and theorem differ by a few hundred bytes.
  EXPECT_NEAR(static_cast<double>(Cost().artifact_bytes), bytes, 0.02 * bytes + 500);
}

// Returns how many numbers the matrices of a plan have. The engine multiplies with each of them
// once for each row.
int64_t NumbersOf(const Plan& plan) {
  return std::visit(
      [](const auto& stages) {
        using T = typename std::decay_t<decltype(stages)>::Element;
        int64_t numbers = std::get<ProductFeatures<T>>(stages.features).rows.size();
        if (const auto* triangle = std::get_if<TriangularProjection<T>>(&stages.projection)) {
          numbers += triangle->elements.size();
        } else if (const auto* dense = std::get_if<DenseProjection<T>>(&stages.projection)) {
          numbers += dense->matrix.size();
        }
        return numbers;
      },
      plan.stages);
}

// Returns the LAPACK operations for the eigenvalues of both matrices of the spectrum, which
// BlasFlops() does not count.
double EigenvalueFlops(const BuiltVersion& version) {
  if (!version.certificate.spectrum.has_value()) return 0;
  return 2 * (4.0 / 3) * std::pow(static_cast<double>(version.certificate.spectrum->rows), 3);
}

// Returns the LAPACK operations for the comparison of Gram matrices, which BlasFlops() does not
// count: two inverses of 2m³ operations for each λ and, in float32, two more.
double InverseFlops(const BuiltVersion& version) {
  const std::optional<Fidelity>& fidelity = version.certificate.fidelity;
  if (!fidelity.has_value()) return 0;
  const double pairs = version.serving_type == FloatType::kFloat32 ? 4 : 3;
  return 2 * pairs * 2 * std::pow(static_cast<double>(fidelity->rows), 3);
}

// Returns the operations for the drift reference that BlasFlops() does not count: the engine's
// products for the rows that scores are chosen from, and LAPACK's for the directions.
double ReferenceFlops(const BuiltVersion& version, const BuildSpec& spec) {
  const absl::StatusOr<Artifact> artifact = DecodeArtifact(version.bytes);
  if (!artifact.ok() || artifact->drift_reference.empty()) return 0;
  const int64_t landmarks = spec.mapping.has_landmarks() ? version.certificate.landmarks : 0;
  const int64_t pool = version.certificate.pool_rows - landmarks + spec.mapping.given_rows();
  const bool from_pool = pool >= 128;
  const auto chosen = static_cast<double>(
      std::min<int64_t>(256, from_pool ? pool : version.certificate.held_out_rows / 4));
  const double mapped = from_pool ? 2 * chosen * static_cast<double>(NumbersOf(artifact->plan)) : 0;
  return mapped + 9 * std::pow(std::min(chosen, 128.0), 3);
}

// BLAS operations are counted in each call. The operations of the engine's own products follow from
// the numbers in the plan that was built.
TEST_P(BuildCostTest, FlopsAreForecastToOneInAHundred) {
  const Matrix<double> rows = Rows();
  const double before = BlasFlops();
  const BuiltVersion version = MustBuild(spec_, rows);
  double flops = BlasFlops() - before;
  if (version.certificate.serving_error.has_value()) {
    const Artifact artifact = DecodeArtifact(version.bytes).value();
    // Both plans do a multiplication and an addition for each number.
    flops += 4.0 * static_cast<double>(version.certificate.held_out_rows) *
             static_cast<double>(NumbersOf(artifact.plan));
  }
  if (spec_.mapping.kind == FindFamily("kpca")) {
    const KernelPcaTask pca{.components = spec_.mapping.dimensions};
    const double m = static_cast<double>(spec_.mapping.landmarks);
    if (PcaByLapack(pca, spec_.mapping.landmarks)) flops += 9 * m * m * m;
    // How many products an iteration takes depends on the spectrum.
    EXPECT_LT(Cost().work.flops(), 8 * flops);
    EXPECT_GT(Cost().work.flops(), flops / 8);
    return;
  }
  flops += EigenvalueFlops(version) + InverseFlops(version) + ReferenceFlops(version, spec_);
  EXPECT_NEAR(Cost().work.flops(), flops, 0.01 * flops);
}

TEST_P(BuildCostTest, MemoryIsForecastFromAbove) { ExpectMemoryFromAbove(); }

INSTANTIATE_TEST_SUITE_P(Builds, BuildCostTest, ::testing::ValuesIn(Cases()));

// The number of rejected proposals depends on the rows, and the total work depends slightly on this
// number.
class ChoosingCostTest : public BuildCostTest {};

TEST_P(ChoosingCostTest, FlopsAreForecastToOneInFive) {
  const double before = BlasFlops();
  const BuiltVersion version = MustBuild(spec_, Rows());
  const double rank = static_cast<double>(version.certificate.rank.value_or(0));
  double flops = BlasFlops() - before + rank * rank * rank / 3 + EigenvalueFlops(version) +
                 InverseFlops(version);
  const Artifact artifact = DecodeArtifact(version.bytes).value();
  flops += 4.0 * static_cast<double>(version.certificate.held_out_rows) *
           static_cast<double>(NumbersOf(artifact.plan));
  flops += ReferenceFlops(version, spec_);
  EXPECT_NEAR(Cost().work.flops(), flops, 0.2 * flops);
}

TEST_P(ChoosingCostTest, MemoryIsForecastFromAbove) { ExpectMemoryFromAbove(); }

INSTANTIATE_TEST_SUITE_P(
    Builds, ChoosingCostTest,
    ::testing::Values(Case{"f2(landmarks=300, policy=rpcholesky)", "rbf(gamma=scale)", 3000, 16},
                      Case{"f2(landmarks=300, policy=rpcholesky)", "rbf(gamma=scale)", 30'000, 16},
                      Case{"f2(landmarks=500, policy=rpcholesky, pool_rows=4000)",
                           "rbf(gamma=scale)", 10'000, 64, true}));

TEST(BuildCostGrowthTest, AnEndlessStreamHasTheSampleOfALongOne) {
  const BuildSpec spec = SpecOf("f2(landmarks=100)", "rbf(gamma=scale)");
  const BuildCost longer = CostOfBuild(spec, 1'000'000, 16);
  const BuildCost endless = CostOfBuild(spec, Reservoir::kMaxStreamRows, 16);
  EXPECT_EQ(endless.memory_bytes(), longer.memory_bytes());
  EXPECT_EQ(endless.sample_bytes, StreamSample(spec, 16).memory_bound_bytes());
  EXPECT_EQ(endless.work.flops(), longer.work.flops());
  EXPECT_GT(endless.work.elements, longer.work.elements);
}

// Strings have no columns, so their kernel values need no products over columns. The memory of
// sampled strings is bounded.
TEST(BuildCostGrowthTest, KernelsOfStringsAskForNoProductsOverColumns) {
  const BuildSpec spec = SpecOf("f2(landmarks=100)", "spectrum(n=3) + jaccard(n=2)");
  const BuildCost endless = CostOfBuild(spec, Reservoir::kMaxStreamRows, 1);
  EXPECT_EQ(endless.sample_bytes, StreamSample(spec, 1, ExampleKind::kText).memory_bound_bytes());
  EXPECT_GE(endless.sample_bytes, kMaxSampledStringBytes);
  EXPECT_LE(endless.memory_bytes(), int64_t{1} << 31);
  const BuildSpec rows = SpecOf("f2(landmarks=100)", "laplacian(gamma=1)");
  const BuildCost of_text = CostOfBuild(spec, 5000, 1);
  const BuildCost of_rows = CostOfBuild(rows, 5000, 1);
  EXPECT_EQ(of_text.work.product_flops, of_rows.work.product_flops);
  EXPECT_GT(of_text.work.elements, 10 * of_rows.work.elements);
  EXPECT_GT(of_text.artifact_bytes, of_rows.artifact_bytes);
}

TEST(BuildCostGrowthTest, TheLargestBuildHasACost) {
  for (const auto& [mapping, kernel] : std::vector<std::pair<const char*, const char*>>{
           {"f1(landmarks=8192)", "rbf(gamma=median)"},
           {"f2(landmarks=8192, pool_rows=16777216)", "rbf(gamma=median)"},
           {"f3(landmarks=8192, dimensions=8192)", "rbf(gamma=median)"},
           {"random_projection(dimensions=65536, projection=orthonormal)", "linear()"},
           {"fourier(dimensions=65536, form=phase, orthogonal=true)", "rbf(gamma=median)"}}) {
    const BuildCost cost =
        CostOfBuild(SpecOf(mapping, kernel), Reservoir::kMaxStreamRows, kMaxColumns);
    EXPECT_GT(cost.memory_bytes(), int64_t{8192} * kMaxColumns * 8);
    EXPECT_GT(cost.artifact_bytes, int64_t{8192} * kMaxColumns * 4);
    EXPECT_GT(cost.work.flops(), 1e12);
  }
}

// If φ-space is small, F2 has at most as many features as φ-space has dimensions, however many
// landmarks there are.
TEST(BuildCostGrowthTest, ASmallFeatureSpaceBoundsTheCost) {
  const auto bytes = [](const char* mapping) {
    return CostOfBuild(SpecOf(mapping, "linear()"), 100'000, 16).artifact_bytes;
  };
  EXPECT_LT(bytes("f2(landmarks=8000)"), 2 * bytes("f2(landmarks=16)"));
}

}  // namespace
}  // namespace phimap::testing
