// A folder that is removed when its object is destroyed.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_TEMPORARY_FOLDER_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_TEMPORARY_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/status/check.h"

namespace phimap::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "phimap-test-XXXXXX").string();
    PHIMAP_CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

  // Truncates the artifact with this digest. REQUIRES: it is in the store in this folder.
  void DamageBlob(const std::string& digest) const {
    int damaged = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      if (entry.path().filename().string().find(digest) != 0) continue;
      std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_all);
      std::filesystem::resize_file(entry.path(), 100);
      ++damaged;
    }
    PHIMAP_CHECK(damaged == 1);
  }

  // The number of artifact files of the store in this folder. Counts complete files, which have
  // names of 64 digits, and temporary files.
  int CountBlobs() const {
    int count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      const bool whole = entry.path().filename().string().size() == 64;
      const bool temporary = entry.path().parent_path().filename() == "tmp";
      count += entry.is_regular_file() && (whole || temporary) ? 1 : 0;
    }
    return count;
  }

 private:
  std::string path_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_TEMPORARY_FOLDER_H_
