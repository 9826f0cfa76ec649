// Simulates a power cut after each disk operation: everything that was not synced is lost. The
// store must then contain every change that was acknowledged before the cut. The change that was
// under way must be there completely or not at all.
#include <filesystem>
#include <functional>
#include <vector>

#include "server/store/admin/backup_manifest.h"
#include "server/store/admin/store_backup.h"
#include "tests/server/store/admin/filled_store.h"
#include "tests/server/store/sqlite/faulty_file_system.h"
#include "tests/server/store/sqlite/faulty_vfs.h"
#include "tests/server/store/sqlite/lossy_disk.h"

namespace phimap::admin_test {
namespace {

// What a power cut after one disk operation would leave.
struct Moment {
  LossyDisk::Image image;
  size_t acknowledged = 0;
  std::string operation;
};

class PowerLossTest : public ::testing::Test {
 protected:
  PowerLossTest() {
    std::filesystem::create_directory(root_);
    disk_.after = [this] {
      const std::vector<std::string> operations = plan_.operations();
      // Until the first start has finished, nothing is acknowledged: the store is empty or does not
      // exist.
      const size_t acknowledged = shown_.empty() ? 0 : shown_.size() - 1;
      moments_.push_back({disk_.image(), acknowledged, operations.back()});
    };
  }
  SqliteStoreOptions Options(const std::string& data_dir) {
    SqliteStoreOptions options{.data_dir = data_dir, .reserve_bytes = 0};
    return options;
  }
  // Makes a change, and then records what the store shows.
  void Change(const std::function<absl::Status(SqliteStore&)>& make) {
    const absl::Status made = make(*store_);
    ASSERT_TRUE(made.ok()) << made;
    shown_.push_back(Shown(*store_));
  }
  void Publish(const std::string& build, const std::string& mapping, const std::string& artifact) {
    Change([&](SqliteStore& store) {
      return store.Publish(RequestFor(build, mapping), artifact).status();
    });
  }
  void Collect() {
    Change([](SqliteStore& store) {
      return GarbageCollector(store.database(), store.blobs(), "test")
          .Run(absl::ZeroDuration())
          .status();
    });
  }
  void MakeChanges() {
    auto opened = SqliteStore::Open(Options(root_ + "/data"), &file_system_).value();
    store_ = std::move(opened);
    shown_.push_back(Shown(*store_));
    Publish("build-1", "letters", "one");
    Publish("build-2", "letters", "two");
    Change([](SqliteStore& store) { return store.SetAlias("letters", "prod", 1, "").status(); });
    Change([](SqliteStore& store) { return store.SetAlias("letters", "prod", 2, "").status(); });
    Change([](SqliteStore& store) {
      return store.Import(RequestFor("", "digits").version, "one").status();
    });
    Change(
        [](SqliteStore& store) { return store.DeleteVersion("letters", 1, Rollbacks::kGiveUp); });
    Change([](SqliteStore& store) { return store.DeleteMapping("digits"); });
    Collect();  // removes the artifact "one"
    Publish("build-3", "letters", "one");
    Change([this](SqliteStore& store) {
      return BackUp({"", store.database(), store.blobs()}, root_ + "/backup", "test", &file_system_,
                    kNeverCancel)
          .status();
    });
    backed_up_ = shown_.size() - 1;
    Change([](SqliteStore& store) { return store.DeleteAlias("letters", "prod", ""); });
  }
  void CheckStore(const Moment& moment, const std::string& folder) {
    auto opened = SqliteStore::Open(Options(folder + "/data"), PosixFileSystem()).value();
    const std::string shown = Shown(*opened);
    const bool before = shown == shown_[moment.acknowledged];
    const bool after =
        moment.acknowledged + 1 < shown_.size() && shown == shown_[moment.acknowledged + 1];
    EXPECT_TRUE(before || after) << shown << "; acknowledged: " << shown_[moment.acknowledged];
  }
  void CheckBackup(const Moment& moment, const std::string& folder) {
    const Place place(Kind::kSqlite);
    const auto restored =
        Restore(folder + "/backup", place.address(), PosixFileSystem(), kNeverCancel);
    EXPECT_TRUE(restored.ok() || moment.acknowledged < backed_up_) << restored.status();
    // A backup is complete exactly if it has a manifest.
    EXPECT_EQ(restored.ok(), std::filesystem::exists(folder + "/backup/MANIFEST"))
        << restored.status();
    if (restored.ok()) {
      EXPECT_EQ(Shown(*place.Serve()), shown_[backed_up_]);
    }
  }

  // What the store showed when it was empty, and after each acknowledged change. disk_.after uses
  // shown_ and moments_ until the store is closed.
  std::vector<std::string> shown_;
  std::vector<Moment> moments_;
  TemporaryDirectory directory_;
  const std::string root_ = directory_.path() + "/disk";
  FaultPlan plan_;
  ScopedFaultyVfs vfs_{&plan_};
  FaultyFileSystem file_system_{PosixFileSystem(), root_, &plan_};
  LossyDisk disk_{root_, &plan_};
  size_t backed_up_ = 0;
  std::unique_ptr<SqliteStore> store_;
};

TEST_F(PowerLossTest, LosesNothingThatWasAcknowledgedAndLeavesNothingByHalf) {
  MakeChanges();
  ASSERT_GE(moments_.size(), 60);
  disk_.after = nullptr;
  for (size_t i = 0; i < moments_.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("power cut after operation ", i, ", ", moments_[i].operation));
    const std::string folder = absl::StrCat(directory_.path(), "/after-", i);
    disk_.Restore(moments_[i].image, folder);
    CheckStore(moments_[i], folder);
    CheckBackup(moments_[i], folder);
    std::filesystem::remove_all(folder);
    if (HasFailure()) return;
  }
}

// Shows that this file's checks would detect a disk whose fsync reports success without making data
// durable.
TEST_F(PowerLossTest, AFsyncThatDoesNothingIsNoticed) {
  MakeChanges();
  LossyDisk::Image image = disk_.image();
  // Empties a blob that was synced, as if its fsync had done nothing.
  for (auto& [number, content] : image.contents) {
    if (*content == "two") content = std::make_shared<const std::string>();
  }
  const std::string folder = directory_.path() + "/after";
  disk_.Restore(image, folder);
  auto opened = SqliteStore::Open(Options(folder + "/data"), PosixFileSystem()).value();
  EXPECT_NE(Shown(*opened), shown_.back());
}

}  // namespace
}  // namespace phimap::admin_test
