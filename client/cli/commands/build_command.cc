// `phimap build`.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/arguments/flags.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "core/status/command_line.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

struct BuildArguments {
  std::string name;
  // The rows. With --dry-run, 0 columns means the number of columns of the input.
  InputArguments input;
  std::string spec;
  std::string kernel;
  bool standardize = false;
  // The seed as text, because the library's conversion to a number would wrap a negative number.
  std::string seed = "0";
  // Time for which the version lives after its last use, such as "7d"; empty: for ever.
  std::string ttl;
  bool json = false;
  // Whether to estimate the cost only.
  bool dry_run = false;
  LocalOutput output;
  // Number of rows for a dry run; 0 means the rows of the input.
  int64_t rows = 0;
};

absl::Status CheckBuildArguments(const BuildArguments& arguments) {
  if (arguments.rows != 0) {
    return absl::InvalidArgumentError("--rows is for --dry-run only; a build counts its rows");
  }
  return absl::OkStatus();
}

// Counts the rows by reading the source to its end.
absl::StatusOr<int64_t> CountRows(client::RowSource& source) {
  int64_t rows = 0;
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const client::ExampleBlock block, source.Next({}));
    if (block.empty()) return rows;
    rows += block.rows();
  }
}

struct InputShape {
  int64_t rows = 0;
  int32_t columns = 0;
};

// Returns the shape that the options state; reads the input for the numbers that they do not state.
absl::StatusOr<InputShape> ShapeOf(const BuildArguments& arguments, client::CancelToken& cancel) {
  InputShape shape{arguments.rows};
  InputArguments named = arguments.input;
  // If --columns is a number, it is the number of columns, whatever the format.
  int64_t number = 0;
  if (named.columns_given.size() == 1 && absl::SimpleAtoi(named.columns_given[0], &number)) {
    PHIMAP_ASSIGN_OR_RETURN(shape.columns, CountOfColumns(named.columns_given));
    named.columns_given.clear();
  }
  if (shape.rows != 0 && shape.columns != 0) return shape;
  if (arguments.input.paths.empty() && arguments.input.more_paths.empty()) {
    return absl::InvalidArgumentError("--dry-run needs --input, or --rows and --columns instead");
  }
  PHIMAP_ASSIGN_OR_RETURN(const InputArguments input, WithFiles(std::move(named)));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::RowSource> source, OpenRows(input, cancel));
  if (shape.columns == 0) shape.columns = source->columns();
  if (shape.rows != 0) return shape;
  if (source->row_count().has_value()) {
    shape.rows = *source->row_count();
  } else {
    const auto registration = cancel.OnCancel([&source] { source->Interrupt(); });
    PHIMAP_ASSIGN_OR_RETURN(shape.rows, CountRows(*source));
  }
  return shape;
}

absl::Status RunDryRun(const BuildArguments& arguments, const client::BuildOptions& options,
                       RowContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const InputShape shape, ShapeOf(arguments, context.cancel));
  PHIMAP_ASSIGN_OR_RETURN(const v1::EstimateBuildResponse estimate,
                          context.maps.EstimateBuild(options, shape.rows, shape.columns));
  if (arguments.json) return PrintJson(estimate, context.out);
  context.out << RenderEstimate(shape.rows, shape.columns, estimate, context.console.width);
  return absl::OkStatus();
}

// Streams the rows of the input into a build and prints the version with its certificate; a dry run
// prints an estimate and builds nothing.
absl::Status RunBuild(const BuildArguments& arguments, RowContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const uint64_t seed, SeedOf(arguments.seed));
  absl::Duration ttl = absl::InfiniteDuration();
  if (!arguments.ttl.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(ttl, DurationOf(arguments.ttl, "--ttl"));
  }
  const client::BuildOptions options{.name = arguments.name,
                                     .spec = arguments.spec,
                                     .kernel = arguments.kernel,
                                     .standardize = arguments.standardize,
                                     .seed = seed,
                                     .ttl = ttl};
  if (arguments.dry_run) return RunDryRun(arguments, options, context);
  PHIMAP_RETURN_IF_ERROR(CheckLocalOutput(arguments.output, !arguments.name.empty()));
  PHIMAP_ASSIGN_OR_RETURN(const InputArguments input, WithFiles(arguments.input));
  PHIMAP_RETURN_IF_ERROR(CheckBuildArguments(arguments));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::RowSource> rows,
                          OpenRows(input, context.cancel));
  absl::StatusOr<v1::Version> version;
  {
    ProgressBar bar(context.console);
    const auto show = [&](const client::BuildProgress& progress) {
      ProgressState state =
          StateOf(progress, arguments.output.local ? arguments.output.path : arguments.name,
                  rows->row_count());
      state.share_read = rows->share_read();
      bar.Update(std::move(state));
    };
    version = context.maps.Build(options, *rows, show, &context.cancel);
  }
  PHIMAP_RETURN_IF_ERROR(version.status());
  if (context.local != nullptr) {
    PHIMAP_RETURN_IF_ERROR(context.local->Save(arguments.output.path, *version));
  }
  if (arguments.json) return PrintJson(*version, context.out);
  context.out << RenderVersion(*version, context.console.width, context.color);
  return absl::OkStatus();
}

}  // namespace

Command AddBuild(CLI::App& app) {
  auto arguments = std::make_shared<BuildArguments>();
  BuildArguments& build = *arguments;
  CLI::App* command = app.add_subcommand("build", "Build a version from rows without labels");
  command->add_option("NAME", build.name, "Name of the mapping; none with --local");
  AddInput(*command, build.input, kLabelHelp);
  command
      ->add_option("--spec", build.spec,
                   "What to build, as FAMILY(PARAMETER=VALUE, ...); 'phimap capabilities families' "
                   "lists families and parameters")
      ->required();
  command->add_option(
      "--kernel", build.kernel,
      "Kernel, as NAME(PARAMETER=VALUE, ...), or sums, products and multiples of "
      "such; 'phimap capabilities kernels' lists them; families with a default kernel "
      "need none");
  command->add_flag("--standardize", build.standardize,
                    "Shift each column to mean 0 and scale it to variance 1");
  command->add_option("--seed", build.seed, "Random seed, 0 to 2^64 - 1 (default: 0)");
  command->add_option("--ttl", build.ttl, kTtlHelp);
  AddLocalOutput(*command, build.output);
  command->add_flag("--json", build.json, "Print the version, or the estimate, as JSON");
  command->add_flag("--dry-run", build.dry_run,
                    "Build nothing; estimate memory, size, flops and seconds");
  command
      ->add_option("--rows", build.rows,
                   "With --dry-run: number of rows, instead of counting those of the input")
      ->check(IntegerFrom(1, 1'000'000'000'000));
  command
      ->add_option("--columns", build.input.columns_given,
                   "Input columns by name, in this order, for a CSV file: x1,x2; or the number of "
                   "columns, for an svmlight file (default: its largest index) or with --dry-run "
                   "(default: the input's)")
      ->delimiter(',')
      ->allow_extra_args(false);
  return {.app = command,
          .run_on_rows = [arguments](RowContext& context) { return RunBuild(*arguments, context); },
          .is_local = [arguments] { return arguments->output.local; },
          .json = &build.json,
          .interruptible = true};
}

}  // namespace phimap::cli
