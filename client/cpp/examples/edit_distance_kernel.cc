// A kernel service for words: K(a, b) = exp(-d(a, b)), where d is the edit distance (Levenshtein),
// the least number of insertions, deletions and substitutions that turn a into b.
//
//   edit_distance_kernel 127.0.0.1:9000 &
//   phimapd --data_dir=/tmp/phimap --kernel_service=words=127.0.0.1:9000 &
//
// Then service(endpoint=words, kernel=edit) is a kernel of words, which are sent as text or bytes.
// The distance counts bytes.
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

// Computes the table of distances between prefixes row by row, and keeps only one row.
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

absl::Status EditKernel(const Batch& left, const Batch& right, double* block) {
  if (left.kind() != Batch::Kind::kText && left.kind() != Batch::Kind::kBytes) {
    return absl::InvalidArgumentError("edit compares words: send text or bytes");
  }
  for (size_t i = 0; i < left.size(); ++i) {
    for (size_t j = 0; j < right.size(); ++j) *block++ = std::exp(-EditDistance(left[i], right[j]));
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
