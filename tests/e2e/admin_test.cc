// Tests `phimapd admin` while a server runs on the same store, and after that server has stopped.
#include <signal.h>

#include <filesystem>

#include "tests/e2e/cli_fixture.h"
#include "tests/e2e/fleet.h"
#include "tests/support/matchers.h"

namespace phimap::e2e {
namespace {

namespace fs = std::filesystem;

class AdminTest : public CliFixture {
 protected:
  AdminTest() { BuildVersions(*server_.Connect(), "letters", 3); }

  ProcessResult Admin(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {PHIMAPD_BINARY, "admin"});
    return RunProcess(arguments, "");
  }
  ProcessResult Admin(const std::string& action, const std::string& store,
                      std::vector<std::string> more = {}) {
    more.insert(more.begin(), {action, "--store=" + store});
    return Admin(more);
  }
  const std::string backup_ = folder_.path() + "/backup";
  const std::string restored_ = folder_.path() + "/restored";
};

TEST_F(AdminTest, ABackupOfARunningServerIsServedAfterItsStoreIsGone) {
  ASSERT_TRUE(server_.Connect()->SetAlias("letters@2", "prod").ok());
  const auto before = server_.Connect()->Transform("letters@prod", FleetRow());
  const ProcessResult backup = Admin("backup", data_.path(), {"--to=" + backup_});
  ASSERT_EQ(backup.exit_code, 0) << backup.err;
  EXPECT_THAT(backup.out, HasSubstr("3 versions of 1 mapping, 1 alias, 3 artifacts"));
  server_.process().Signal(SIGKILL);
  server_.process().Wait();
  const ProcessResult restore = Admin("restore", restored_, {"--from=" + backup_, "--json"});
  ASSERT_EQ(restore.exit_code, 0) << restore.err;
  EXPECT_THAT(restore.out, HasSubstr("\"versions\": 3, \"aliases\": 1, \"artifacts\": 3"));
  const ServerProcess again(restored_);
  const auto after = again.Connect()->Transform("letters@prod", FleetRow()).value();
  EXPECT_EQ(after.version.number(), 2);
  EXPECT_EQ(after.features.values_le, before->features.values_le);
}

TEST_F(AdminTest, ABackupOfFilesIsServedFromADatabase) {
  ASSERT_EQ(Admin("backup", data_.path(), {"--to=" + backup_}).exit_code, 0);
  Fleet fleet(phimap::testing::PostgresServer::Shared());
  const ProcessResult restore = Admin("restore", fleet.uri(), {"--from=" + backup_});
  ASSERT_EQ(restore.exit_code, 0) << restore.err;
  const auto server = fleet.Start("one");
  EXPECT_EQ(Answering(*server->Connect(), "letters"), 3);
  EXPECT_EQ(Admin("check", fleet.uri()).exit_code, 0);
}

TEST_F(AdminTest, AStoreInUseIsNotRestoredOver) {
  ASSERT_EQ(Admin("backup", data_.path(), {"--to=" + backup_}).exit_code, 0);
  const ProcessResult restore = Admin("restore", data_.path(), {"--from=" + backup_});
  EXPECT_EQ(restore.exit_code, 5);
  EXPECT_THAT(restore.err, HasSubstr("--store: expected a folder that is missing or empty"));
  EXPECT_EQ(Answering(*server_.Connect(), "letters@1"), 1);
}

TEST_F(AdminTest, ACheckFindsDamageThatAServerHasNotRead) {
  const ProcessResult well = Admin("check", data_.path(), {"--json"});
  EXPECT_EQ(well.exit_code, 0) << well.err;
  EXPECT_THAT(well.out, HasSubstr("\"versions\": 3, \"artifacts\": 3"));
  EXPECT_THAT(well.out, HasSubstr("\"damaged\": []"));
  const std::string digest = server_.Connect()->GetVersion("letters@2")->ref().digest();
  const std::string path = data_.path() + "/blobs/" + digest.substr(0, 2) + "/" + digest;
  fs::resize_file(path, fs::file_size(path) / 2);
  const ProcessResult damaged = Admin("check", data_.path());
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.out, HasSubstr("letters@2: artifact " + digest));
  EXPECT_THAT(damaged.err, HasSubstr("1 artifact is damaged"));
  const ProcessResult backup = Admin("backup", data_.path(), {"--to=" + backup_});
  EXPECT_EQ(backup.exit_code, 1);
  EXPECT_FALSE(fs::exists(backup_ + "/MANIFEST"));
  EXPECT_THAT(backup.err, HasSubstr("--skip-damaged"));
}

TEST_F(AdminTest, ABackupWithoutWhatIsDamagedIsRestoredWithTheRest) {
  const std::string digest = server_.Connect()->GetVersion("letters@2")->ref().digest();
  const std::string path = data_.path() + "/blobs/" + digest.substr(0, 2) + "/" + digest;
  const std::string copy = folder_.path() + "/letters@2.phimap";
  fs::copy_file(path, copy);
  fs::remove(path);
  const ProcessResult missing = Admin("check", data_.path(), {"--quarantine"});
  EXPECT_THAT(missing.out, HasSubstr("letters@2: "));
  EXPECT_THAT(missing.out, Not(HasSubstr("(set aside)")));  // no file to set aside
  const ProcessResult backup = Admin("backup", data_.path(), {"--to=" + backup_, "--skip-damaged"});
  EXPECT_EQ(backup.exit_code, 1);
  EXPECT_THAT(backup.out, HasSubstr("3 versions of 1 mapping, 0 aliases, 2 artifacts"));
  EXPECT_THAT(backup.err, HasSubstr("the backup lacks 1 artifact,"));
  const ProcessResult restore = Admin("restore", restored_, {"--from=" + backup_});
  ASSERT_EQ(restore.exit_code, 0) << restore.err;
  const ServerProcess again(restored_);
  EXPECT_EQ(Answering(*again.Connect(), "letters@3"), 3);
  EXPECT_EQ(again.Connect()->Transform("letters@2", FleetRow()).status().code(),
            absl::StatusCode::kDataLoss);
  const ProcessResult healed = RunProcess(
      {PHIMAP_BINARY, "--server=" + again.address(), "import", copy, "--name=letters"}, "");
  EXPECT_EQ(healed.exit_code, 0) << healed.err;
  EXPECT_EQ(Answering(*again.Connect(), "letters@2"), 2);
}

TEST_F(AdminTest, APasswordInAnAddressIsRefusedAndNotRepeated) {
  const ProcessResult check = Admin("check", "postgresql://u:secret@127.0.0.1/d");
  EXPECT_EQ(check.exit_code, 2) << check.err;
  EXPECT_THAT(check.err, HasSubstr("PGPASSFILE"));
  EXPECT_THAT(check.err, Not(HasSubstr("secret")));
}

TEST_F(AdminTest, GarbageThatIsYoungStaysAndAGraceThatIsTooShortIsRefused) {
  ASSERT_TRUE(server_.Connect()->DeleteVersion("letters@1").ok());
  const ProcessResult gc = Admin("gc", data_.path(), {"--json"});
  EXPECT_EQ(gc.exit_code, 0) << gc.err;
  EXPECT_EQ(gc.out, "{\"listed\": 0, \"removed\": 0, \"unlinked_files\": 0, \"held\": 0}\n");
  EXPECT_EQ(Admin("gc", data_.path(), {"--grace=60"}).exit_code, 2);
}

TEST_F(AdminTest, AWordThatIsNoCommandIsNamedBesideTheCommands) {
  const ProcessResult wrong = RunProcess({PHIMAPD_BINARY, "admin", "bakcup", "--to=/tmp/x"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.err,
            "phimapd: phimapd admin has no command 'bakcup'; did you mean backup? the "
            "commands are check, backup, restore, gc\n");
  const ProcessResult missing = RunProcess({PHIMAPD_BINARY, "admin"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.err,
            "phimapd: a command of phimapd admin is missing; the commands are check, backup, "
            "restore, gc\n");
}

TEST_F(AdminTest, WhatIsNoStoreIsNamed) {
  const ProcessResult nowhere = Admin("check", folder_.path() + "/nowhere");
  EXPECT_EQ(nowhere.exit_code, 3);
  EXPECT_THAT(nowhere.err, HasSubstr("/nowhere/phimap.sqlite"));
  EXPECT_EQ(Admin({"check"}).exit_code, 2);
  EXPECT_EQ(Admin({}).exit_code, 2);
}

}  // namespace
}  // namespace phimap::e2e
