// Measures a build of F2 from the pool of sampled rows to the plan. Compares the build with the
// work that no build can avoid (the Gram matrix, and direct calls of LAPACK's dpstrf and dtrtri)
// and with its peer, scikit-learn's Nystroem.fit. Ingesting the stream, the certificate and the
// encoding are reported separately.
//
// Not part of bench/run, which measures serving.
#include <lapacke.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/interleaved.h"
#include "bench/normal_matrix.h"
#include "core/kernel/kernel_block.h"
#include "core/linalg/blas.h"
#include "core/mapping/build/version_build.h"
#include "core/mapping/spec/build_spec.h"
#include "core/status/check.h"

namespace phimap::bench {
namespace {

constexpr double kFloorLimit = 1.2;
constexpr double kPeerLimit = 1.0 / 3;
constexpr double kCertificateLimit = 2;

struct Sizes {
  int64_t rows = 20000;
  int64_t landmarks = 2048;
  int64_t columns = 64;
  int rounds = 5;
  std::string peer;
};

double SecondsSince(absl::Time begin) { return absl::ToDoubleSeconds(absl::Now() - begin); }

KernelExpression KernelOf(const Sizes& sizes) {
  const absl::StatusOr<KernelExpression> kernel = KernelExpression::Parse(
      absl::StrFormat("rbf(gamma=%.17g)", 1.0 / static_cast<double>(sizes.columns)));
  PHIMAP_CHECK(kernel.ok());
  return *kernel;
}

// Returns the seconds that the Gram matrix, its pivoted Cholesky factorization and the inverse of
// the factor take by themselves, all in place.
double FloorSeconds(const Sizes& sizes, const Matrix<double>& rows) {
  const KernelProgram kernel = KernelProgram::Compile(KernelOf(sizes));
  const ConstMatrixView<double> landmarks = rows.view().Rows(0, sizes.landmarks);
  const absl::Time begin = absl::Now();
  const auto n = static_cast<lapack_int>(sizes.landmarks);
  Matrix<double> gram = Matrix<double>::Uninit(n, n);
  PHIMAP_CHECK(KernelGram(kernel, landmarks, gram.view(), NeverStop).ok());
  std::vector<lapack_int> pivots(static_cast<size_t>(n));
  lapack_int rank = 0;
  // A row-major lower triangle is a column-major upper triangle. The tolerance is the one that
  // builds use for float32 serving.
  PHIMAP_CHECK(LAPACKE_dpstrf(LAPACK_COL_MAJOR, 'U', n, gram.data(), n, pivots.data(), &rank,
                              n * std::ldexp(1.0, -24)) >= 0);
  PHIMAP_CHECK(LAPACKE_dtrtri(LAPACK_COL_MAJOR, 'U', 'N', rank, gram.data(), n) == 0);
  return SecondsSince(begin);
}

// Adds up the seconds that pass in each phase.
class PhaseTimer final : public BuildMonitor {
 public:
  absl::Status Checkpoint(absl::string_view phase, double) override {
    Close();
    phase_ = std::string(phase);
    return absl::OkStatus();
  }
  void Close() {
    const absl::Time now = absl::Now();
    seconds[phase_] += absl::ToDoubleSeconds(now - since_);
    since_ = now;
  }
  std::map<std::string, double> seconds;

 private:
  std::string phase_ = "sample";
  absl::Time since_ = absl::Now();
};

struct BuildSeconds {
  double ingest = 0;
  double plan = 0;
  double certificate = 0;
  double encode = 0;
};

BuildSeconds Build(const Sizes& sizes, const Matrix<double>& rows) {
  BuildSpec spec;
  const absl::StatusOr<MappingSpec> mapping =
      MappingSpec::Parse(absl::StrCat("f2(landmarks=", sizes.landmarks, ")"));
  PHIMAP_CHECK(mapping.ok());
  spec.mapping = *mapping;
  spec.kernel = KernelOf(sizes);
  spec.seed = 1;
  BuildSeconds out;
  const absl::Time begin = absl::Now();
  StreamSample sample(spec, rows.cols());
  PHIMAP_CHECK(sample
                   .Add(RowsView{.data = reinterpret_cast<const char*>(rows.data()),
                                 .type = FloatType::kFloat64,
                                 .rows = rows.rows(),
                                 .columns = rows.cols()})
                   .ok());
  out.ingest = SecondsSince(begin);
  PhaseTimer timer;
  PHIMAP_CHECK(BuildVersion(spec, std::move(sample), timer).ok());
  timer.Close();
  out.certificate = timer.seconds["certificate"];
  out.encode = timer.seconds["encode"];
  out.plan = timer.seconds["sample"] + timer.seconds["gram"] + timer.seconds["factor"];
  return out;
}

// Returns the seconds that the peer's script prints; nullopt if there is no peer.
std::optional<double> PeerSeconds(const Sizes& sizes) {
  if (sizes.peer.empty()) return std::nullopt;
  const std::string command =
      absl::StrCat("/usr/bin/python3 '", sizes.peer, "' --rows=", sizes.rows,
                   " --columns=", sizes.columns, " --landmarks=", sizes.landmarks);
  FILE* const pipe = popen(command.c_str(), "r");
  PHIMAP_CHECK(pipe != nullptr);
  double seconds = 0;
  const int read = std::fscanf(pipe, "%lf", &seconds);
  PHIMAP_CHECK(pclose(pipe) == 0 && read == 1);
  return seconds;
}

int Run(const Sizes& sizes, bool check) {
  UseOneBlasThread();
  const Matrix<double> rows = NormalMatrix(sizes.rows, sizes.columns);
  std::map<std::string, std::vector<double>> seconds;
  FloorSeconds(sizes, rows);  // warms up the machine
  for (int round = 0; round < sizes.rounds; ++round) {
    seconds["floor"].push_back(FloorSeconds(sizes, rows));
    const BuildSeconds build = Build(sizes, rows);
    seconds["ingest"].push_back(build.ingest);
    seconds["plan"].push_back(build.plan);
    seconds["certificate"].push_back(build.certificate);
    seconds["encode"].push_back(build.encode);
    if (const auto peer = PeerSeconds(sizes)) seconds["peer"].push_back(*peer);
  }
  absl::PrintF("F2 of %d landmarks, %d rows of %d numbers, rbf, one thread; OpenBLAS for %s\n",
               sizes.landmarks, sizes.rows, sizes.columns, BlasCoreName());
  std::map<std::string, double> median;
  for (const char* name : {"floor", "ingest", "plan", "certificate", "encode", "peer"}) {
    if (seconds[name].empty()) continue;
    median[name] = Median(seconds[name]);
    absl::PrintF("  %-12s %8.1f ms\n", name, 1000 * median[name]);
  }
  bool kept = true;
  const auto bar = [&](const char* what, double ratio, double limit) {
    absl::PrintF("%-58s %.2f   limit %.2f\n", what, ratio, limit);
    kept = kept && ratio <= limit;
  };
  bar("pool to plan / (Gram matrix, dpstrf, dtrtri)", median["plan"] / median["floor"],
      kFloorLimit);
  bar("certificate / pool to plan", median["certificate"] / median["plan"], kCertificateLimit);
  if (median.contains("peer")) {
    bar("pool to plan / Nystroem.fit", median["plan"] / median["peer"], kPeerLimit);
  }
  return check && !kept ? 1 : 0;
}

}  // namespace
}  // namespace phimap::bench

int main(int argc, char** argv) {
  CLI::App app("Measures what a build of F2 costs.");
  phimap::bench::Sizes sizes;
  bool check = false;
  app.add_option("--rows", sizes.rows, "Rows of the stream")->capture_default_str();
  app.add_option("--landmarks", sizes.landmarks, "Landmarks")->capture_default_str();
  app.add_option("--columns", sizes.columns, "Columns per row")->capture_default_str();
  app.add_option("--rounds", sizes.rounds, "Rounds")->capture_default_str();
  app.add_option("--peer", sizes.peer, "Path of bench/nystroem_fit.py, to measure the peer too")
      ->check(CLI::ExistingFile);
  app.add_flag("--check", check, "Exit with 1 if a limit is exceeded");
  CLI11_PARSE(app, argc, argv);
  PHIMAP_CHECK(1 <= sizes.landmarks && sizes.landmarks <= sizes.rows && sizes.columns >= 1);
  return phimap::bench::Run(sizes, check);
}
