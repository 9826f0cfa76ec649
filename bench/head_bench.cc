// Compares the answer of a version with its features: the scores of a folded head with Transform,
// both of F2 with random landmarks. Each call maps the same rows on one thread, without a server.
// Prints, for each number of rows, the time of the scores as a share of the time of the features.
//
// Not part of bench/run. With --check, the program fails if a share is over --limit.
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/bench_plans.h"
#include "bench/interleaved.h"
#include "bench/normal_matrix.h"
#include "core/engine/engine.h"
#include "core/head/head_program.h"
#include "core/status/check.h"

namespace phimap::bench {
namespace {

struct Arguments {
  int64_t columns = 64;
  int64_t landmarks = 2048;
  int64_t classes = 10;
  std::vector<int64_t> rows = {1, 32, 1024};
  double limit = 0.15;
  TimingOptions timing;
};

Head RandomHead(int64_t features, int64_t classes, std::mt19937_64& random) {
  Head head;
  head.features_digest = std::string(64, '0');
  const int64_t scores = classes > 2 ? classes : 1;
  for (int64_t c = 0; c < classes; ++c) head.classes.push_back(absl::StrCat("class ", c));
  head.weights = NormalMatrix<double>(features, scores, 1, random);
  head.intercepts.resize(scores, 0.5);
  head.folded = true;
  return head;
}

// Returns the share of the time.
double Measure(const Arguments& arguments, const Engine& engine, const HeadProgram& program,
               int64_t count) {
  std::mt19937_64 random(2);
  const Matrix<float> x = NormalMatrix<float>(count, arguments.columns, 1, random);
  const RowsView rows{reinterpret_cast<const char*>(x.data()), FloatType::kFloat32, count,
                      arguments.columns};
  Matrix<float> features(count, engine.output_columns());
  Matrix<double> scores(count, program.scores());
  EngineScratch scratch;
  std::vector<Contender> contenders = {{"features",
                                        [&] {
                                          TransformPart part{.rows = rows,
                                                             .features = features.data()};
                                          engine.Transform(absl::MakeSpan(&part, 1), scratch);
                                          PHIMAP_CHECK(part.status.ok());
                                        }},
                                       {"scores", [&] {
                                          ScorePart part{.rows = rows, .scores = scores.data()};
                                          program.Scores(absl::MakeSpan(&part, 1), scratch);
                                          PHIMAP_CHECK(part.status.ok());
                                        }}};
  TimeInterleaved(arguments.timing, contenders);
  const double share = contenders[1].median_us / contenders[0].median_us;
  absl::PrintF("%6d rows: features %10.2f us, scores %9.2f us: %.4f of the time (at most %.3g)\n",
               count, contenders[0].median_us, contenders[1].median_us, share, arguments.limit);
  return share;
}

int Run(int argc, char** argv) {
  Arguments arguments;
  bool check = false;
  CLI::App app("The scores of a folded head beside the features of F2.");
  app.add_option("--columns", arguments.columns, "Columns of a row")->capture_default_str();
  app.add_option("--landmarks", arguments.landmarks, "Landmarks")->capture_default_str();
  app.add_option("--classes", arguments.classes, "Classes")->capture_default_str();
  app.add_option("--rows", arguments.rows, "Rows of a call")->delimiter(',')->capture_default_str();
  app.add_option("--rounds", arguments.timing.rounds, "Interleaved rounds")->capture_default_str();
  app.add_option("--limit", arguments.limit, "Largest share of the time")->capture_default_str();
  app.add_flag("--check", check, "Fail above the limit");
  CLI11_PARSE(app, argc, argv);
  std::mt19937_64 random(1);
  const int64_t d = arguments.landmarks;
  const BenchMapping mapping{"F2", arguments.columns, d, d, WKind::kTriangular};
  Plan plan = MakePlan(mapping, MakeNumbers(mapping, random));
  const auto engine = Engine::Load(plan);
  PHIMAP_CHECK(engine.ok());
  const auto program =
      HeadProgram::Folded(std::move(plan), RandomHead(d, arguments.classes, random));
  PHIMAP_CHECK(program.ok());
  absl::PrintF("engine on %s, one thread: F2, d = %d, %d columns, %d classes\n", EngineTargetName(),
               d, arguments.columns, arguments.classes);
  bool met = true;
  for (const int64_t rows : arguments.rows) {
    met = Measure(arguments, **engine, *program, rows) <= arguments.limit && met;
  }
  return check && !met ? 1 : 0;
}

}  // namespace
}  // namespace phimap::bench

int main(int argc, char** argv) { return phimap::bench::Run(argc, argv); }
