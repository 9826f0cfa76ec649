#include "server/registry/known_names.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/registry/registry_fixture.h"
#include "tests/server/support/temporary_folder.h"

namespace phimap::testing {
namespace {

KnownNames Names() {
  KnownNames names{.store = std::string(64, 'a'), .revision = {"0123456789abcdef", 17}};
  names.mappings.push_back({.mapping = "letters",
                            .versions = {1, 3},
                            .aliases = {{"canary", 3}, {"prod", 1}},
                            .digests = {std::string(64, '1'), std::string(64, '3')}});
  names.mappings.push_back({.mapping = "spam"});
  VersionRecord record{.mapping = "letters", .number = 3, .digest = std::string(64, '3')};
  record.artifact_size_bytes = 1234;
  record.create_time = absl::FromUnixMicros(1'700'000'000'123'456);
  record.input_columns = 16;
  record.output_columns = 500;
  record.serving_type = "float32";
  record.spec_text = "f2(landmarks=500)";
  record.kernel_text = "a\ttab, a\nline, \"ü\" and \\";
  record.imported = true;
  names.records.push_back(record);
  record.ttl = absl::Minutes(10);
  record.expire_time = absl::FromUnixMicros(1'700'000'600'123'456);
  record.imported = false;
  names.records.push_back(record);
  return names;
}

TEST(KnownNamesTest, WhatIsWrittenIsReadBack) {
  const KnownNames names = Names();
  const KnownNames read = ParseKnownNames(TextOf(names)).value();
  EXPECT_EQ(read.store, names.store);
  EXPECT_EQ(read.revision, names.revision);
  ASSERT_EQ(read.mappings.size(), 2);
  EXPECT_EQ(read.mappings[0].mapping, "letters");
  EXPECT_EQ(read.mappings[0].versions, names.mappings[0].versions);
  EXPECT_EQ(read.mappings[0].digests, names.mappings[0].digests);
  ASSERT_EQ(read.mappings[0].aliases.size(), 2);
  EXPECT_EQ(read.mappings[0].aliases[1].alias, "prod");
  EXPECT_EQ(read.mappings[0].aliases[1].version, 1);
  EXPECT_TRUE(read.mappings[1].versions.empty());
  ASSERT_EQ(read.records.size(), 2);
  for (size_t i = 0; i < 2; ++i) {
    const VersionRecord& came = read.records[i];
    const VersionRecord& went = names.records[i];
    EXPECT_EQ(came.mapping, went.mapping);
    EXPECT_EQ(came.number, went.number);
    EXPECT_EQ(came.digest, went.digest);
    EXPECT_EQ(came.artifact_size_bytes, went.artifact_size_bytes);
    EXPECT_EQ(came.create_time, went.create_time);
    EXPECT_EQ(came.input_columns, went.input_columns);
    EXPECT_EQ(came.output_columns, went.output_columns);
    EXPECT_EQ(came.serving_type, went.serving_type);
    EXPECT_EQ(came.spec_text, went.spec_text);
    EXPECT_EQ(came.kernel_text, went.kernel_text);
    EXPECT_EQ(came.imported, went.imported);
    EXPECT_EQ(came.ttl, went.ttl);
    EXPECT_EQ(came.expire_time, went.expire_time);
  }
}

TEST(KnownNamesTest, ADamagedFileIsRefusedWhereverItIsDamaged) {
  const std::string text = TextOf(Names());
  ASSERT_TRUE(ParseKnownNames(text).ok());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    EXPECT_TRUE(absl::IsDataLoss(ParseKnownNames(damaged).status())) << i;
    EXPECT_TRUE(absl::IsDataLoss(ParseKnownNames(text.substr(0, i)).status())) << i;
  }
  EXPECT_FALSE(ParseKnownNames(text + "x").ok());
}

class KnownNamesFileTest : public RegistryFixture {
 protected:
  // Makes a registry that has not asked the store.
  void StartWithout() {
    registry_ = std::make_unique<VersionRegistry>(VersionRegistry::Options(), store_,
                                                  metrics_.registry(), logger_);
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/names";
};

// The server of the next run knows the names without its store, and asks for changes since.
TEST_F(KnownNamesFileTest, ARegistryThatRecallsKnowsTheNamesAndGoesOnFromTheirRevision) {
  store_.Put("letters", 1, SmallArtifact());
  store_.Put("letters", 2, SmallArtifact());
  store_.PutAlias("letters", "prod", 1);
  Start();
  KnownNamesFile(path_, "the store", *PosixFileSystem(), *registry_, logger_).Save();
  const Revision before = registry_->revision();
  registry_.reset();
  store_.FailChanges(true);
  StartWithout();
  KnownNamesFile file(path_, "the store", *PosixFileSystem(), *registry_, logger_);
  ASSERT_TRUE(file.Recall().ok());
  EXPECT_EQ(registry_->revision(), before);
  store_.FailChanges(false);
  store_.PutAlias("letters", "prod", 2);
  ASSERT_TRUE(registry_->CatchUp().ok());
  EXPECT_EQ(registry_->revision().number, before.number + 1);
  EXPECT_EQ(registry_->history_breaks(), 0);
}

TEST_F(KnownNamesFileTest, AnotherStoresNamesAreNone) {
  store_.Put("letters", 1, SmallArtifact());
  Start();
  KnownNamesFile(path_, "the store", *PosixFileSystem(), *registry_, logger_).Save();
  registry_.reset();
  StartWithout();
  KnownNamesFile other(path_, "another store", *PosixFileSystem(), *registry_, logger_);
  EXPECT_TRUE(absl::IsNotFound(other.Recall()));
  EXPECT_TRUE(registry_->revision().id.empty());
}

}  // namespace
}  // namespace phimap::testing
