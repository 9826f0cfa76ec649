// Cuts the connection to PostgreSQL at its Nth transfer, for N = 0, 1, 2, … until an operation
// completes without being cut. After each cut, new connections either succeed or are refused for
// good. Afterwards the store must contain every acknowledged change, and no change in part.
#include <functional>

#include "server/store/admin/store_backup.h"
#include "tests/server/store/admin/filled_store.h"
#include "tests/server/support/cutting_proxy.h"

namespace phimap::admin_test {
namespace {

using ::phimap::testing::CuttingProxy;

PostgresDatabaseOptions ImpatientOptions() {
  PostgresDatabaseOptions options{.settle = absl::Milliseconds(100)};
  options.pool.first_backoff = absl::Milliseconds(1);
  options.pool.longest_backoff = absl::Milliseconds(2);
  return options;
}

// Opens one PostgreSQL store twice, each time as a server would: once through a proxy that can cut
// connections, and once directly.
class CutStore {
 public:
  CutStore() {
    std::string uri = direct_.address();
    uri.replace(uri.find(absl::StrCat(":", port())), absl::StrCat(":", port()).size(),
                absl::StrCat(":", proxy_.port()));
    auto opened = PostgresDatabase::Open(uri, ImpatientOptions()).value();
    database_ = std::move(opened);
    blobs_ = std::make_shared<PostgresBlobs>(database_);
    cut_ = std::make_unique<Store>(database_, blobs_);
    whole_ = direct_.Serve();
  }

  CuttingProxy& proxy() { return proxy_; }
  // Waits until the database can be read through the proxy, because the connection pool pauses
  // before it connects again.
  void AwaitConnection() {
    const absl::Time until = absl::Now() + absl::Seconds(30);
    const auto nothing = [](SqlSession&) { return absl::OkStatus(); };
    while (!database_->Read(nothing).ok()) ASSERT_LT(absl::Now(), until);
  }
  Store& cut() { return *cut_; }
  Store& whole() { return *whole_; }
  AdminStore admin() { return {"test", database_, blobs_}; }
  AdminStore direct_admin() { return direct_.Open(); }

 private:
  static int port() { return testing::PostgresServer::Shared().port(); }

  Place direct_{Kind::kPostgres};
  CuttingProxy proxy_{port()};
  std::shared_ptr<PostgresDatabase> database_;
  std::shared_ptr<Blobs> blobs_;
  std::unique_ptr<Store> cut_;
  std::unique_ptr<Store> whole_;
};

struct CutOperation {
  const char* name;
  // Prepares run `n` through the direct connection, which is never cut.
  std::function<void(CutStore&, int n)> prepare;
  std::function<absl::Status(CutStore&, int n)> make;
  // Whether the change of run `n` is in the store.
  std::function<bool(CutStore&, int n)> happened;
};

std::string MappingOf(int n) { return absl::StrCat("m", n); }
void NoPreparation(CutStore&, int) {}

void PublishTwo(CutStore& store, int n) {
  for (const char* name : {"one", "two"}) {
    ASSERT_TRUE(store.whole().Publish(RequestFor(name, MappingOf(n)), absl::StrCat(name, n)).ok());
  }
}

bool HasVersion(CutStore& store, int n, int64_t number) {
  return store.whole().GetVersion(MappingOf(n), number).ok();
}

std::vector<CutOperation> CutOperations() {
  return {
      {"Publish", &NoPreparation,
       [](CutStore& store, int n) {
         return store.cut()
             .Publish(RequestFor("one", MappingOf(n)), absl::StrCat("one", n))
             .status();
       },
       [](CutStore& store, int n) { return HasVersion(store, n, 1); }},
      {"Import", &NoPreparation,
       [](CutStore& store, int n) {
         return store.cut()
             .Import(RequestFor("", MappingOf(n)).version, absl::StrCat("in", n))
             .status();
       },
       [](CutStore& store, int n) { return HasVersion(store, n, 1); }},
      {"MoveAlias", &PublishTwo,
       [](CutStore& store, int n) {
         return store.cut().SetAlias(MappingOf(n), "prod", 2, "").status();
       },
       [](CutStore& store, int n) {
         return store.whole().GetAliasedVersion(MappingOf(n), "prod").ok();
       }},
      {"DeleteVersion", &PublishTwo,
       [](CutStore& store, int n) { return store.cut().DeleteVersion(MappingOf(n), 1); },
       [](CutStore& store, int n) { return !HasVersion(store, n, 1); }},
      {"CollectGarbage",
       [](CutStore& store, int n) {
         PublishTwo(store, n);
         ASSERT_TRUE(store.whole().DeleteVersion(MappingOf(n), 1).ok());
       },
       [](CutStore& store, int) {
         const AdminStore admin = store.admin();
         return GarbageCollector(admin.database, admin.blobs, "cut")
             .Run(absl::ZeroDuration())
             .status();
       },
       [](CutStore& store, int) {
         // A garbage collection completes the work of an earlier one that failed, so the change has
         // been made once one succeeds.
         const AdminStore admin = store.direct_admin();
         return GarbageCollector(admin.database, admin.blobs, "cut").Run(absl::ZeroDuration()).ok();
       }},
  };
}

void PrintTo(const CutOperation& operation, std::ostream* out) { *out << operation.name; }

// Expects that the artifact of every version of every mapping can be read.
void ExpectAllWhole(Store& store) {
  const std::vector<MappingRecord> mappings = store.ListMappings("", 1000).value();
  for (const MappingRecord& mapping : mappings) {
    const std::vector<VersionRecord> versions =
        store.ListVersions(mapping.name, std::nullopt, 100).value();
    for (const VersionRecord& version : versions) {
      const auto artifact = store.ReadArtifactOf(version);
      EXPECT_TRUE(artifact.ok()) << mapping.name << "@" << version.number << artifact.status();
    }
  }
}

// Only OK and UNAVAILABLE are allowed. UNAVAILABLE means that the database is away, or that the
// outcome of a commit could not be determined.
bool IsAllowed(const absl::Status& status) { return status.ok() || absl::IsUnavailable(status); }

class ConnectionFaultTest : public ::testing::TestWithParam<CutOperation> {
 protected:
  // Cuts the operation at each of its transfers in turn. Returns the number of transfers that the
  // operation takes; with `for_good`, the number of runs that failed.
  int CutAtEach(bool for_good) {
    CutStore store;
    int failed = 0;
    for (int n = 0;; ++n) {
      SCOPED_TRACE(absl::StrCat(GetParam().name, " cut at transfer ", n));
      GetParam().prepare(store, n);
      store.AwaitConnection();
      store.proxy().CutAt(n, for_good);
      const absl::Status made = GetParam().make(store, n);
      const bool reached = store.proxy().reached();
      store.proxy().CutAt(-1, false);
      EXPECT_TRUE(IsAllowed(made)) << made;
      // After a single cut, the store connects again and finds out whether the commit was made.
      // Therefore, if it reports an error, the change was not made.
      if (!for_good && !made.ok()) {
        EXPECT_FALSE(GetParam().happened(store, n)) << made;
      }
      failed += !made.ok();
      if (made.ok()) {
        EXPECT_TRUE(GetParam().happened(store, n));
      }
      ExpectAllWhole(store.whole());
      // Once connections work again, the operation succeeds, however its first attempt ended.
      if (!GetParam().happened(store, n)) {
        EXPECT_TRUE(MakeAgain(store, n));
      }
      if (!reached || ::testing::Test::HasFailure()) return for_good ? failed : n;
    }
  }
  // Repeats the operation for up to 10 s until it succeeds, because the connection pool may still
  // pause before it connects again.
  bool MakeAgain(CutStore& store, int n) {
    const absl::Time until = absl::Now() + absl::Seconds(10);
    absl::Status made;
    do {
      made = GetParam().make(store, n);
    } while (!made.ok() && !GetParam().happened(store, n) && absl::Now() < until);
    return GetParam().happened(store, n);
  }
};

TEST_P(ConnectionFaultTest, OneCutLeavesAllOrNothingAndTheAnswerSaysWhich) {
  EXPECT_GE(CutAtEach(/*for_good=*/false), 5);
}

TEST_P(ConnectionFaultTest, ADatabaseThatGoesAwayInTheMidstLeavesAllOrNothing) {
  EXPECT_GE(CutAtEach(/*for_good=*/true), 5);
}

INSTANTIATE_TEST_SUITE_P(Operations, ConnectionFaultTest, ::testing::ValuesIn(CutOperations()),
                         [](const auto& info) { return std::string(info.param.name); });

// A backup that was reported as successful is complete, no matter at which transfer the connection
// broke.
TEST(BackupConnectionFaultTest, ABackupIsWholeOrNone) {
  CutStore store;
  // The artifacts are small, to keep the number of transfers low: the test makes one run per
  // transfer.
  PublishTwo(store, 0);
  ASSERT_TRUE(store.whole().SetAlias(MappingOf(0), "prod", 2, "").ok());
  const std::string shown = Shown(store.whole());
  TemporaryDirectory directory;
  int failed = 0;
  for (const bool for_good : {false, true}) {
    for (int n = 0;; ++n) {
      SCOPED_TRACE(absl::StrCat("cut at transfer ", n));
      const std::string folder = absl::StrCat(directory.path(), "/", for_good, "-", n);
      store.AwaitConnection();
      store.proxy().CutAt(n, for_good);
      const auto report =
          BackUp(store.admin(), folder, "the test", PosixFileSystem(), kNeverCancel);
      const bool reached = store.proxy().reached();
      store.proxy().CutAt(-1, false);
      EXPECT_TRUE(IsAllowed(report.status())) << report.status();
      failed += !report.ok();
      const Place place(Kind::kSqlite);
      const auto restored = Restore(folder, place.address(), PosixFileSystem(), kNeverCancel);
      EXPECT_EQ(restored.ok(), report.ok()) << restored.status() << report.status();
      if (restored.ok()) {
        EXPECT_EQ(Shown(*place.Serve()), shown);
      }
      if (!reached || ::testing::Test::HasFailure()) break;
    }
  }
  EXPECT_GE(failed, 5);
}

}  // namespace
}  // namespace phimap::admin_test
