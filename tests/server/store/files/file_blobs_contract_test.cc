#include "server/store/files/file_blobs.h"
#include "tests/contract/blobs_contract.h"
#include "tests/server/store/sqlite/store_fixture.h"

namespace phimap::testing {
namespace {

// The concurrent writers are threads of one process, because a folder belongs to one server.
class FilesHarness : public BlobsHarness {
 public:
  std::unique_ptr<Blobs> Open() override {
    auto blobs = std::make_unique<FileBlobs>(directory_.path(), PosixFileSystem());
    EXPECT_TRUE(blobs->CreateDirectories().ok());
    return blobs;
  }
  void Damage(const std::string& digest, const std::string& content) override {
    WriteWhole(FileBlobs(directory_.path(), PosixFileSystem()).BlobPath(digest), content);
  }

 private:
  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Files, BlobsContractTest,
                         ::testing::Values(BlobsHarnessFactory{
                             "Files", [] { return std::make_unique<FilesHarness>(); }}),
                         BlobsHarnessName);

}  // namespace
}  // namespace phimap::testing
