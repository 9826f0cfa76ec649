// The connection to PostgreSQL is cut at its Nth transfer, for N = 0, 1, 2, … until a run passes:
// once, and for good. Every acknowledged change is there, and no change is there by half.
#include <functional>

#include "server/admin/store_restore.h"
#include "tests/server/admin/looked_after.h"
#include "tests/server/support/cutting_proxy.h"

namespace phimap::admin_test {
namespace {

using ::phimap::testing::CuttingProxy;

PostgresDatabaseOptions ImpatientOptions() {
  PostgresDatabaseOptions options;
  options.settle = absl::Milliseconds(100);
  options.pool.first_backoff = absl::Milliseconds(1);
  options.pool.longest_backoff = absl::Milliseconds(2);
  return options;
}

// A store as a server has it whose connections go through a proxy, and one that does not.
class CutStore {
 public:
  CutStore() {
    std::string uri = direct_.address();
    uri.replace(uri.find(absl::StrCat(":", port())), absl::StrCat(":", port()).size(),
                absl::StrCat(":", proxy_.port()));
    auto opened = PostgresDatabase::Open(uri, ImpatientOptions());
    EXPECT_TRUE(opened.ok()) << opened.status();
    database_ = *std::move(opened);
    blobs_ = std::make_shared<PostgresBlobs>(database_);
    cut_ = std::make_unique<CatalogStore>(std::make_unique<SqlCatalog>(database_, blobs_), blobs_,
                                          [] { return absl::Now(); });
    whole_ = direct_.Serve();
  }

  CuttingProxy& proxy() { return proxy_; }
  // The pool waits a little before it tries again.
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
  // Prepares run `n` through the store whose connection is not cut.
  std::function<void(CutStore&, int n)> prepare;
  std::function<absl::Status(CutStore&, int n)> make;
  // Whether it has happened.
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
         // The next pass does the rest of a pass that failed; the work ends when nothing is left.
         const AdminStore admin = store.direct_admin();
         return GarbageCollector(admin.database, admin.blobs, "cut").Run(absl::ZeroDuration()).ok();
       }},
  };
}

void PrintTo(const CutOperation& operation, std::ostream* out) { *out << operation.name; }

// Every version of every mapping has its artifact.
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

// Errors only while a database is away, and a commit that nobody could settle.
bool IsAllowed(const absl::Status& status) { return status.ok() || absl::IsUnavailable(status); }

class ConnectionFaultTest : public ::testing::TestWithParam<CutOperation> {
 protected:
  // Returns how many transfers the operation took.
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
      // One that was cut can be settled: what was not acknowledged was not made.
      if (!for_good && !made.ok()) {
        EXPECT_FALSE(GetParam().happened(store, n)) << made;
      }
      failed += !made.ok();
      if (made.ok()) {
        EXPECT_TRUE(GetParam().happened(store, n));
      }
      ExpectAllWhole(store.whole());
      // Afterwards it works, whatever became of the first.
      if (!GetParam().happened(store, n)) {
        EXPECT_TRUE(MakeAgain(store, n));
      }
      if (!reached || ::testing::Test::HasFailure()) return for_good ? failed : n;
    }
  }
  // The pool may still wait before it tries again.
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

// A backup that was told to be one is one, wherever the connection broke.
TEST(BackupConnectionFaultTest, ABackupIsWholeOrNone) {
  CutStore store;
  // Small ones: each transfer is a run.
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
      const auto report = BackUp(store.admin(), folder, "the test", PosixFileSystem(), kGoOn);
      const bool reached = store.proxy().reached();
      store.proxy().CutAt(-1, false);
      EXPECT_TRUE(IsAllowed(report.status())) << report.status();
      failed += !report.ok();
      const Place place(Kind::kSqlite);
      const auto restored = Restore(folder, place.address(), PosixFileSystem(), kGoOn);
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
