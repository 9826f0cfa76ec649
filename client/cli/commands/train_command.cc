// `phimap train`.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/arguments/flags.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "core/status/command_line.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

struct TrainArguments {
  // A name alone if features are built.
  std::string reference;
  client::TrainedFeatures features;
  // Time for tuning, such as "10m".
  std::string budget = "10m";
  InputArguments input;
  // Text of the learner; empty means the server's default.
  std::string learner;
  // "classes", "numbers" or empty.
  std::string task;
  // Unsigned 64-bit integer as text, because CLI11 takes no integer above 2^63.
  std::string seed = "0";
  // Empty means for ever.
  std::string ttl;
  LocalOutput output;
  bool json = false;
};

client::HeadTask TaskOf(absl::string_view text) {
  if (text == "classes") return client::HeadTask::kClasses;
  return text == "numbers" ? client::HeadTask::kNumbers : client::HeadTask::kUnspecified;
}

bool BuildsFeatures(const TrainArguments& arguments) {
  return arguments.features.tuning.has_value() || !arguments.features.spec.empty();
}

absl::Status CheckTrainArguments(const TrainArguments& arguments) {
  PHIMAP_RETURN_IF_ERROR(CheckLocalOutput(arguments.output, !arguments.reference.empty()));
  if (arguments.output.local && !BuildsFeatures(arguments) &&
      !IsArtifactPath(arguments.reference)) {
    return absl::InvalidArgumentError(
        absl::StrCat("with --local: expected the file of an artifact, such as letters.phimap, "
                     "whose features get "
                     "the head, or --spec, got ",
                     arguments.reference.empty() ? "neither" : arguments.reference));
  }
  const client::TrainedFeatures& features = arguments.features;
  if (BuildsFeatures(arguments)) {
    if (absl::StrContains(arguments.reference, '@')) {
      return absl::InvalidArgumentError(
          absl::StrCat("NAME: expected the name of a mapping alone, because its features are built "
                       "here, got ",
                       arguments.reference));
    }
    if (arguments.input.choice.by_name) {
      return absl::InvalidArgumentError(
          "--by-name finds the columns of a version, and here the features are built first");
    }
    return absl::OkStatus();
  }
  for (const auto& [given, flag] : {std::pair(!features.kernel.empty(), "--kernel"),
                                    std::pair(features.standardize, "--standardize"),
                                    std::pair(features.learn_scales, "--learn-scales")}) {
    if (given) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " is for features that are built from these rows; give --spec too"));
    }
  }
  return absl::OkStatus();
}

// Trains a head on labeled rows and prints the version that has it, as text or JSON.
absl::Status RunTrain(const TrainArguments& arguments, RowContext& context) {
  PHIMAP_RETURN_IF_ERROR(CheckTrainArguments(arguments));
  PHIMAP_ASSIGN_OR_RETURN(const uint64_t seed, SeedOf(arguments.seed));
  client::TrainOptions options{.reference = arguments.reference,
                               .learner = arguments.learner,
                               .task = TaskOf(arguments.task),
                               .seed = seed};
  if (!arguments.ttl.empty()) {
    PHIMAP_ASSIGN_OR_RETURN(options.ttl, DurationOf(arguments.ttl, "--ttl"));
  }
  PHIMAP_ASSIGN_OR_RETURN(InputArguments input, WithFiles(arguments.input));
  if (BuildsFeatures(arguments)) {
    options.build = arguments.features;
    options.build->name = std::exchange(options.reference, "");
    if (arguments.features.tuning.has_value()) {
      PHIMAP_ASSIGN_OR_RETURN(options.build->tuning->budget,
                              DurationOf(arguments.budget, "--budget"));
    }
  } else {
    PHIMAP_ASSIGN_OR_RETURN(
        input, WithColumnsOf(input, context.maps, arguments.reference, *context.console.stream));
  }
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::LabeledRowSource> rows,
                          OpenLabeledRows(input, context.cancel));
  NoteColumnsLeftOut(*rows, *context.console.stream);
  absl::StatusOr<v1::Version> version;
  {
    ProgressBar bar(context.console);
    const auto show = [&](const client::BuildProgress& progress) {
      ProgressState state =
          StateOf(progress, arguments.output.local ? arguments.output.path : arguments.reference,
                  rows->row_count());
      state.share_read = rows->share_read();
      bar.Update(std::move(state));
    };
    const bool tunes = options.build.has_value() && options.build->tuning.has_value();
    version = tunes ? context.maps.Tune(options, *rows, show, &context.cancel)
                    : context.maps.Train(options, *rows, show, &context.cancel);
  }
  PHIMAP_RETURN_IF_ERROR(version.status());
  if (context.local != nullptr) {
    PHIMAP_RETURN_IF_ERROR(context.local->Save(arguments.output.path, *version));
  }
  if (arguments.json) return PrintJson(*version, context.out);
  context.out << client::ReferenceTo(version->ref()) << "\n"
              << RenderHead(*version, context.console.width);
  return absl::OkStatus();
}

}  // namespace

namespace {

constexpr char kTrainingLabelHelp[] =
    "Column of the labels of a CSV file: names of classes, or numbers; each line of an svmlight "
    "file begins with its label";

// Adds the flags that train and tune share.
void AddTrainingFlags(CLI::App* command, TrainArguments& train) {
  command->add_option("--columns", train.input.columns_given, kColumnsHelp)
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--weights", train.input.choice.weights,
                      "Column of the CSV file with a weight of each row, over 0; for ridge");
  command->add_option("--groups", train.input.choice.groups,
                      "Column of the CSV file: rows of equal groups, such as one customer's, are "
                      "in one part");
  command->add_option("--parts", train.input.choice.parts,
                      "Column of the CSV file that says what a row is for: train, validate, "
                      "calibrate-link, calibrate-sets, test, or nothing where a hash decides");
  command->add_option("--learner", train.learner,
                      "Learner, as NAME(PARAMETER=VALUE, ...); 'phimap capabilities learners' "
                      "lists them");
  command
      ->add_option("--task", train.task,
                   "classes or numbers: what the labels are (default: told by the labels)")
      ->check(OneOf({"classes", "numbers"}));
  command->add_option("--seed", train.seed,
                      "Random seed of the parts and the learner, 0 to 2^64 - 1 (default: 0)");
  command->add_option("--ttl", train.ttl, kTtlHelp);
  AddLocalOutput(*command, train.output);
  command->add_flag("--json", train.json, "Print the version as JSON");
}

Command Runs(CLI::App* command, const std::shared_ptr<TrainArguments>& arguments) {
  return {.app = command,
          .run_on_rows = [arguments](RowContext& context) { return RunTrain(*arguments, context); },
          .is_local = [arguments] { return arguments->output.local; },
          .json = &arguments->json,
          .interruptible = true};
}

}  // namespace

Command AddTrain(CLI::App& app) {
  auto arguments = std::make_shared<TrainArguments>();
  TrainArguments& train = *arguments;
  CLI::App* command = app.add_subcommand(
      "train", "Train a head on labeled rows: the next version has the same features and predicts");
  command->add_option(
      "NAME[@VERSION]", train.reference,
      "A mapping or a version of it (default: the newest) whose features the head gets; with "
      "--spec, the name of the mapping; with --local, an artifact's file, or none");
  AddInput(*command, train.input, kTrainingLabelHelp);
  command->add_flag("--by-name", train.input.choice.by_name,
                    "Find the version's columns in the CSV file by name, in any order");
  command->add_option("--spec", train.features.spec,
                      "Build the features from those of these rows that are trained on, as "
                      "FAMILY(PARAMETER=VALUE, ...)");
  command->add_option("--kernel", train.features.kernel, "With --spec: the kernel, as of build");
  command->add_flag("--standardize", train.features.standardize,
                    "With --spec: shift each column to mean 0 and scale it to variance 1");
  command->add_flag("--learn-scales", train.features.learn_scales,
                    "With --spec: learn a length scale of each column from the labels");
  AddTrainingFlags(command, train);
  return Runs(command, arguments);
}

Command AddTune(CLI::App& app) {
  auto arguments = std::make_shared<TrainArguments>();
  TrainArguments& tune = *arguments;
  tune.features.tuning.emplace();
  CLI::App* command = app.add_subcommand(
      "tune", "Choose kernel, landmarks and learner by labeled rows, and train the version");
  command->add_option("NAME", tune.reference, "Name of the mapping; none with --local");
  AddInput(*command, tune.input, kTrainingLabelHelp);
  command->add_option("--budget", tune.budget,
                      "Time for trials and the version, such as 10m or 1h (default: 10m)");
  command
      ->add_option("--max-landmarks", tune.features.tuning->max_landmarks,
                   "Try no more landmarks (default: 4096)")
      ->check(IntegerFrom(1, 8192));
  AddTrainingFlags(command, tune);
  return Runs(command, arguments);
}

}  // namespace phimap::cli
