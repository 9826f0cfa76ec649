#include <vector>

#include "server/schedule/batch_policy.h"
#include "tests/server/schedule/scheduler_fixture.h"

namespace phimap::testing {
namespace {

TEST(ComputeSpeedTest, IsUnknownBeforeTheFirstPass) {
  const ComputeSpeed speed;
  EXPECT_EQ(speed.Of(std::make_shared<FakeEngine>()), 0);
}

TEST(ComputeSpeedTest, AnInterruptedPassDoesNotMakeAVersionSlow) {
  ComputeSpeed speed;
  const std::shared_ptr<const Engine> engine = std::make_shared<FakeEngine>();
  speed.Learn(engine, 1000, 1);
  EXPECT_DOUBLE_EQ(speed.Of(engine), 1000);
  speed.Learn(engine, 1100, 1);
  speed.Learn(engine, 1, 1);
  EXPECT_DOUBLE_EQ(speed.Of(engine), 1000);
}

TEST(ComputeSpeedTest, AVersionThatBecameSlowIsFoundOutWithinFivePasses) {
  ComputeSpeed speed;
  const std::shared_ptr<const Engine> engine = std::make_shared<FakeEngine>();
  for (int i = 0; i < 20; ++i) speed.Learn(engine, 1000, 1);
  for (int i = 0; i < 4; ++i) speed.Learn(engine, 10, 1);
  EXPECT_DOUBLE_EQ(speed.Of(engine), 1000);
  speed.Learn(engine, 10, 1);
  EXPECT_DOUBLE_EQ(speed.Of(engine), 10);
}

TEST(ComputeSpeedTest, VersionsHaveTheirOwn) {
  ComputeSpeed speed;
  const std::shared_ptr<const Engine> a = std::make_shared<FakeEngine>();
  const std::shared_ptr<const Engine> b = std::make_shared<FakeEngine>();
  speed.Learn(a, 1000, 1);
  EXPECT_EQ(speed.Of(b), 0);
  speed.Learn(b, 10, 1);
  EXPECT_DOUBLE_EQ(speed.Of(a), 1000);
  EXPECT_DOUBLE_EQ(speed.Of(b), 10);
}

TEST(ComputeSpeedTest, AVersionLoadedAtTheAddressOfAnotherStartsAnew) {
  // The engine at the same address gets another owner, as happens when an allocator reuses an
  // address.
  const FakeEngine engine;
  const auto no_delete = [](const Engine*) {};
  ComputeSpeed speed;
  {
    const std::shared_ptr<const Engine> first(&engine, no_delete);
    speed.Learn(first, 1000, 1);
  }
  const std::shared_ptr<const Engine> second(&engine, no_delete);
  EXPECT_EQ(speed.Of(second), 0);
  speed.Learn(second, 10, 1);
  EXPECT_DOUBLE_EQ(speed.Of(second), 10);
}

}  // namespace
}  // namespace phimap::testing
