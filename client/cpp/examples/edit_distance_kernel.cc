// A kernel service for words: K(a, b) = exp(-d(a, b)), d the edit distance (Levenshtein), the
// insertions, deletions and substitutions that make b of a.
//
//   edit_distance_kernel 127.0.0.1:9000 &
//   phimapd --data_dir=/tmp/phimap --kernel_service=words=127.0.0.1:9000 &
//
// Then service(endpoint=words, kernel=edit) is a kernel of words: of text, of bytes, or of rows
// that hold the codes of a word's letters and 0 behind its end.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cpp/kernel_server.h"

namespace {

using phimap::client::Batch;
using phimap::client::KernelServer;

// Row after row of the table of prefixes, of which one is kept.
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 0; i < a.size(); ++i) {
    int diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, diagonal + 1, row[j] + 1});
    }
  }
  return row[b.size()];
}

std::vector<std::string> WordsOf(const Batch& batch) {
  std::vector<std::string> words;
  for (size_t i = 0; i < batch.size(); ++i) {
    std::string& word = words.emplace_back();
    if (batch.kind() != Batch::Kind::kDense) word = std::string(batch[i]);
    for (int64_t k = 0; k < batch.columns() && batch.number(i, k) != 0; ++k) {
      word.push_back(static_cast<char>(batch.number(i, k)));
    }
  }
  return words;
}

absl::Status EditKernel(const Batch& left, const Batch& right, double* block) {
  const std::vector<std::string> columns = WordsOf(right);
  for (const std::string& row : WordsOf(left)) {
    for (const std::string& column : columns) *block++ = std::exp(-EditDistance(row, column));
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  KernelServer::Options options;
  if (argc > 1) options.listen = argv[1];
  options.kernels["edit"] = EditKernel;
  options.diagonals["edit"] = [](const Batch& words, double* values) {
    std::fill_n(values, words.size(), 1.0);
    return absl::OkStatus();
  };
  const absl::StatusOr<std::unique_ptr<KernelServer>> server = KernelServer::Start(options);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", std::string(server.status().message()).c_str());
    return 1;
  }
  std::printf("kernel server ready: %s\n", (*server)->address().c_str());
  std::fflush(stdout);
  (*server)->Wait();
  return 0;
}
