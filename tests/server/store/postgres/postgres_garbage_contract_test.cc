#include "absl/strings/str_cat.h"
#include "server/store/postgres/postgres_blobs.h"
#include "tests/contract/garbage_contract.h"
#include "tests/server/support/postgres_server.h"

namespace phimap::testing {
namespace {

class PostgresHarness : public GarbageHarness {
 public:
  PostgresHarness() {
    std::unique_ptr<PostgresDatabase> database = PostgresDatabase::Open(server_.Uri(name_)).value();
    database_ = std::move(database);
    blobs_ = std::make_shared<PostgresBlobs>(database_);
  }
  std::shared_ptr<SqlDatabase> database() override { return database_; }
  std::shared_ptr<Blobs> blobs() override { return blobs_; }
  void AgeBlob(const std::string& digest, absl::Duration age) override {
    server_.Run(absl::StrCat("UPDATE phimap.blobs SET write_time_us = (SELECT now_us FROM "
                             "phimap.clock) - ",
                             absl::ToInt64Microseconds(age), " WHERE digest = '", digest, "'"),
                name_);
  }
  void LeavePart(absl::Duration age) override {
    server_.Run(absl::StrCat("INSERT INTO phimap.blobs VALUES ('", part_,
                             "', 9, 4, 0, 0) ON CONFLICT DO NOTHING"),
                name_);
    AgeBlob(part_, age);
  }
  bool HasPart() override {
    return !server_
                .Run(absl::StrCat("SELECT 1 FROM phimap.blobs WHERE digest = '", part_, "'"), name_)
                .empty();
  }

 private:
  PostgresServer& server_ = PostgresServer::Shared();
  const std::string name_ = server_.CreateDatabase();
  const std::string part_ = std::string(64, 'a');
  std::shared_ptr<PostgresDatabase> database_;
  std::shared_ptr<Blobs> blobs_;
};

INSTANTIATE_TEST_SUITE_P(Postgres, GarbageContractTest,
                         ::testing::Values(GarbageHarnessFactory{
                             "Postgres", [] { return std::make_unique<PostgresHarness>(); }}),
                         GarbageHarnessName);

}  // namespace
}  // namespace phimap::testing
