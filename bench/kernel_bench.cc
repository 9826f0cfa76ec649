// Measures the cost of composing kernels: F1 of an expression compared with its distinct products
// (x·a, ‖x − a‖₁, x·Aa), each computed alone, on one thread. Fails if an expression takes more than
// --limit times the sum of its products.
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/interleaved.h"
#include "bench/normal_matrix.h"
#include "core/engine/engine.h"
#include "core/status/check.h"

namespace phimap::bench {
namespace {

struct Arguments {
  TimingOptions timing;
  int64_t columns = 1024;
  int64_t landmarks = 1024;
  int64_t rows = 256;
  double limit = 1.2;
};

// An expression, and kernels that compute each of its products alone.
struct Composition {
  std::string kernel;
  std::vector<std::string> products;
};

// {A} is replaced by a bilinear form of the rows' width.
const Composition kCompositions[] = {
    {"rbf(gamma=0.001) + 0.1*poly(degree=2, coef0=1)", {"linear()"}},
    {"normalize(poly(degree=2, coef0=1))*rbf(gamma=0.001)", {"linear()"}},
    {"0.5*cosine() + weight(gaussian=0.001)*exp(0.001*linear())", {"linear()"}},
    {"rbf(gamma=0.001)*laplacian(gamma=0.001) + 0.1*laplacian(gamma=0.01)",
     {"linear()", "laplacian(gamma=1)"}},
    {"normalize(rbf(gamma=0.001) + {A}) + delta() + sigmoid(gamma=0.001)",
     {"linear()", "{A}", "delta()"}},
};

std::string FormOf(int64_t columns) {
  const std::vector<int> ones(columns, 1);
  return absl::StrCat("bilinear(diagonal=[", absl::StrJoin(ones, ","), "])");
}

// Returns the expression with {A} filled in.
std::string Filled(std::string text, int64_t columns) {
  const size_t at = text.find("{A}");
  if (at != std::string::npos) text.replace(at, 3, FormOf(columns));
  return text;
}

// F1 of one kernel, with memory for its features.
class KernelRun {
 public:
  KernelRun(const std::string& text, const Matrix<float>& landmarks, const Matrix<float>& x)
      : features_(x.rows(), landmarks.rows()) {
    const auto kernel = KernelExpression::Parse(text);
    PHIMAP_CHECK(kernel.ok());
    ServingStages<float> stages;
    stages.features = ProductFeatures<float>{landmarks.Clone(), KernelProgram::Compile(*kernel)};
    Plan plan;
    plan.input.columns = landmarks.cols();
    plan.stages = std::move(stages);
    auto engine = Engine::Load(plan);
    PHIMAP_CHECK(engine.ok());
    engine_ = *std::move(engine);
    part_ = {.rows = RowsView{.data = reinterpret_cast<const char*>(x.data()),
                              .type = FloatType::kFloat32,
                              .rows = x.rows(),
                              .columns = x.cols()},
             .features = features_.data(),
             .status = absl::OkStatus()};
  }

  void operator()() {
    engine_->Transform(absl::MakeSpan(&part_, 1), scratch_);
    PHIMAP_CHECK(part_.status.ok());
  }

 private:
  Matrix<float> features_;
  std::unique_ptr<const Engine> engine_;
  TransformPart part_;
  EngineScratch scratch_;
};

// Returns the time of the expression divided by the total time of its products.
double Measure(const Composition& composition, const Arguments& arguments) {
  std::mt19937_64 random(1);
  const Matrix<float> landmarks =
      NormalMatrix<float>(arguments.landmarks, arguments.columns, 1, random);
  const Matrix<float> x = NormalMatrix<float>(arguments.rows, arguments.columns, 1, random);
  std::vector<std::unique_ptr<KernelRun>> runs;
  std::vector<Contender> contenders;
  const auto add = [&](const std::string& kernel) {
    runs.push_back(std::make_unique<KernelRun>(Filled(kernel, arguments.columns), landmarks, x));
    contenders.push_back({kernel, [run = runs.back().get()] { (*run)(); }});
  };
  add(composition.kernel);
  for (const std::string& product : composition.products) add(product);
  TimeInterleaved(arguments.timing, contenders);
  double products_us = 0;
  for (size_t i = 1; i < contenders.size(); ++i) products_us += contenders[i].median_us;
  const double ratio = contenders[0].median_us / products_us;
  std::printf("%11.1f %11.1f %6.2f  %s\n", contenders[0].median_us, products_us, ratio,
              composition.kernel.c_str());
  std::fflush(stdout);
  return ratio;
}

int Run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("F1 of composed kernels beside their distinct products, on one thread.");
  app.add_option("--rounds", arguments.timing.rounds,
                 "Number of interleaved rounds; the medians are over these rounds")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--round_seconds", arguments.timing.round_seconds,
                 "Minimum seconds that each contender runs in a round")
      ->check(CLI::Range(1e-6, 60.0))
      ->capture_default_str();
  app.add_option("--columns", arguments.columns, "Columns per row")
      ->check(CLI::Range(1, 2000))
      ->capture_default_str();
  app.add_option("--d", arguments.landmarks, "Landmarks")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  app.add_option("--rows", arguments.rows, "Rows of a call")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--limit", arguments.limit, "Largest ratio that passes")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::printf("engine on %s; %d columns, %d landmarks, %d rows, float32\n%11s %11s %6s  kernel\n",
              EngineTargetName(), static_cast<int>(arguments.columns),
              static_cast<int>(arguments.landmarks), static_cast<int>(arguments.rows), "kernel us",
              "products us", "ratio");
  bool over = false;
  for (const Composition& composition : kCompositions) {
    over |= Measure(composition, arguments) > arguments.limit;
  }
  return over ? 1 : 0;
}

}  // namespace
}  // namespace phimap::bench

int main(int argc, char** argv) { return phimap::bench::Run(argc, argv); }
