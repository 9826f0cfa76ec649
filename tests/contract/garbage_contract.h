// Requirements on garbage collection, as a test suite for every kind of database and blobs. A new
// kind of database instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(Sqlite, GarbageContractTest,
//                            ::testing::Values(GarbageHarnessFactory{"Sqlite", MakeHarness}),
//                            GarbageHarnessName);
#ifndef PHIMAP_TESTS_CONTRACT_GARBAGE_CONTRACT_H_
#define PHIMAP_TESTS_CONTRACT_GARBAGE_CONTRACT_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "server/store/blobs.h"
#include "server/store/sql_database.h"

namespace phimap::testing {

// An empty store, consisting of a database and blobs.
class GarbageHarness {
 public:
  virtual ~GarbageHarness() = default;
  virtual std::shared_ptr<SqlDatabase> database() = 0;
  virtual std::shared_ptr<Blobs> blobs() = 0;
  // Makes a blob look as if it had been written `age` ago.
  virtual void AgeBlob(const std::string& digest, absl::Duration age) = 0;
  // Leaves behind the temporary part of an upload that was interrupted `age` ago.
  virtual void LeavePart(absl::Duration age) = 0;
  virtual bool HasPart() = 0;
};

struct GarbageHarnessFactory {
  std::string name;
  std::function<std::unique_ptr<GarbageHarness>()> make;
};

inline std::string GarbageHarnessName(const ::testing::TestParamInfo<GarbageHarnessFactory>& info) {
  return info.param.name;
}

class GarbageContractTest : public ::testing::TestWithParam<GarbageHarnessFactory> {
 protected:
  GarbageContractTest() : harness_(GetParam().make()) {}

  const std::unique_ptr<GarbageHarness> harness_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_CONTRACT_GARBAGE_CONTRACT_H_
