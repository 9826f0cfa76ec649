// Refused changes are written down, also those of a time in which the database was away.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status/error.h"
#include "gtest/gtest.h"
#include "server/observe/log.h"
#include "server/store/audit.h"
#include "server/store/sqlite/sqlite_database.h"
#include "server/store/store.h"
#include "tests/server/store/sqlite/store_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

// A database that can go away.
class LeavingDatabase final : public SqlDatabase {
 public:
  explicit LeavingDatabase(std::unique_ptr<SqlDatabase> database)
      : database_(std::move(database)) {}

  absl::Status Read(Body body) override { return database_->Read(body); }
  absl::Status Write(Body body, IsStored is_stored, absl::string_view what) override {
    const bool gone = away;  // first, because who sees the write may bring the database back
    ++writes;
    if (gone) return absl::UnavailableError("the database is away");
    const absl::Status written = database_->Write(body, is_stored, what);
    if (!in_doubt_once.exchange(false)) return written;
    return MakeError(absl::StatusCode::kUnavailable, reason::kCommitInDoubt, "", "");
  }
  absl::Status WriteAside(Body body) override { return database_->WriteAside(body); }
  bool in_doubt() const override { return database_->in_doubt(); }

  std::atomic<bool> away{false};
  std::atomic<int> writes{0};
  // Whether the next write is done, and says that it may not have been.
  std::atomic<bool> in_doubt_once{false};

 private:
  const std::unique_ptr<SqlDatabase> database_;
};

class RefusedChangesTest : public ::testing::Test {
 protected:
  std::vector<AuditEntry> Audit() { return store_.ListAudit({.oldest_first = true}, 100).value(); }
  static AuditEntry Refusal(const std::string& mapping) {
    AuditEntry entry;
    entry.method = "phimap.v1.MappingService/DeleteMapping";
    entry.principal = "ann";
    entry.mapping = mapping;
    entry.SetOutcome(MakeError(absl::StatusCode::kPermissionDenied, reason::kRoleTooLow, "", ""));
    return entry;
  }
  // Waits until the database has been asked once.
  void AwaitWrite() {
    const absl::Time until = absl::Now() + absl::Seconds(30);
    while (database_->writes == 0 && absl::Now() < until) continue;
  }
  void AwaitTwoEntries() {
    const absl::Time until = absl::Now() + absl::Seconds(30);
    while (Audit().size() < 2 && absl::Now() < until) continue;
  }

  TemporaryDirectory folder_;
  const std::shared_ptr<LeavingDatabase> database_ = std::make_shared<LeavingDatabase>(
      SqliteDatabase::Open(folder_.path() + "/phimap.sqlite", absl::Seconds(60)).value());
  Store store_{database_, nullptr};
  Mutex mutex_;
  std::string log_ ABSL_GUARDED_BY(mutex_);
  const Logger logger_{LogLevel::kInfo, [this](absl::string_view line) {
                         MutexLock lock(&mutex_);
                         log_.append(line.data(), line.size());
                       }};
};

TEST_F(RefusedChangesTest, WaitForADatabaseThatIsAway) {
  database_->away = true;
  {
    RefusedChanges refused(store_, logger_);
    refused.Note(Refusal("cards"));
    refused.Note(Refusal("letters"));
    AwaitWrite();
    EXPECT_THAT(Audit(), ::testing::IsEmpty());
    database_->away = false;
    AwaitTwoEntries();
  }
  const std::vector<AuditEntry> entries = Audit();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].mapping, "cards");
  EXPECT_EQ(entries[0].outcome, "PERMISSION_DENIED");
  EXPECT_EQ(entries[0].reason, "ROLE_TOO_LOW");
  EXPECT_EQ(entries[1].mapping, "letters");
  MutexLock lock(&mutex_);
  EXPECT_THAT(log_, HasSubstr("refusal_not_written"));
  EXPECT_THAT(log_, Not(HasSubstr("refusals_lost")));
}

TEST_F(RefusedChangesTest, AServerThatEndsMeanwhileSaysHowManyAreLost) {
  database_->away = true;
  {
    RefusedChanges refused(store_, logger_);
    // The last five have no entries of their own and wait for a summary.
    for (int i = 0; i < RefusedChanges::kRefusalsAtOnce + 5; ++i) refused.Note(Refusal("cards"));
    AwaitWrite();
  }
  EXPECT_THAT(Audit(), ::testing::IsEmpty());
  MutexLock lock(&mutex_);
  EXPECT_THAT(log_, HasSubstr("refusals_lost refusals=25"));
}

TEST_F(RefusedChangesTest, AnEntryWhoseCommitIsInDoubtIsNotWrittenAgain) {
  {
    RefusedChanges refused(store_, logger_);
    database_->in_doubt_once = true;
    refused.Note(Refusal("cards"));
    AwaitWrite();
    refused.Note(Refusal("letters"));
    AwaitTwoEntries();
  }
  const std::vector<AuditEntry> entries = Audit();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].mapping, "cards");
  EXPECT_EQ(entries[1].mapping, "letters");
}

}  // namespace
}  // namespace phimap::testing
