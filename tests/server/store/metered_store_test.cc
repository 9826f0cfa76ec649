// Tests that a store whose calls are metered fulfils the contract of every store, and counts its
// calls.
#include "core/status/error.h"
#include "server/observe/metrics.h"
#include "server/store/store.h"
#include "tests/contract/store_contract.h"
#include "tests/server/store/sqlite/store_fixture.h"

namespace phimap::testing {
namespace {

class MeteredHarness : public StoreHarness {
 public:
  MeteredHarness() { Open(); }
  Store& store() override { return *store_; }
  void Restart() override {
    store_.reset();
    Open();
  }
  absl::Time Now() override { return clock_.now; }
  void AdvanceClock(absl::Duration duration) override { clock_.now += duration; }

 private:
  void Open() {
    store_ = MustOpen(directory_.path(), &clock_);
    store_->MeterWith(metrics_.store());
  }

  TemporaryDirectory directory_;
  ManualClock clock_;
  Metrics metrics_;
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(Metered, StoreContractTest,
                         ::testing::Values(StoreHarnessFactory{
                             "Metered", [] { return std::make_unique<MeteredHarness>(); }}),
                         StoreHarnessName);

uint64_t Calls(const Metrics& metrics, StoreOperation operation) {
  return metrics.store()
      .call_seconds[static_cast<int>(operation)]
      ->Collect()
      .histogram.sample_count;
}

// Each method is counted under its own name, not under the name of another method.
TEST(MeteredStoreTest, EveryCallIsCountedUnderItsOwnName) {
  TemporaryDirectory directory;
  ManualClock clock;
  Metrics metrics;
  const std::unique_ptr<Store> opened = MustOpen(directory.path(), &clock);
  Store& store = *opened;
  store.MeterWith(metrics.store());
  const std::pair<StoreOperation, std::function<void()>> calls[] = {
      {StoreOperation::kPublish, [&] { store.Publish({}, "").IgnoreError(); }},
      {StoreOperation::kImport, [&] { store.Import({}, "").IgnoreError(); }},
      {StoreOperation::kRecordFailedBuild,
       [&] {
         BuildRecord record{.mapping = "m", .build_id = "b", .spec_digest = "d"};
         record.error = absl::InternalError("x");
         store.RecordFailedBuild(record).IgnoreError();
       }},
      {StoreOperation::kGetBuild, [&] { store.GetBuild("m", "b").IgnoreError(); }},
      {StoreOperation::kChangesSince, [&] { store.ChangesSince(Revision()).IgnoreError(); }},
      {StoreOperation::kIsInHistory, [&] { store.IsInHistory(Revision()).IgnoreError(); }},
      {StoreOperation::kGetMapping, [&] { store.GetMapping("m").IgnoreError(); }},
      {StoreOperation::kListMappings, [&] { store.ListMappings("", 1).IgnoreError(); }},
      {StoreOperation::kGetVersion, [&] { store.GetVersion("m", 1).IgnoreError(); }},
      {StoreOperation::kListVersions,
       [&] { store.ListVersions("m", std::nullopt, 1).IgnoreError(); }},
      {StoreOperation::kGetAliasedVersion,
       [&] { store.GetAliasedVersion("m", "a").IgnoreError(); }},
      {StoreOperation::kGetVersionByDigest,
       [&] { store.GetVersionByDigest("m", "0123456").IgnoreError(); }},
      {StoreOperation::kReadArtifact,
       [&] { store.ReadArtifact(std::string(64, '0')).IgnoreError(); }},
      {StoreOperation::kReadArtifactRange,
       [&] { store.ReadArtifactRange(std::string(64, '0'), 0, 1).IgnoreError(); }},
      {StoreOperation::kOpenArtifact,
       [&] { store.OpenArtifact(std::string(64, '0')).IgnoreError(); }},
      {StoreOperation::kSetAlias, [&] { store.SetAlias("m", "a", 1, "").IgnoreError(); }},
      {StoreOperation::kDeleteAlias, [&] { store.DeleteAlias("m", "a", "").IgnoreError(); }},
      {StoreOperation::kDeleteVersion, [&] { store.DeleteVersion("m", 1).IgnoreError(); }},
      {StoreOperation::kDeleteMapping, [&] { store.DeleteMapping("m").IgnoreError(); }},
      {StoreOperation::kKeepVersion,
       [&] { store.KeepVersion("m", 1, absl::InfiniteDuration()).IgnoreError(); }},
      {StoreOperation::kRecordUses,
       [&] {
         store.RecordUses({{"m", 1}}).IgnoreError();
       }},
      {StoreOperation::kDeleteExpired, [&] { store.DeleteExpired().IgnoreError(); }},
  };
  ASSERT_EQ(std::size(calls), kStoreOperations);
  int made = 0;
  for (const auto& [operation, call] : calls) {
    EXPECT_EQ(Calls(metrics, operation), 0);
    call();
    ++made;
    EXPECT_EQ(Calls(metrics, operation), 1);
    int counted = 0;
    for (int i = 0; i < kStoreOperations; ++i) {
      counted += static_cast<int>(Calls(metrics, static_cast<StoreOperation>(i)));
    }
    EXPECT_EQ(counted, made);
  }
}

TEST(MeteredStoreTest, FaultsAreCountedAndAnswersAreNot) {
  using Code = absl::StatusCode;
  const std::pair<absl::Status, bool> cases[] = {
      {absl::OkStatus(), false},
      {absl::NotFoundError("no such name"), false},
      {absl::AlreadyExistsError("known"), false},
      {absl::AbortedError("somebody was quicker"), false},
      {MakeError(Code::kFailedPrecondition, "VERSION_IN_USE", "", "an alias points there"), false},
      {MakeError(Code::kFailedPrecondition, "MAPPING_IN_USE", "", "it has aliases"), false},
      {MakeError(Code::kFailedPrecondition, "MAPPING_NOT_EMPTY", "", "it has versions"), false},
      {MakeError(Code::kResourceExhausted, "ALIAS_LIMIT_REACHED", "", "100"), false},
      {MakeError(Code::kResourceExhausted, "DISK_FULL", "", "full"), true},
      {MakeError(Code::kFailedPrecondition, "FILE_SYSTEM_READ_ONLY", "", "read-only"), true},
      {absl::DataLossError("damaged"), true},
      {absl::UnavailableError("the disk"), true},
      {absl::InternalError("a bug"), true},
  };
  for (const auto& [status, fault] : cases) {
    Metrics metrics;
    metrics.store().Called(StoreOperation::kPublish, status, 0.5);
    EXPECT_EQ(IsStoreFault(status), fault) << status;
    const prometheus::Counter* const counter =
        metrics.store().faults[static_cast<int>(status.code())];
    EXPECT_EQ(counter == nullptr ? 0 : counter->Value(), fault ? 1 : 0) << status;
  }
}

}  // namespace
}  // namespace phimap::testing
