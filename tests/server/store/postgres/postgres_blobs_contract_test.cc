#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/store/postgres/postgres_blobs.h"
#include "tests/contract/blobs_contract.h"
#include "tests/server/support/postgres_server.h"

namespace phimap::testing {
namespace {

class PostgresHarness : public BlobsHarness {
 public:
  std::unique_ptr<Blobs> Open() override {
    std::unique_ptr<PostgresDatabase> database = PostgresDatabase::Open(server_.Uri(name_)).value();
    return std::make_unique<PostgresBlobs>(std::move(database));
  }
  void Damage(const std::string& digest, const std::string& content) override {
    server_.Run(absl::StrCat("UPDATE phimap.blob_chunks SET content = '\\x",
                             absl::BytesToHexString(content), "' WHERE digest = '", digest,
                             "' AND number = 0"),
                name_);
  }

 private:
  PostgresServer& server_ = PostgresServer::Shared();
  const std::string name_ = server_.CreateDatabase();
};

INSTANTIATE_TEST_SUITE_P(Postgres, BlobsContractTest,
                         ::testing::Values(BlobsHarnessFactory{
                             "Postgres", [] { return std::make_unique<PostgresHarness>(); }}),
                         BlobsHarnessName);

}  // namespace
}  // namespace phimap::testing
