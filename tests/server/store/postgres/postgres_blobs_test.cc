#include "server/store/postgres/postgres_blobs.h"

#include <sys/resource.h>

#include <fstream>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/store/sha256.h"
#include "tests/contract/blobs_contract.h"
#include "tests/server/store/postgres/postgres_fixture.h"
#include "tests/support/matchers.h"

namespace phimap::testing {
namespace {

constexpr int64_t kChunk = PostgresBlobs::kChunkBytes;

// The value of a field of /proc/self/status in bytes. A field is, for example, VmRSS.
int64_t ResidentBytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field, 0) != 0) continue;
    return std::strtoll(line.c_str() + field.size(), nullptr, 10) * 1024;
  }
  return 0;
}

class PostgresBlobsTest : public PostgresTest {
 protected:
  int64_t CountChunks() { return Run("SELECT count(*) FROM phimap.blob_chunks").Int(0, 0); }
  // Reads a whole blob at once, and then as a stream. Returns the status of each.
  std::vector<absl::Status> ReadErrors(const std::string& digest, int64_t size_bytes) {
    std::vector<absl::Status> errors = {blobs_.Read(digest, size_bytes).status()};
    const auto reader = blobs_.OpenReader(digest, size_bytes);
    errors.push_back(reader.ok() ? ReadAll(**reader, 1 << 20).status() : reader.status());
    return errors;
  }

  const std::shared_ptr<PostgresDatabase> database_ = OpenDatabase();
  PostgresBlobs blobs_{database_};
  const int64_t size_ = 2 * kChunk + 1000;
  const std::string content_ = SomeBytes(size_);
  const std::string digest_ = Sha256Hex(content_);
};

TEST_F(PostgresBlobsTest, WritingTwiceRefreshesTheTimeAndRemovingTakesAllChunks) {
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  Run("UPDATE phimap.blobs SET write_time_us = 5");
  const std::string rows = "SELECT string_agg(xmin::text, ' ') FROM phimap.blob_chunks";
  const std::string before = Run(rows).Text(0, 0);
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  EXPECT_EQ(Run(rows).Text(0, 0), before) << "chunks that are there are not written again";
  EXPECT_GT(Run("SELECT write_time_us FROM phimap.blobs").Int(0, 0), 5);
  EXPECT_EQ(CountChunks(), 3);
  EXPECT_EQ(Run("SELECT max(length(content)) FROM phimap.blob_chunks").Int(0, 0), kChunk);
  ASSERT_TRUE(blobs_.Remove(digest_).ok());
  EXPECT_EQ(CountChunks(), 0);
}

TEST_F(PostgresBlobsTest, DamageIsDataLossThatNamesTheDigestAndWritingAgainHealsIt) {
  for (const char* damage :
       {"UPDATE phimap.blob_chunks SET content = set_byte(content, 7, get_byte(content, 7) # 1) "
        "WHERE number = 1",
        "DELETE FROM phimap.blob_chunks WHERE number = 1",
        "DELETE FROM phimap.blob_chunks WHERE number = 2",
        "UPDATE phimap.blob_chunks SET content = substr(content, 2) WHERE number = 0",
        "UPDATE phimap.blob_chunks SET content = content || 'x'::bytea WHERE number = 2",
        "UPDATE phimap.blobs SET size_bytes = size_bytes - 1", "DELETE FROM phimap.blobs"}) {
    SCOPED_TRACE(damage);
    ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
    Run(damage);
    for (const absl::Status& status : ReadErrors(digest_, size_)) {
      EXPECT_TRUE(absl::IsDataLoss(status)) << status;
      EXPECT_EQ(ReasonOf(status), "ARTIFACT_DAMAGED");
      EXPECT_EQ(DetailOf(status)->metadata.at("digest"), digest_);
    }
    ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
    const auto healed = blobs_.Read(digest_, size_).value();
    EXPECT_TRUE(healed == content_);
  }
}

TEST_F(PostgresBlobsTest, AnUploadThatWasCutIsNotReadAndIsGoneOnWith) {
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  Run("UPDATE phimap.blobs SET complete = 0; DELETE FROM phimap.blob_chunks WHERE number = 2");
  for (const absl::Status& status : ReadErrors(digest_, size_)) {
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
  const std::string first = "SELECT xmin::text FROM phimap.blob_chunks WHERE number = 0";
  const std::string before = Run(first).Text(0, 0);
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  EXPECT_TRUE(blobs_.Read(digest_, size_).ok());
  EXPECT_EQ(Run(first).Text(0, 0), before);
}

TEST_F(PostgresBlobsTest, TheChunkSizeIsTheFirstWriters) {
  Run(absl::StrCat("INSERT INTO phimap.blobs VALUES ('", digest_, "', ", size_,
                   ", 1000000, 0, 0)"));
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  EXPECT_EQ(CountChunks(), (size_ + 999'999) / 1'000'000);
  EXPECT_TRUE(*blobs_.Read(digest_, size_) == content_);
  EXPECT_TRUE(*blobs_.ReadRange(digest_, size_, 999'990, 20) == content_.substr(999'990, 20));
}

TEST_F(PostgresBlobsTest, ACutConnectionDoesNotEndAWriteOrAStream) {
  ASSERT_TRUE(blobs_.Write(digest_, content_).ok());
  const auto reader = blobs_.OpenReader(digest_, size_).value();
  std::string pieces;
  for (;;) {
    server_.CutConnections(name_);
    const std::string piece = reader->Next(kChunk).value();
    if (piece.empty()) break;
    pieces += piece;
  }
  EXPECT_TRUE(pieces == content_);
}

TEST_F(PostgresBlobsTest, ABlobThatNobodyCompletedBecauseItWasRemovedIsAnError) {
  // Another server removes the blob between its last chunk and the completion of its row.
  Run("CREATE FUNCTION phimap.vanish() RETURNS trigger LANGUAGE plpgsql AS "
      "$$ BEGIN DELETE FROM phimap.blobs; RETURN NULL; END $$; "
      "CREATE TRIGGER vanish AFTER INSERT ON phimap.blob_chunks "
      "FOR EACH ROW EXECUTE FUNCTION phimap.vanish()");
  const absl::Status status = blobs_.Write(digest_, content_);
  EXPECT_EQ(ReasonOf(status), "ARTIFACT_REMOVED") << status;
  EXPECT_TRUE(absl::IsUnavailable(status));
}

// A streamed read holds one chunk and libpq's copies of that chunk. This takes less than 64 MiB,
// and 64 MiB is less than the size of the blob. The measured peak covers the whole process, so it
// is reset first.
TEST_F(PostgresBlobsTest, AStreamNeedsMemoryForChunksOnly) {
  constexpr int64_t kSize = int64_t{160} << 20;
  std::string digest;
  {
    const std::string content = SomeBytes(kSize);
    digest = Sha256Hex(content);
    ASSERT_TRUE(blobs_.Write(digest, content).ok());
  }
  std::ofstream("/proc/self/clear_refs") << "5";
  const int64_t before = ResidentBytes("VmRSS:");
  const auto reader = blobs_.OpenReader(digest, kSize).value();
  int64_t read = 0;
  for (;;) {
    const std::string piece = reader->Next(1 << 20).value();
    if (piece.empty()) break;
    read += static_cast<int64_t>(piece.size());
  }
  EXPECT_EQ(read, kSize);
  EXPECT_LT(ResidentBytes("VmHWM:") - before, int64_t{64} << 20);
}

}  // namespace
}  // namespace phimap::testing
