// Runs the command-line program as a user would, against a real server of its own.
#ifndef PHIMAP_TESTS_E2E_CLI_FIXTURE_H_
#define PHIMAP_TESTS_E2E_CLI_FIXTURE_H_

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/e2e/server_process.h"
#include "tests/support/source_dir.h"

namespace phimap::e2e {

inline const std::string kLetters = testing::SourcePath("lab/data/letter.csv");

class CliFixture : public ::testing::Test {
 protected:
  ProcessResult Phimap(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {PHIMAP_BINARY, "--server=" + server_.address()});
    return RunProcess(arguments, input);
  }
  // Writes a file and returns its path.
  std::string File(const std::string& text, const std::string& name = "rows.csv") {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryFolder folder_;
  TemporaryFolder data_;
  ServerProcess server_{data_.path()};
};

}  // namespace phimap::e2e

#endif  // PHIMAP_TESTS_E2E_CLI_FIXTURE_H_
