#include "tests/corpus/corpus_inputs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/status/check.h"
#include "tests/support/source_dir.h"

namespace phimap::testing {
namespace {

Matrix<double> ReadNumbers(const std::string& path) {
  const std::vector<std::string> lines = LinesOf(ReadCorpusFile(path));
  PHIMAP_CHECK(!lines.empty());
  const auto columns = std::count(lines[0].begin(), lines[0].end(), ',') + 1;
  Matrix<double> numbers(static_cast<int64_t>(lines.size()), columns);
  for (int64_t i = 0; i < numbers.rows(); ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[static_cast<size_t>(i)], ',');
    PHIMAP_CHECK(static_cast<int64_t>(cells.size()) == columns);
    for (int64_t j = 0; j < columns; ++j) {
      PHIMAP_CHECK(absl::SimpleAtod(cells[static_cast<size_t>(j)], &numbers(i, j)));
    }
  }
  return numbers;
}

}  // namespace

std::string ReadCorpusFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  PHIMAP_CHECK(file.is_open());
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::vector<std::string> FieldsOf(const std::string& line) { return absl::StrSplit(line, '\t'); }

CorpusInputs ReadCorpusInputs(const std::string& folder) {
  return {.stream = ReadNumbers(folder + "/stream.csv"),
          .texts = LinesOf(ReadCorpusFile(folder + "/stream.txt")),
          .rows = ReadNumbers(folder + "/rows.csv"),
          .values = ReadNumbers(folder + "/values.csv")};
}

std::vector<std::string> CorpusFolders() {
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(SourcePath("tests/corpus"))) {
    if (entry.is_directory()) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace phimap::testing
