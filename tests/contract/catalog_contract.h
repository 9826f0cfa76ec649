// Requirements that a store must meet on every database: revisions, the changes since a revision,
// and two writers at once. (StoreContractTest checks the other requirements.) A new database
// instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, CatalogContractTest,
//                            ::testing::Values(CatalogHarnessFactory{"Sqlite", MakeHarness}),
//                            CatalogHarnessName);
#ifndef PHIMAP_TESTS_CONTRACT_CATALOG_CONTRACT_H_
#define PHIMAP_TESTS_CONTRACT_CATALOG_CONTRACT_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "server/store/store.h"
#include "tests/contract/memory_blobs.h"

namespace phimap::testing {

// An empty storage place for a store.
class CatalogHarness {
 public:
  virtual ~CatalogHarness() = default;
  // Opens a store on the storage place and its present contents, as another process would. The
  // harness outlives the store.
  std::unique_ptr<Store> Open() { return std::make_unique<Store>(OpenDatabase(), blobs_); }

 private:
  virtual std::shared_ptr<SqlDatabase> OpenDatabase() = 0;

  const std::shared_ptr<Blobs> blobs_ = std::make_shared<MemoryBlobs>();
};

struct CatalogHarnessFactory {
  std::string name;
  std::function<std::unique_ptr<CatalogHarness>()> make;
};

inline std::string CatalogHarnessName(const ::testing::TestParamInfo<CatalogHarnessFactory>& info) {
  return info.param.name;
}

class CatalogContractTest : public ::testing::TestWithParam<CatalogHarnessFactory> {
 protected:
  CatalogContractTest() : harness_(GetParam().make()), catalog_(harness_->Open()) {}

  // Inserts a version and returns its number. Fails the test if the insertion fails.
  int64_t Insert(Store& catalog, const std::string& mapping, const std::string& build_id);
  int64_t Insert(const std::string& mapping, const std::string& build_id) {
    return Insert(*catalog_, mapping, build_id);
  }
  NameChanges ChangesSince(const Revision& since);
  Revision Now() { return ChangesSince(Revision()).revision; }

  const std::unique_ptr<CatalogHarness> harness_;
  const std::unique_ptr<Store> catalog_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CONTRACT_CATALOG_CONTRACT_H_
