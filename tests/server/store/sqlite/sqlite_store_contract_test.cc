#include "tests/contract/store_contract.h"
#include "tests/server/store/sqlite/store_fixture.h"

namespace phimap::testing {
namespace {

class SqliteHarness : public StoreHarness {
 public:
  SqliteHarness() : store_(MustOpen(directory_.path(), &clock_)) {}
  Store& store() override { return *store_; }
  void Restart() override {
    store_.reset();
    store_ = MustOpen(directory_.path(), &clock_);
  }
  absl::Time Now() override { return clock_.now; }
  void AdvanceClock(absl::Duration duration) override { clock_.now += duration; }

 private:
  TemporaryDirectory directory_;
  ManualClock clock_;
  std::unique_ptr<SqliteStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreContractTest,
                         ::testing::Values(StoreHarnessFactory{
                             "Sqlite", [] { return std::make_unique<SqliteHarness>(); }}),
                         StoreHarnessName);

}  // namespace
}  // namespace phimap::testing
