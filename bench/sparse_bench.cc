// Compares sparse rows with the same rows in dense form, both mapped by F2 of an rbf kernel. Checks
// that the features have the same bits, and measures the time of sparse rows as a share of the time
// of dense rows. Each call maps --rows rows on one thread, without a server.
//
// The cost of sparse rows is reading the parts of the landmark matrix A' that their columns select,
// 9.4 MB at the default shape, plus what dense rows cost too: exponentials and W.
// docs/benchmarks.md has the figures. Rows that store more than a quarter of their numbers are
// converted to dense form, so a density above 0.25 shows the cost of the conversion.
//
// Not part of bench/run. With --check, the program fails if sparse rows take more than --limit of
// the time of dense rows. The bits are always checked.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "bench/bench_plans.h"
#include "bench/interleaved.h"
#include "core/engine/engine.h"
#include "core/status/check.h"

namespace phimap::bench {
namespace {

struct Arguments {
  int64_t columns = 10000;
  int64_t landmarks = 500;
  int64_t rows = 64;
  double density = 0.01;
  double limit = 0.1;
  TimingOptions timing;
};

// Rows in dense and in sparse form.
struct Rows {
  Matrix<float> dense;
  std::vector<int64_t> offsets = {0};
  std::vector<int32_t> columns;
  std::vector<float> values;

  RowsView dense_view() const {
    return {reinterpret_cast<const char*>(dense.data()), FloatType::kFloat32, dense.rows(),
            dense.cols()};
  }
  SparseRowsView sparse_view() const {
    return {FloatType::kFloat32,
            dense.rows(),
            dense.cols(),
            reinterpret_cast<const char*>(offsets.data()),
            reinterpret_cast<const char*>(columns.data()),
            reinterpret_cast<const char*>(values.data())};
  }
};

Rows MakeRows(const Arguments& arguments, std::mt19937_64& random) {
  std::bernoulli_distribution named(arguments.density);
  std::normal_distribution<float> normal;
  Rows rows{.dense = Matrix<float>(arguments.rows, arguments.columns)};
  for (int64_t i = 0; i < arguments.rows; ++i) {
    for (int64_t j = 0; j < arguments.columns; ++j) {
      if (!named(random)) continue;
      rows.dense(i, j) = normal(random);
      rows.columns.push_back(static_cast<int32_t>(j));
      rows.values.push_back(rows.dense(i, j));
    }
    rows.offsets.push_back(static_cast<int64_t>(rows.values.size()));
  }
  return rows;
}

// Calls the engine with other rows each time, so that each call reads other parts of A' than the
// call before.
class Calls {
 public:
  Calls(const Arguments& arguments, const Engine& engine)
      : engine_(engine), features_(arguments.rows, engine.output_columns()) {
    std::mt19937_64 random(2);
    for (int i = 0; i < 16; ++i) rows_.push_back(MakeRows(arguments, random));
  }

  void Transform(bool sparse) {
    const Rows& rows = rows_[next_++ % rows_.size()];
    TransformPart part{
        .rows = sparse ? ExamplesView(rows.sparse_view()) : ExamplesView(rows.dense_view()),
        .features = features_.data()};
    engine_.Transform(absl::MakeSpan(&part, 1), scratch_);
    PHIMAP_CHECK(part.status.ok());
  }
  // Checks that both forms give the same bits.
  void CheckBits() {
    for (size_t i = 0; i < rows_.size(); ++i) {
      next_ = i;
      Transform(false);
      const Matrix<float> dense = features_.Clone();
      next_ = i;
      Transform(true);
      PHIMAP_CHECK(std::memcmp(features_.data(), dense.data(),
                               sizeof(float) * static_cast<size_t>(dense.size())) == 0);
    }
  }

 private:
  const Engine& engine_;
  std::vector<Rows> rows_;
  Matrix<float> features_;
  EngineScratch scratch_;
  size_t next_ = 0;
};

int Run(int argc, char** argv) {
  Arguments arguments;
  bool check = false;
  CLI::App app("Sparse rows beside the same rows dense, through F2.");
  app.add_option("--columns", arguments.columns, "Columns of a row")->capture_default_str();
  app.add_option("--landmarks", arguments.landmarks, "Landmarks")->capture_default_str();
  app.add_option("--rows", arguments.rows, "Rows of a call")->capture_default_str();
  app.add_option("--density", arguments.density, "Share of numbers other than 0")
      ->capture_default_str();
  app.add_option("--rounds", arguments.timing.rounds, "Interleaved rounds")->capture_default_str();
  app.add_option("--limit", arguments.limit, "Largest share of the time")->capture_default_str();
  app.add_flag("--check", check, "Fail above the limit");
  CLI11_PARSE(app, argc, argv);
  std::mt19937_64 random(1);
  const int64_t d = arguments.landmarks;
  const BenchMapping mapping{"F2", arguments.columns, d, d, WKind::kTriangular};
  const auto engine = Engine::Load(MakePlan(mapping, MakeNumbers(mapping, random)));
  PHIMAP_CHECK(engine.ok());
  Calls calls(arguments, **engine);
  calls.CheckBits();
  std::vector<Contender> contenders = {{"dense", [&] { calls.Transform(false); }},
                                       {"sparse", [&] { calls.Transform(true); }}};
  TimeInterleaved(arguments.timing, contenders);
  const double share = contenders[1].median_us / contenders[0].median_us;
  absl::PrintF(
      "engine on %s, one thread: F2, d = %d, %d columns, %d rows a call, density %.3g\n"
      "dense %.1f us, sparse %.1f us: %.4f of the time (at most %.3g)\n",
      EngineTargetName(), d, arguments.columns, arguments.rows, arguments.density,
      contenders[0].median_us, contenders[1].median_us, share, arguments.limit);
  return check && share > arguments.limit ? 1 : 0;
}

}  // namespace
}  // namespace phimap::bench

int main(int argc, char** argv) { return phimap::bench::Run(argc, argv); }
