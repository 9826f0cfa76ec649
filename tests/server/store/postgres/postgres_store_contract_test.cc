// Tests a complete store on PostgreSQL.
#include "absl/strings/str_cat.h"
#include "server/store/postgres/postgres_blobs.h"
#include "server/store/store.h"
#include "tests/contract/store_contract.h"
#include "tests/server/support/postgres_server.h"

namespace phimap::testing {
namespace {

class PostgresHarness : public StoreHarness {
 public:
  PostgresHarness() { Restart(); }
  Store& store() override { return *store_; }
  void Restart() override {
    store_.reset();
    std::unique_ptr<PostgresDatabase> opened = PostgresDatabase::Open(server_.Uri(name_)).value();
    const std::shared_ptr<PostgresDatabase> database = std::move(opened);
    const auto blobs = std::make_shared<PostgresBlobs>(database);
    const auto clock = std::make_shared<StoreClock>([this] { return now_; });
    store_ = std::make_unique<Store>(database, blobs, clock);
    AdvanceClock(absl::ZeroDuration());
  }
  absl::Time Now() override { return now_; }
  void AdvanceClock(absl::Duration duration) override {
    now_ += duration;
    server_.Run(absl::StrCat("CREATE OR REPLACE VIEW phimap.clock AS SELECT ",
                             absl::ToUnixMicros(now_), "::BIGINT AS now_us"),
                name_);
  }

 private:
  PostgresServer& server_ = PostgresServer::Shared();
  const std::string name_ = server_.CreateDatabase();
  absl::Time now_ = absl::FromUnixSeconds(1'704'067'200);
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(Postgres, StoreContractTest,
                         ::testing::Values(StoreHarnessFactory{
                             "Postgres", [] { return std::make_unique<PostgresHarness>(); }}),
                         StoreHarnessName);

}  // namespace
}  // namespace phimap::testing
