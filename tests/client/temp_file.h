// Temporary files for tests.
#ifndef PHIMAP_TESTS_CLIENT_TEMP_FILE_H_
#define PHIMAP_TESTS_CLIENT_TEMP_FILE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace phimap::cli {

// A temporary folder, which is removed with its contents.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = ::testing::TempDir() + "/phimap_client.XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }

  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file and returns its path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }
  std::string Read(const std::string& name) const {
    std::ostringstream bytes;
    bytes << std::ifstream(Path(name), std::ios::binary).rdbuf();
    return bytes.str();
  }
  // Returns the number of files in the folder.
  int FileCount() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

}  // namespace phimap::cli

#endif  // PHIMAP_TESTS_CLIENT_TEMP_FILE_H_
