#include "tests/core/learn/svm_tool.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"

namespace phimap::testing {

ScratchFolder::ScratchFolder() {
  std::string path = (std::filesystem::temp_directory_path() / "phimap_learn_XXXXXX").string();
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  path_ = path;
}

ScratchFolder::~ScratchFolder() { std::filesystem::remove_all(path_); }

void WriteSvmFile(const LabeledRows& rows, const std::string& path) {
  std::ofstream file(path);
  for (int64_t i = 0; i < rows.rows.rows(); ++i) {
    if (!rows.targets.empty()) {
      file << absl::StrFormat("%.17g", rows.targets[i]);
    } else {
      file << (rows.classes == 2 ? 2 * rows.labels[i] - 1 : rows.labels[i]);
    }
    for (int64_t k = 0; k < rows.rows.cols(); ++k) {
      file << absl::StrFormat(" %d:%.17g", k + 1, rows.rows(i, k));
    }
    file << "\n";
  }
  ASSERT_TRUE(file.good()) << path;
}

void MustRun(const std::string& command) {
  ASSERT_EQ(std::system((command + " >/dev/null").c_str()), 0) << command;
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace phimap::testing
