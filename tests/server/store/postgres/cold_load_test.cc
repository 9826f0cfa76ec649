// Reads an artifact that is only in the database, which also copies it into the cache. Expects that
// this needs little more memory than the size of the artifact.
//
// PHIMAP_TEST_COLD_BYTES sets the size of the artifact (default 192 MiB).
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/numbers.h"
#include "server/store/files/artifact_cache.h"
#include "server/store/files/file_system.h"
#include "server/store/postgres/postgres_blobs.h"
#include "server/store/sha256.h"
#include "tests/server/store/postgres/postgres_fixture.h"
#include "tests/server/support/temporary_folder.h"

namespace phimap::testing {
namespace {

constexpr int64_t kOverheadBytes = int64_t{64} << 20;

int64_t ArtifactBytes() {
  const char* const text = std::getenv("PHIMAP_TEST_COLD_BYTES");
  int64_t bytes = int64_t{192} << 20;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &bytes)) << text;
  }
  return bytes;
}

// The value of the line `name` of /proc/self/status, converted to bytes.
int64_t StatusBytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  int64_t kilobytes = 0;
  while (status >> word) {
    if (word == name + ":" && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

std::string Artifact(int64_t bytes) {
  std::string artifact(static_cast<size_t>(bytes), '\0');
  for (size_t i = 0; i < artifact.size(); i += 4096) artifact[i] = static_cast<char>(i >> 12);
  return artifact;
}

using ColdLoadTest = PostgresTest;

TEST_F(ColdLoadTest, TakesLittleMoreThanTheArtifact) {
  const int64_t bytes = ArtifactBytes();
  TemporaryFolder folder;
  const std::string digest_file = folder.path() + "/digest";
  // A separate process writes the artifact, so that the memory for writing is not counted here.
  const pid_t writer = fork();
  if (writer == 0) {
    const std::string artifact = Artifact(bytes);
    const std::string digest = Sha256Hex(artifact);
    std::ofstream(digest_file) << digest;
    std::shared_ptr<PostgresDatabase> database = OpenDatabase();
    _exit(PostgresBlobs(database).Write(digest, artifact).ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  ASSERT_EQ(status, 0);
  std::string digest;
  std::ifstream(digest_file) >> digest;
  std::shared_ptr<PostgresDatabase> database = OpenDatabase();
  const Logger logger{LogLevel::kOff};
  std::shared_ptr<ArtifactCache> cache =
      ArtifactCache::Open(folder.path() + "/cache", 2 * bytes, PosixFileSystem(), logger).value();
  CachedBlobs blobs(std::make_unique<PostgresBlobs>(database), cache);
  for (const char* from : {"the database", "the cache"}) {
    std::ofstream("/proc/self/clear_refs") << 5;  // resets the recorded peak
    const int64_t before = StatusBytes("VmRSS");
    const auto read = blobs.Read(digest, bytes).value();
    EXPECT_EQ(static_cast<int64_t>(read.size()), bytes);
    const int64_t overhead = StatusBytes("VmHWM") - before - bytes;
    std::cout << "from " << from << ": " << (overhead >> 10) << " KiB beside " << (bytes >> 20)
              << " MiB\n";
    EXPECT_LE(overhead, kOverheadBytes) << from;
  }
  EXPECT_EQ(cache->statistics().artifacts, 1);
}

}  // namespace
}  // namespace phimap::testing
