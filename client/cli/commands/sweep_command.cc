// `phimap sweep`.
#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cli/arguments/flags.h"
#include "client/cli/arguments/input_rows.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/sweep_points.h"
#include "client/cli/views/text.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

struct SweepArguments {
  InputArguments input;
  // Lists, separated by commas.
  std::string specs;
  std::string landmarks;
  std::string dimensions;
  std::string policies;
  std::string seeds = "0";
  // Texts of kernels; empty for the families' defaults.
  std::vector<std::string> kernels;
  // Text of the learner; empty means the server's default.
  std::string learner;
  bool standardize = false;
  // Path of the file of JSON lines.
  std::string output;
};

constexpr int kTimedCalls = 5;

absl::StatusOr<std::vector<int64_t>> SeedsOf(const std::string& text) {
  std::vector<int64_t> seeds;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    int64_t seed = 0;
    if (!absl::SimpleAtoi(part, &seed) || seed < 0 || seed > int64_t{1} << 53) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--seed: expected integers from 0 to 2^53, such as 0,1,2; got '", part, "'"));
    }
    seeds.push_back(seed);
  }
  return seeds;
}

// Returns the text of the learner. Each point records it, even if the command uses the server's
// default.
absl::StatusOr<std::string> LearnerOf(const SweepArguments& arguments,
                                      const v1::ListCapabilitiesResponse& all) {
  if (!arguments.learner.empty()) return arguments.learner;
  for (const v1::Capability& learner : all.learners()) {
    if (learner.is_default()) return absl::StrCat(learner.name(), "()");
  }
  return absl::InvalidArgumentError("--learner: the server has no default; name one");
}

absl::StatusOr<std::vector<SweepKey>> KeysOf(const SweepArguments& arguments,
                                             const v1::ListCapabilitiesResponse& all,
                                             const std::string& data) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<std::string> specs,
                          SweepSpecs(arguments.specs,
                                     {{"landmarks", arguments.landmarks},
                                      {"dimensions", arguments.dimensions},
                                      {"policy", arguments.policies}},
                                     all.families()));
  PHIMAP_ASSIGN_OR_RETURN(const std::string learner, LearnerOf(arguments, all));
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<int64_t> seeds, SeedsOf(arguments.seeds));
  std::vector<std::string> kernels = arguments.kernels;
  if (kernels.empty()) kernels.emplace_back();
  std::vector<SweepKey> keys;
  for (const std::string& spec : specs) {
    for (const std::string& kernel : kernels) {
      for (const int64_t seed : seeds) {
        keys.push_back({spec, kernel, seed, learner, data, arguments.standardize});
      }
    }
  }
  return keys;
}

// A name that is unique to this sweep.
std::string TemporaryName() {
  std::random_device random;
  return absl::StrFormat("sweep-%08x%08x%08x%08x", random(), random(), random(), random());
}

// Deletes the mapping of a point after its measurement, even if the measurement failed.
class TemporaryMapping {
 public:
  explicit TemporaryMapping(client::Client& client) : client_(client), name_(TemporaryName()) {}
  ~TemporaryMapping() { client_.DeleteMapping(name_).IgnoreError(); }
  const std::string& name() const { return name_; }

 private:
  client::Client& client_;
  const std::string name_;
};

absl::StatusOr<double> MicrosecondsPerRow(const std::string& reference,
                                          const client::ExampleBlock& rows,
                                          client::Client& client) {
  absl::Duration fastest = absl::InfiniteDuration();
  for (int call = 0; call < kTimedCalls; ++call) {
    const absl::Time start = absl::Now();
    PHIMAP_RETURN_IF_ERROR(client.Transform(reference, rows).status());
    fastest = std::min(fastest, absl::Now() - start);
  }
  return absl::ToDoubleMicroseconds(fastest) / rows.rows();
}

SweepPoint PointOf(const SweepKey& key, const v1::Version& version,
                   const v1::Evaluation& evaluation, double microseconds) {
  const v1::Certificate& certificate = version.certificate();
  const std::string& text = version.spec_text();
  SweepPoint point{.key = key, .family = text.substr(0, text.find('('))};
  if (certificate.landmarks() > 0) point.landmarks = certificate.landmarks();
  if (!certificate.policy().empty()) point.policy = certificate.policy();
  point.output_columns = version.output_columns();
  point.error = evaluation.error();
  point.error_standard_error = evaluation.error_standard_error();
  if (evaluation.has_error_low()) point.error_low = evaluation.error_low();
  if (evaluation.has_error_high()) point.error_high = evaluation.error_high();
  if (certificate.has_kernel_error()) point.kernel_error_mean = certificate.kernel_error().mean();
  point.microseconds_per_row = microseconds;
  point.rows = evaluation.rows();
  point.tested_rows = evaluation.tested_rows();
  point.digest = version.ref().digest();
  return point;
}

client::BuildOptions OptionsOf(const SweepKey& key, const std::string& name) {
  return {.name = name,
          .spec = key.spec,
          .kernel = key.kernel,
          .standardize = key.standardize,
          .seed = static_cast<uint64_t>(key.seed)};
}

// Asks the server whether it would build each spec with its kernel, so that one that it refuses
// ends the sweep before the first build. The error names the spec.
absl::Status CheckSpecs(const std::vector<SweepKey>& keys, const SweepData& data,
                        client::Client& client) {
  absl::flat_hash_set<std::pair<std::string, std::string>> asked;
  for (const SweepKey& key : keys) {
    if (!asked.emplace(key.spec, key.kernel).second) continue;
    const absl::Status status =
        client.EstimateBuild(OptionsOf(key, "sweep"), data.rows, data.columns).status();
    const std::optional<ErrorDetail> detail = DetailOf(status);
    if (!detail.has_value()) {
      PHIMAP_RETURN_IF_ERROR(status);
      continue;
    }
    const std::string kernel = key.kernel.empty() ? "" : absl::StrCat(" of ", key.kernel);
    return MakeError(status.code(), detail->reason, "spec",
                     absl::StrCat(key.spec, kernel, ": ", status.message()), detail->metadata,
                     detail->retry_delay_ms);
  }
  return absl::OkStatus();
}

// Builds, evaluates and times a mapping. `bar` shows the progress.
absl::StatusOr<SweepPoint> Measure(const SweepKey& key, const InputArguments& input,
                                   const SweepData& data, ProgressBar& bar, ProgressState state,
                                   CommandContext& context) {
  const TemporaryMapping mapping(context.client);
  const client::BuildOptions options = OptionsOf(key, mapping.name());
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::RowSource> rows,
                          OpenRows(input, context.cancel));
  const auto show_build = [&](const client::BuildProgress& progress) {
    state.rows = progress.rows_sent;
    bar.Update(state);
  };
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version,
                          context.client.Build(options, *rows, show_build, &context.cancel));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::LabeledRowSource> labeled,
                          OpenLabeledRows(input, context.cancel));
  const auto show_evaluation = [&](const client::EvaluateProgress& progress) {
    state.rows = progress.rows_sent;
    bar.Update(state);
  };
  const std::string reference = absl::StrCat(mapping.name(), "@", version.ref().number());
  PHIMAP_ASSIGN_OR_RETURN(
      const v1::Evaluation evaluation,
      context.client.Evaluate(
          {.reference = reference, .learner = key.learner, .seed = static_cast<uint64_t>(key.seed)},
          *labeled, show_evaluation, &context.cancel));
  PHIMAP_ASSIGN_OR_RETURN(const double microseconds,
                          MicrosecondsPerRow(reference, data.timed, context.client));
  return PointOf(key, version, evaluation, microseconds);
}

// Returns between which numbers the accuracy on rows to come lies; "-" if it is not known.
std::string AccuracyInterval(const SweepPoint& point) {
  if (!point.error_low.has_value() || !point.error_high.has_value()) return "-";
  return absl::StrFormat("%.2f to %.2f %%", 100 * (1 - *point.error_high),
                         100 * (1 - *point.error_low));
}

void PrintPoints(const std::vector<SweepPoint>& points, std::ostream& out) {
  size_t width = 4;
  for (const SweepPoint& point : points) width = std::max(width, point.key.spec.size());
  out << absl::StrFormat("%-*s  %8s  %8s  %10s  %18s  %8s  %s\n", width, "SPEC", "SEED", "FEATURES",
                         "ACCURACY", "CONFIDENCE 95 %", "US A ROW", "KERNEL");
  for (const SweepPoint& point : points) {
    out << absl::StrFormat("%-*s  %8d  %8d  %8.2f %%  %18s  %8.2f  %s\n", width, point.key.spec,
                           point.key.seed, point.output_columns, 100 * (1 - point.error),
                           AccuracyInterval(point), point.microseconds_per_row, point.key.kernel);
  }
}

absl::StatusOr<SweepData> ReadData(const InputArguments& input, client::CancelToken& cancel) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::LabeledRowSource> rows,
                          OpenLabeledRows(input, cancel));
  if (!rows->CanRewind()) {
    return absl::InvalidArgumentError(
        "--input: a sweep reads its rows again for each point, so it needs files, not a pipe");
  }
  const auto registration = cancel.OnCancel([&rows] { rows->Interrupt(); });
  return ReadSweepData(*rows);
}

// Builds each spec from the rows, and measures the error of a learner on its features, its
// kernel error, and the time of Transform. Each such point is appended to the output as a line once
// it is complete, so that it survives a crash. Points that already have a line are skipped.
// Versions are deleted after they are measured. Prints a table.
absl::Status RunSweep(const SweepArguments& arguments, CommandContext& context) {
  PHIMAP_ASSIGN_OR_RETURN(const InputArguments input, WithFiles(arguments.input));
  PHIMAP_RETURN_IF_ERROR(RefuseOverwritingInput(input, arguments.output));
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<SweepPoint> before, ReadSweep(arguments.output));
  PHIMAP_RETURN_IF_ERROR(CheckSweepIsWritable(arguments.output));
  PHIMAP_ASSIGN_OR_RETURN(const SweepData data, ReadData(input, context.cancel));
  PHIMAP_ASSIGN_OR_RETURN(const v1::ListCapabilitiesResponse all,
                          context.client.ListCapabilities());
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<SweepKey> keys, KeysOf(arguments, all, data.digest));
  PHIMAP_RETURN_IF_ERROR(CheckSpecs(keys, data, context.client));
  std::vector<SweepPoint> points;
  int64_t known = 0;
  ProgressBar bar(context.console);
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = std::find_if(before.begin(), before.end(),
                                    [&](const SweepPoint& p) { return p.key == keys[i]; });
    if (found != before.end()) {
      points.push_back(*found);
      ++known;
      continue;
    }
    const ProgressState state{
        .label = absl::StrCat("point ", i + 1, " of ", keys.size()),
        .phase = keys[i].spec,
        .fraction = static_cast<double>(i) / static_cast<double>(keys.size())};
    bar.Update(state);
    PHIMAP_ASSIGN_OR_RETURN(SweepPoint point, Measure(keys[i], input, data, bar, state, context));
    PHIMAP_RETURN_IF_ERROR(AppendToSweep(arguments.output, point));
    points.push_back(std::move(point));
  }
  bar.Clear();
  PrintPoints(points, context.out);
  *context.console.stream << LongCountOf(static_cast<int64_t>(points.size()), "point") << " in "
                          << arguments.output << ", " << WithThousands(known)
                          << " of them from earlier runs" << std::endl;
  return absl::OkStatus();
}

}  // namespace

Command AddSweep(CLI::App& app) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command = app.add_subcommand("sweep",
                                         "Measure error, accuracy and microseconds per row of "
                                         "several specs; a stopped sweep can be continued");
  command
      ->add_option(
          "--spec", arguments->specs,
          "Families, separated by commas, each combined with every value of those of the "
          "following parameters that it has; a spec with parameters, as "
          "FAMILY(PARAMETER=VALUE), is used as it is. 'phimap capabilities families' lists "
          "families")
      ->required();
  command->add_option("--landmarks", arguments->landmarks,
                      "Numbers of landmarks, such as 100,300,1000");
  command->add_option("--dimensions", arguments->dimensions,
                      "Numbers of dimensions, such as 100,300");
  command->add_option("--policy", arguments->policies, "Landmark policies, separated by commas");
  command
      ->add_option("--kernel", arguments->kernels,
                   "Kernel, as in phimap build; may be repeated to combine each spec with several "
                   "kernels")
      ->allow_extra_args(false);
  command
      ->add_option("--seed", arguments->seeds,
                   "Random seeds of the build and the split, such as 0,1,2")
      ->capture_default_str();
  command->add_option("--learner", arguments->learner, "Learner, as for phimap evaluate");
  command->add_flag("--standardize", arguments->standardize,
                    "Shift each column to mean 0 and scale it to variance 1");
  command
      ->add_option("-o,--output", arguments->output,
                   "File of JSON lines, one per measured point; points that it already has are not "
                   "measured again")
      ->required();
  AddInput(*command, arguments->input, "Column of the labels of a CSV file");
  return {.app = command,
          .run = [arguments](CommandContext& context) { return RunSweep(*arguments, context); },
          .interruptible = true};
}

}  // namespace phimap::cli
