// Requirements that every Catalog must meet: revisions, the changes since a revision, and two
// writers at once. (StoreContractTest checks the other requirements through a store.) A new
// implementation instantiates the suite:
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

#include "server/store/catalog.h"

namespace phimap {

// An empty storage place for a catalog.
class CatalogHarness {
 public:
  virtual ~CatalogHarness() = default;
  // Opens a catalog on the storage place and its present contents, as another process would. The
  // harness outlives the catalog.
  virtual std::unique_ptr<Catalog> Open() = 0;
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
  int64_t Insert(Catalog& catalog, const std::string& mapping, const std::string& build_id);
  int64_t Insert(const std::string& mapping, const std::string& build_id) {
    return Insert(*catalog_, mapping, build_id);
  }
  NameChanges ChangesSince(const Revision& since);
  Revision Now() { return ChangesSince(Revision()).revision; }

  const std::unique_ptr<CatalogHarness> harness_;
  const std::unique_ptr<Catalog> catalog_;
};

}  // namespace phimap

#endif  // PHIMAP_TESTS_CONTRACT_CATALOG_CONTRACT_H_
