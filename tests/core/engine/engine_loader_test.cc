#include <memory>
#include <utility>

#include "core/engine/engine.h"
#include "core/status/error.h"
#include "gtest/gtest.h"
#include "tests/support/matchers.h"
#include "tests/support/plans.h"

namespace phimap::testing {
namespace {

using phimap::testing::MakePlan;

// An engine that computes nothing; its memory_bytes() tells which backend made it.
class NamedEngine : public Engine {
 public:
  explicit NamedEngine(int64_t bytes) : Engine(EngineShape{}), bytes_(bytes) {}
  int64_t memory_bytes() const override { return bytes_; }
  int64_t multiplications_per_row() const override { return 0; }
  void Transform(absl::Span<TransformPart>, EngineScratch&) const override {}

 private:
  const int64_t bytes_;
};

// A backend for one arithmetic, whose engines report `bytes` as their memory.
class OneArithmetic : public EngineBackend {
 public:
  OneArithmetic(uint32_t arithmetic, int64_t bytes) : arithmetic_(arithmetic), bytes_(bytes) {}
  absl::string_view name() const override { return "one"; }
  bool RunsArithmetic(uint32_t arithmetic) const override { return arithmetic == arithmetic_; }
  absl::StatusOr<std::unique_ptr<const Engine>> Load(const Plan&) const override {
    return std::make_unique<const NamedEngine>(bytes_);
  }

 private:
  const uint32_t arithmetic_;
  const int64_t bytes_;
};

TEST(EngineLoaderTest, TheFirstBackendThatRunsTheArithmeticLoads) {
  const OneArithmetic other(kArithmetic + 1, 1);
  const OneArithmetic first(kArithmetic, 2);
  const OneArithmetic second(kArithmetic, 3);
  const EngineLoader loader({&other, &first, &second});
  const auto engine = loader.Load(MakePlan({.columns = 3})).value();
  EXPECT_EQ(engine->memory_bytes(), 2);
}

TEST(EngineLoaderTest, AnArithmeticThatNoBackendRunsIsRefused) {
  const OneArithmetic other(kArithmetic + 1, 1);
  EXPECT_THAT(EngineLoader({&other}).Load(MakePlan({.columns = 3})).status(),
              IsError(StatusCode::kUnimplemented, "ARITHMETIC_UNKNOWN"));
}

TEST(EngineLoaderTest, ABackendSeesOnlyValidPlans) {
  const OneArithmetic backend(kArithmetic, 1);
  Plan plan = MakePlan({.columns = 3});
  plan.input.columns = 4;
  EXPECT_EQ(EngineLoader({&backend}).Load(plan).status().code(), StatusCode::kInvalidArgument);
}

TEST(EngineScratchTest, EachTypeOfMemoryIsOneObjectThatStays) {
  struct Counter {
    int value = 0;
  };
  struct Other {
    int value = 7;
  };
  EngineScratch scratch;
  scratch.Of<Counter>().value = 3;
  EXPECT_EQ(scratch.Of<Other>().value, 7);
  EXPECT_EQ(scratch.Of<Counter>().value, 3);
  EXPECT_EQ(&scratch.Of<Counter>(), &scratch.Of<Counter>());
}

}  // namespace
}  // namespace phimap::testing
