// Runs experiments of the papers and writes their results. `lab/run` calls this program, draws the
// figures, and writes docs/lab.md.
//
// Exits with 0 if every verdict came out as expected, with 1 if a verdict did not, and after an
// error with the same codes as the command `phimap`.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/status/exit_code.h"
#include "core/status/status_macros.h"
#include "lab/experiments/experiments.h"

namespace phimap::lab {
namespace {

struct Arguments {
  Options options;
  std::string out = "build/lab_results";
  std::vector<std::string> names;
  bool list = false;
};

// Returns the report's table about the experiment itself.
Table About(const Experiment& experiment, const Options& options, absl::Duration took) {
  Table about("about", {"key", "value"}, "");
  about.Add({"name", experiment.name});
  about.Add({"paper", experiment.paper});
  about.Add({"item", experiment.item});
  about.Add({"title", experiment.title});
  about.Add({"claim", experiment.claim});
  about.Add({"protocol", experiment.protocol});
  about.Add({"run", options.quick ? "quick" : "full"});
  about.Add({"seed", options.seed});
  about.Add({"seconds", absl::StrFormat("%.0f", absl::ToDoubleSeconds(took))});
  return about;
}

// Runs one experiment. Returns true if all of its verdicts came out as expected.
absl::StatusOr<bool> Run(const Experiment& experiment, const Arguments& arguments) {
  const std::string folder = absl::StrCat(arguments.out, "/", experiment.name);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::UnavailableError(absl::StrCat(folder, ": ", error.message()));
  std::cout << absl::StreamFormat("%-24s %s, %s\n", experiment.name, experiment.paper,
                                  experiment.item)
            << std::flush;
  Results results;
  const absl::Time start = absl::Now();
  PHIMAP_RETURN_IF_ERROR(experiment.run(arguments.options, results));
  const absl::Duration took = absl::Now() - start;
  PHIMAP_RETURN_IF_ERROR(results.Write(folder));
  if (arguments.options.cells.empty()) {
    std::ofstream about(folder + "/about.csv", std::ios::binary);
    about << About(experiment, arguments.options, took).ToCsv();
    about.close();
    if (!about) return absl::UnavailableError(folder + "/about.csv cannot be written");
  }

  bool expected = true;
  for (const Verdict& verdict : results.verdicts()) {
    expected = expected && verdict.is_expected();
    std::cout << absl::StreamFormat(
        "  %s %s%s: measured %s (%s)%s\n", verdict.agrees ? "agrees   " : "disagrees",
        verdict.claim,
        verdict.printed.empty() ? "" : absl::StrCat(" [printed ", verdict.printed, "]"),
        verdict.measured, verdict.rule, verdict.is_expected() ? "" : "   NOT AS EXPECTED");
  }
  std::cout << absl::StreamFormat("  %.1f s\n", absl::ToDoubleSeconds(took)) << std::flush;
  return expected;
}

absl::StatusOr<bool> RunAll(const Arguments& arguments) {
  std::vector<Experiment> chosen;
  const std::vector<Experiment> all = AllExperiments();
  for (const std::string& name : arguments.names) {
    const size_t before = chosen.size();
    for (const Experiment& experiment : all) {
      if (name == experiment.name) chosen.push_back(experiment);
    }
    if (chosen.size() == before) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no experiment '", name, "'; --list prints all names"));
    }
  }
  bool expected = true;
  for (const Experiment& experiment : arguments.names.empty() ? all : chosen) {
    PHIMAP_ASSIGN_OR_RETURN(const bool as_expected, Run(experiment, arguments));
    expected = expected && as_expected;
  }
  return expected;
}

int Main(int argc, char** argv) {
  CLI::App app("Repeats the experiments of the papers by phimap's core.");
  Arguments arguments;
  app.add_option("NAME", arguments.names, "Experiments; all if none is named");
  app.add_flag("--quick", arguments.options.quick, "Fewer repetitions");
  app.add_flag("--list", arguments.list, "Print the names and end");
  app.add_option("--seed", arguments.options.seed, "Random seed")->capture_default_str();
  app.add_option("--cells", arguments.options.cells,
                 "`verdicts` judges the cells.csv of an earlier run anew, and keeps its about.csv");
  app.add_option("--data", arguments.options.data_dir, "Folder of the data")->capture_default_str();
  app.add_option("--out", arguments.out, "Folder of the results")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (arguments.list) {
    for (const Experiment& experiment : AllExperiments()) std::cout << experiment.name << '\n';
    return 0;
  }
  const absl::StatusOr<bool> expected = RunAll(arguments);
  if (!expected.ok()) {
    std::cerr << "phimap_lab: " << expected.status().message() << '\n';
    return static_cast<int>(ExitCodeOf(expected.status()));
  }
  return *expected ? 0 : 1;
}

}  // namespace
}  // namespace phimap::lab

int main(int argc, char** argv) { return phimap::lab::Main(argc, argv); }
