// Tests that a program allocates only to grow its scratch.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "core/engine/engine.h"
#include "core/head/head_program.h"
#include "gtest/gtest.h"
#include "tests/core/head/head_plans.h"
#include "tests/support/heads.h"

namespace {
std::atomic<int64_t> g_allocations{0};

void* Allocate(size_t size, size_t alignment) {
  ++g_allocations;
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(std::max<size_t>(size, 1))
                : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}
}  // namespace

// These functions are not inlined. Otherwise gcc would see the free but not the malloc, and warn.
#define NOT_INLINED [[gnu::noinline]]
NOT_INLINED void* operator new(size_t size) { return Allocate(size, 1); }
NOT_INLINED void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
NOT_INLINED void operator delete(void* p) noexcept { std::free(p); }
NOT_INLINED void operator delete(void* p, size_t) noexcept { std::free(p); }
NOT_INLINED void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
NOT_INLINED void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
#undef NOT_INLINED

namespace phimap::testing {
namespace {

TEST(HeadAllocationTest, ASecondCallOfNoMoreRowsAllocatesNothing) {
  for (const FloatType type : {FloatType::kFloat32, FloatType::kFloat64}) {
    for (const NamedPlan& plan : PlansOfEveryKind(type)) {
      const std::shared_ptr<const Engine> engine = *Engine::Load(plan.make());
      const Head head = MakeHead({.features = engine->output_columns(), .classes = 5});
      const ExampleRows rows(*engine, 100);
      for (const bool folds : {true, false}) {
        const HeadProgram program = folds ? MustFold(plan, head) : MustNotFold(plan, head);
        Matrix<double> scores(100, program.scores());
        std::vector<ScorePart> parts(2);
        parts[0].rows = rows.view().Slice(0, 3);
        parts[0].scores = scores.data();
        parts[1].rows = rows.view().Slice(3, 97);
        parts[1].scores = scores.row(3);
        EngineScratch scratch;
        program.Scores(absl::MakeSpan(parts), scratch);
        const int64_t before = g_allocations;
        program.Scores(absl::MakeSpan(parts), scratch);
        EXPECT_EQ(g_allocations - before, 0) << plan.name << (folds ? " folded" : " unfolded");
      }
    }
  }
}

}  // namespace
}  // namespace phimap::testing
