// Compares the bits of features with reference values that are written down in this file.
//
// The other tests of bits compare one way of computing with another on one machine. This test
// compares with constants. So it detects differences between machines, and between today's build
// and later ones.
//
// How the constants were made: a case that fails prints its actual values in the form of the table.
// The constants were printed in this way with gcc 12.2 and Highway 1.0.3 on a machine with AVX-512,
// where AVX-512 and AVX2 agreed. engine_test checks that such plans are computed correctly.
//
// The constants may change only together with kArithmetic, and features of the old arithmetic must
// still be served then. `inputs` is a hash of the plans and rows. If it differs, the plans or rows
// of this test have changed (tests/support/plans.cc, random_rows.cc), not the engine.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/engine/engine.h"
#include "core/plan/plan_codec.h"
#include "gtest/gtest.h"
#include "tests/support/naive_linalg.h"
#include "tests/support/plans.h"
#include "tests/support/random_rows.h"
#include "tests/support/vector_targets.h"

namespace phimap::testing {
namespace {

static_assert(kArithmetic == 1, "the constants below are those of arithmetic 1");

// One full tile, and a second tile that is cut into blocks of several heights on every target.
constexpr int64_t kRows = 48 + 23;

struct Golden {
  uint64_t inputs = 0;
  uint64_t features = 0;
  double first = 0;  // feature 0 of row 0
  double last = 0;   // the last feature of the last row
};

struct GoldenCase {
  const char* name;
  PlanShape shape;
  // Operations on the products that replace the kernel. If empty, the kernel is used.
  std::vector<KernelOp> ops = {};
  Golden float32 = {};
  Golden float64 = {};
};

const std::vector<GoldenCase>& Cases() {
  static const auto& cases = *new std::vector<GoldenCase>{
      {.name = "F1 of an rbf kernel, standardized",
       .shape = {.columns = 16,
                 .shift = true,
                 .scale = true,
                 .feature_count = 70,
                 .kernel = "rbf(gamma=0.3)"},
       .float32 = {0xce6a72c723c6e9e6, 0x2910f85cd0159807, 0x1.1219f2p-4, 0x1.39c9aap-6},
       .float64 = {0x1603859c423ca408, 0x50758f137777e395, 0x1.1219f97e279f4p-4,
                   0x1.39c9b076e8be2p-6}},
      {.name = "F2 of an rbf kernel",
       .shape = {.columns = 16,
                 .feature_count = 67,
                 .kernel = "rbf(gamma=0.05)",
                 .w = WKind::kTriangular},
       .float32 = {0x4833462a338394c4, 0x0bede56db23dc5e3, -0x1.2fc3a2p-7, 0x1.e265dep-9},
       .float64 = {0x61bee4c50b7b823b, 0x34f80bfb905a91ed, -0x1.2fc3a1f955b4p-7,
                   0x1.e265ff5feb835p-9}},
      {.name = "F2 of a polynomial kernel, over several chains",
       .shape = {.columns = 21,
                 .feature_count = 530,
                 .kernel = "poly(degree=3, gamma=0.5, coef0=1)",
                 .w = WKind::kTriangular},
       .float32 = {0x5aba3cc25bdc0f83, 0xa64bfe862a665086, -0x1.4fba44p-5, -0x1.0460fcp-4},
       .float64 = {0x314ecd528bd4b1da, 0xf20ca4fa0658c897, -0x1.4fba4149cd575p-5,
                   -0x1.0460f2b3cb0ccp-4}},
      {.name = "F3 of a sum of kernels, centred",
       .shape = {.columns = 17,
                 .feature_count = 66,
                 .kernel = "rbf(gamma=0.3) + 0.1*poly(degree=2, coef0=1)",
                 .centre = true,
                 .w = WKind::kDense,
                 .outputs = 21},
       .float32 = {0x6547fd6e48703b31, 0xe727a66282bb34b9, -0x1.c5c14cp-7, -0x1.256a86p-4},
       .float64 = {0xfbdf6f556fc278d4, 0x0aa5c1518fe82693, -0x1.c5c14f46f818p-7,
                   -0x1.256a83e990349p-4}},
      {.name = "linear features of deep rows",
       .shape = {.columns = 1100, .feature_count = 35, .kernel = "linear()"},
       .float32 = {0x5b23b3b013160c32, 0x39fde78d36834835, 0x1.63e6d2p+4, 0x1.b9ee74p+0},
       .float64 = {0x232c4177a0d4f0ef, 0x7f72c79798d7c73d, 0x1.63e6d10b131bp+4,
                   0x1.b9ee6fdd70dcap+0}},
      {.name = "a sparse projection of projected inputs",
       .shape = {.columns = 12,
                 .projected = 7,
                 .feature_count = 40,
                 .kernel = "linear()",
                 .w = WKind::kSparse,
                 .outputs = 9},
       .float32 = {0x8b795248dc632a2a, 0xb00a3228947c148e, -0x1.59d702p-8, -0x1.e0d184p-7},
       .float64 = {0x408314d514cb906a, 0x3304bb9cf3dc8a24, -0x1.59d6fd8d84b5dp-8,
                   -0x1.e0d1845065948p-7}},
      {.name = "a kernel of L1 distances",
       .shape = {.columns = 12,
                 .features = FeatureKind::kL1,
                 .feature_count = 40,
                 .kernel = "poly(degree=2)"},
       .float32 = {0x9524497546179828, 0x06c3504d096046d4, 0x1.157e74p+5, 0x1.81fc58p+5},
       .float64 = {0x2fd2968c11253739, 0x58be5eb9853bb367, 0x1.157e761752e98p+5,
                   0x1.81fc5626b36cp+5}},
      {.name = "cosines of products, scaled",
       .shape = {.columns = 16, .feature_count = 70},
       .ops = {{.code = KernelOpCode::kPushProduct},
               {.code = KernelOpCode::kAffine, .a = 9.5, .b = 0.7},
               {.code = KernelOpCode::kCos},
               {.code = KernelOpCode::kScale, .a = 0.17}},
       .float32 = {0x67b59b84a453c5e5, 0x7f21d0d3f1c7f4f7, 0x1.4ff312p-3, -0x1.23a85p-4},
       .float64 = {0x7bed417c81eab9e3, 0x693c475a9d4e2b5a, 0x1.4ff31154f029fp-3,
                   -0x1.23a80c7a39da3p-4}},
      {.name = "sines of products",
       .shape = {.columns = 16, .feature_count = 70},
       .ops = {{.code = KernelOpCode::kPushProduct},
               {.code = KernelOpCode::kScale, .a = 400},
               {.code = KernelOpCode::kSin}},
       .float32 = {0xfd8a5f0fb0d363b8, 0xb65668be45b60de4, 0x1.5d50dp-2, -0x1.f617a2p-1},
       .float64 = {0xba8f486cb5f9915a, 0xac1bbd80cbdcfb1c, 0x1.5d53303877165p-2,
                   -0x1.f6168358fcc69p-1}},
  };
  return cases;
}

// The FNV-1a hash of bytes.
class Hash {
 public:
  void Add(const void* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      value_ = (value_ ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
    }
  }
  void Add(const std::string& bytes) { Add(bytes.data(), bytes.size()); }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

template <typename T>
Plan GoldenPlan(const GoldenCase& golden) {
  PlanShape shape = golden.shape;
  shape.serving_type = sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64;
  Plan plan = MakePlan(shape);
  if (!golden.ops.empty()) {
    auto& stages = std::get<ServingStages<T>>(plan.stages);
    std::get<ProductFeatures<T>>(stages.features).program = *KernelProgram::FromOps(golden.ops);
  }
  return plan;
}

std::string Text(const Golden& golden) {
  return absl::StrFormat("{0x%016x, 0x%016x, %a, %a}", golden.inputs, golden.features, golden.first,
                         golden.last);
}

template <typename T>
class EngineGoldenTest : public ::testing::Test {
 protected:
  static const Golden& Expected(const GoldenCase& golden) {
    return sizeof(T) == 4 ? golden.float32 : golden.float64;
  }
  static Golden Actual(const Plan& plan, const Matrix<float>& x, const Matrix<T>& y) {
    Hash inputs;
    inputs.Add(EncodeInputStage(plan.input));
    inputs.Add(EncodeFeatureStage(plan));
    inputs.Add(EncodeProjectionStage(plan));
    inputs.Add(x.data(), sizeof(float) * x.size());
    Hash features;
    features.Add(y.data(), sizeof(T) * y.size());
    return {inputs.value(), features.value(), y.data()[0], y.data()[y.size() - 1]};
  }
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(EngineGoldenTest, Types);

TYPED_TEST(EngineGoldenTest, EachTargetWithFusedMultiplyAddHasTheBitsThatAreWrittenDown) {
  using T = TypeParam;
  int targets = 0;
  for (const VectorTarget& target : SupportedVectorTargets()) {
    if (!target.fused) continue;
    ++targets;
    const ForcedVectorTarget forced(target);
    for (const GoldenCase& golden : Cases()) {
      const Plan plan = GoldenPlan<T>(golden);
      const Matrix<float> x =
          UniformFloatRows({.rows = kRows, .cols = golden.shape.columns, .seed = 31});
      const auto engine = *Engine::Load(plan);
      const Matrix<T> y = MustTransform<T>(*engine, WireRows(x));
      const Golden actual = this->Actual(plan, x, y);
      EXPECT_EQ(Text(actual), Text(this->Expected(golden))) << target.name << ": " << golden.name;
      for (int64_t i = 0; i < kRows; ++i) {
        const Matrix<T> alone = MustTransform<T>(*engine, WireRows(x).Slice(i, 1));
        EXPECT_TRUE(SameBits(alone.data(), y.row(i), alone.size()))
            << target.name << ": " << golden.name << ", row " << i << " alone";
      }
      // Features that are 0, infinite or NaN would prove little, so all of them must be normal
      // numbers.
      EXPECT_TRUE(std::all_of(y.data(), y.data() + y.size(), [](T feature) {
        return std::isnormal(feature);
      })) << golden.name;
    }
  }
  if (targets == 0) GTEST_SKIP() << "no target with fused multiply-add, so all bits differ";
}

}  // namespace
}  // namespace phimap::testing
