// Shows phimap's purpose on real data: compares a linear SVM on the features of three mappings with
// a linear SVM on the raw rows. Builds F1, F2 and F3 of letter.csv without its labels, shows their
// certificates, maps all rows, and prints a table. Then trains and tunes versions that predict, and
// prints another.
//
// Exits with 0 if F2 beats the raw rows by 18 points, with 1 if not, and after an error with the
// same codes as the command `phimap`.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/interrupt.h"
#include "client/cli/views/console.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "client/cpp/client.h"
#include "core/status/exit_code.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "lab/letter/letter_data.h"
#include "lab/letter/linear_svm.h"

namespace phimap::lab {
namespace {

constexpr double kRequiredLead = 0.18;
constexpr int kWarmUpCalls = 200;
constexpr int kTimedCalls = 2000;
constexpr absl::Duration kTuningBudget = absl::Minutes(1);

struct Arguments {
  std::string server = "127.0.0.1:7450";
  std::string data = "lab/data/letter.csv";
  std::string kernel = "rbf(gamma=scale)";
  int seeds = 3;
  int threads = 0;
};

// A line of the table.
struct Contender {
  std::string title;
  std::string name;
  // Empty for the raw rows.
  std::string mapping;
  // One accuracy per seed.
  std::vector<double> accuracies = {};
  double p50_us = 0;
};

std::vector<Contender> Contenders() {
  return {{"raw rows, standardised", "", ""},
          {"F1, 500 landmarks", "letter-f1", "f1(landmarks=500)"},
          {"F2, 500 landmarks", "letter-f2", "f2(landmarks=500)"},
          {"F3, 1000 landmarks to 500", "letter-f3", "f3(landmarks=1000, dimensions=500)"}};
}
constexpr int kRaw = 0;
constexpr int kF2 = 2;

// A line of the table of answers.
struct Answerer {
  std::string title;
  v1::Version version = {};
  double p50_us = 0;
};

// Rows in memory, with the names of their classes.
class LabeledMemoryRows final : public client::LabeledRowSource {
 public:
  explicit LabeledMemoryRows(const LabeledRows& data) : data_(data), rows_(data.rows) {}

  int32_t columns() const override { return rows_.columns(); }
  absl::StatusOr<client::ExampleBlock> Next(const client::BlockLimits& limits) override {
    PHIMAP_ASSIGN_OR_RETURN(client::ExampleBlock block, rows_.Next(limits));
    next_ += block.rows();
    return block;
  }
  std::vector<std::string> TakeLabels() override {
    std::vector<std::string> labels;
    for (; taken_ < next_; ++taken_) {
      labels.push_back(data_.class_names[data_.classes[taken_]]);
    }
    return labels;
  }
  std::optional<int64_t> row_count() const override { return rows_.row_count(); }
  bool CanRewind() const override { return true; }
  absl::Status Rewind() override {
    next_ = taken_ = 0;
    return rows_.Rewind();
  }

 private:
  const LabeledRows& data_;
  client::MemoryRowSource rows_;
  int32_t next_ = 0;
  int32_t taken_ = 0;
};

// One SVM to train. Training is the last step of the demo.
struct Training {
  int contender = 0;
  uint64_t seed = 0;
  client::RowBlock features = {};
  double accuracy = 0;
};

class Demo {
 public:
  Demo(const Arguments& arguments, client::Client& client, client::CancelToken& cancel)
      : arguments_(arguments), client_(client), cancel_(cancel) {}

  // Runs everything. Returns true if F2's lead is large enough.
  absl::StatusOr<bool> Run();

 private:
  absl::Status BuildAndMap(int contender, uint64_t seed);
  absl::StatusOr<v1::Version> Build(const Contender& contender, uint64_t seed);
  absl::StatusOr<client::RowBlock> MapAll(const std::string& reference);
  // Returns the median time of a call with one row, in microseconds.
  absl::StatusOr<double> TimeOneRow(
      absl::FunctionRef<absl::Status(client::RowBlock)> make_call) const;
  absl::Status Answer(const std::string& title, const client::TrainOptions& options);
  void PrintAnswers() const;
  absl::Status TrainAll();
  bool PrintTable() const;

  const Arguments& arguments_;
  client::Client& client_;
  client::CancelToken& cancel_;
  const cli::Console console_ = cli::StandardErrorConsole();
  LabeledRows data_;
  std::vector<Contender> contenders_ = Contenders();
  std::vector<Training> trainings_;
  std::vector<Answerer> answerers_;
};

absl::StatusOr<bool> Demo::Run() {
  PHIMAP_ASSIGN_OR_RETURN(data_, LoadLabeledRows(arguments_.data, "label"));
  if (data_.rows.empty()) return absl::InvalidArgumentError("the data has no rows");
  std::cout << absl::StreamFormat("%s: %s rows of %d columns\n\n", arguments_.data,
                                  WithThousands(data_.rows.rows), data_.rows.columns)
            << std::flush;
  for (uint64_t seed = 1; static_cast<int64_t>(seed) <= arguments_.seeds; ++seed) {
    for (int i = 0; i < std::ssize(contenders_); ++i) {
      if (i == kRaw) {
        trainings_.push_back({.contender = i, .seed = seed, .features = Standardized(data_.rows)});
      } else {
        PHIMAP_RETURN_IF_ERROR(BuildAndMap(i, seed));
      }
    }
  }
  PHIMAP_RETURN_IF_ERROR(TrainAll());
  const bool enough = PrintTable();
  std::cout << absl::StreamFormat("\ntraining versions that predict, tuning one for %s ...\n",
                                  absl::FormatDuration(kTuningBudget))
            << std::flush;
  PHIMAP_RETURN_IF_ERROR(Answer("ridge on F2, 500 landmarks", {.reference = "letter-f2@1"}));
  PHIMAP_RETURN_IF_ERROR(Answer(
      "tuned", {.build = client::TrainedFeatures{
                    .name = "letter-tuned", .tuning = client::Tuning{.budget = kTuningBudget}}}));
  PrintAnswers();
  return enough;
}

absl::Status Demo::Answer(const std::string& title, const client::TrainOptions& options) {
  Answerer answerer{.title = title};
  {
    cli::ProgressBar bar(console_);
    LabeledMemoryRows rows(data_);
    const auto show = [&](const client::BuildProgress& progress) {
      bar.Update(cli::StateOf(progress, title, rows.row_count()));
    };
    PHIMAP_ASSIGN_OR_RETURN(answerer.version, client_.Train(options, rows, show, &cancel_));
  }
  const std::string reference = client::ReferenceTo(answerer.version.ref());
  PHIMAP_ASSIGN_OR_RETURN(answerer.p50_us, TimeOneRow([&](client::RowBlock row) {
                            return client_.Predict(reference, std::move(row)).status();
                          }));
  answerers_.push_back(std::move(answerer));
  return absl::OkStatus();
}

void Demo::PrintAnswers() const {
  std::cout << absl::StreamFormat(
      "\nAnswers of versions that predict, on test rows that nothing was fitted to or chosen "
      "by.\n\n"
      "%-28s %10s  %19s  %14s\n",
      "version", "accuracy", "sets of 90 % held", "one row, p50");
  for (const Answerer& answerer : answerers_) {
    const v1::TrainingReport& report = answerer.version.head().report();
    double held = 0;
    for (const auto& coverage : report.coverage()) {
      if (std::abs(coverage.confidence() - 0.9) < 1e-9 && coverage.rows() > 0) {
        held = static_cast<double>(coverage.covered()) / static_cast<double>(coverage.rows());
      }
    }
    std::cout << absl::StreamFormat("%-28s %8.2f %%  %17.1f %%  %11.0f us\n", answerer.title,
                                    100 * (1 - report.classes().error().value()), 100 * held,
                                    answerer.p50_us);
  }
  if (!answerers_.empty()) {
    const v1::Version& last = answerers_.back().version;
    std::cout << "tuned: " << last.spec_text() << ", " << last.kernel_text() << ", "
              << last.head().learner() << "\n"
              << std::flush;
  }
}

absl::Status Demo::BuildAndMap(int contender, uint64_t seed) {
  Contender& mapped = contenders_[contender];
  PHIMAP_ASSIGN_OR_RETURN(const v1::Version version, Build(mapped, seed));
  std::cout << (seed == 1 ? cli::RenderVersion(version, console_.width)
                          : absl::StrCat(cli::RenderVersionLine(version), "\n"))
            << (seed == 1 ? "\n" : "") << std::flush;
  const std::string reference = client::ReferenceTo(version.ref());
  PHIMAP_ASSIGN_OR_RETURN(client::RowBlock features, MapAll(reference));
  if (seed == 1) {
    PHIMAP_ASSIGN_OR_RETURN(mapped.p50_us, TimeOneRow([&](client::RowBlock row) {
                              return client_.Transform(reference, std::move(row)).status();
                            }));
  }
  trainings_.push_back({.contender = contender, .seed = seed, .features = std::move(features)});
  return absl::OkStatus();
}

absl::StatusOr<v1::Version> Demo::Build(const Contender& contender, uint64_t seed) {
  cli::ProgressBar bar(console_);
  client::MemoryRowSource rows(data_.rows);
  const client::BuildOptions options{.name = contender.name,
                                     .spec = contender.mapping,
                                     .kernel = arguments_.kernel,
                                     .standardize = true,
                                     .seed = seed};
  const auto show = [&](const client::BuildProgress& progress) {
    bar.Update(cli::StateOf(progress, contender.name, rows.row_count()));
  };
  absl::StatusOr<v1::Version> version = client_.Build(options, rows, show, &cancel_);
  if (version.ok()) bar.Keep();
  return version;
}

absl::StatusOr<client::RowBlock> Demo::MapAll(const std::string& reference) {
  cli::ProgressBar bar(console_);
  client::MemoryRowSource rows(data_.rows);
  client::RowBlock all;
  const auto keep = [&](client::RowBlock features) {
    all.type = features.type;
    all.columns = features.columns;
    all.rows += features.rows;
    all.values_le += features.values_le;
    cli::ProgressState state{.label = reference, .rows = all.rows};
    state.total_rows = rows.row_count();
    bar.Update(std::move(state));
    return absl::OkStatus();
  };
  PHIMAP_RETURN_IF_ERROR(client_.TransformStream(reference, rows, keep, {}, &cancel_).status());
  return all;
}

absl::StatusOr<double> Demo::TimeOneRow(
    absl::FunctionRef<absl::Status(client::RowBlock)> make_call) const {
  std::vector<double> row(data_.rows.columns);
  std::vector<double> times_us;
  for (int call = 0; call < kWarmUpCalls + kTimedCalls; ++call) {
    if (cancel_.cancelled()) return absl::CancelledError("interrupted");
    for (int32_t j = 0; j < data_.rows.columns; ++j) {
      row[j] = data_.rows.At(call % data_.rows.rows, j);
    }
    client::RowBlock block = client::MakeRowBlock(absl::Span<const double>(row), row.size());
    const absl::Time start = absl::Now();
    PHIMAP_RETURN_IF_ERROR(make_call(std::move(block)));
    if (call >= kWarmUpCalls) times_us.push_back(absl::ToDoubleMicroseconds(absl::Now() - start));
  }
  const auto middle = times_us.begin() + times_us.size() / 2;
  std::nth_element(times_us.begin(), middle, times_us.end());
  return *middle;
}

absl::Status Demo::TrainAll() {
  const int threads = arguments_.threads > 0
                          ? arguments_.threads
                          : std::clamp<int>(std::thread::hardware_concurrency(), 1, 4);
  std::cout << absl::StreamFormat("\ntraining %d linear SVMs, %d at a time ...\n",
                                  trainings_.size(), threads)
            << std::flush;
  cli::ProgressBar bar(console_);
  std::atomic<size_t> next = 0;
  std::atomic<size_t> done = 0;
  const auto work = [&] {
    for (size_t i = next++; i < trainings_.size() && !cancel_.cancelled(); i = next++) {
      Training& training = trainings_[i];
      const Split split = SplitRows(training.features.rows, training.seed);
      training.accuracy = TestAccuracy(training.features, data_.classes, data_.class_count, split);
      training.features = {};
      const double fraction = static_cast<double>(++done) / trainings_.size();
      bar.Update({.label = "linear SVMs",
                  .rows = data_.rows.rows,
                  .phase = "training",
                  .fraction = fraction});
    }
  };
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i) pool.emplace_back(work);
  for (std::thread& thread : pool) thread.join();
  if (cancel_.cancelled()) return absl::CancelledError("interrupted");
  for (const Training& training : trainings_) {
    contenders_[training.contender].accuracies.push_back(training.accuracy);
  }
  return absl::OkStatus();
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / values.size();
}

// Returns half the distance between the best and the worst value. With three seeds, a standard
// deviation would say no more.
double Spread(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return (*high - *low) / 2;
}

bool Demo::PrintTable() const {
  const double raw = Mean(contenders_[kRaw].accuracies);
  const double lead = Mean(contenders_[kF2].accuracies) - raw;
  std::cout << absl::StreamFormat(
      "\nAccuracy of a linear SVM (liblinear, C = 1), trained on 70 %% of the rows, on the other "
      "30 %%;\nmean of %d %s, ± half the range. Kernel %s.\n\n",
      arguments_.seeds, arguments_.seeds == 1 ? "seed" : "seeds", arguments_.kernel);
  std::cout << absl::StreamFormat("%-28s %16s  %8s  %14s\n", "features", "accuracy", "lead",
                                  "one row, p50");
  for (const Contender& contender : contenders_) {
    const double mean = Mean(contender.accuracies);
    // "±" has two bytes, so it is not part of a field with a width.
    std::cout << absl::StreamFormat("%-28s %7.2f %% ± %4.2f  ", contender.title, 100 * mean,
                                    100 * Spread(contender.accuracies));
    if (contender.mapping.empty()) {
      std::cout << absl::StreamFormat("%8s  %14s\n", "-", "-");
    } else {
      std::cout << absl::StreamFormat("%+8.2f  %11.0f us\n", 100 * (mean - raw), contender.p50_us);
    }
  }
  const bool enough = lead >= kRequiredLead;
  std::cout << absl::StreamFormat("\nF2 beats the raw rows by %.1f points; %s %.0f.\n", 100 * lead,
                                  enough ? "the claim is at least" : "FAILED: the claim is",
                                  100 * kRequiredLead)
            << std::flush;
  return enough;
}

int Run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Kernel features for a linear SVM, on letter.csv", "letter_demo");
  app.add_option("--server", arguments.server, "HOST:PORT or unix:PATH of a phimapd")
      ->envname("PHIMAP_SERVER")
      ->capture_default_str();
  app.add_option("--data", arguments.data, "The CSV file; its label is the column `label`")
      ->capture_default_str();
  app.add_option("--kernel", arguments.kernel, "The kernel of the mappings")->capture_default_str();
  app.add_option("--seeds", arguments.seeds, "How many seeds to average over; 1 is the quickest")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--threads", arguments.threads,
                 "SVMs trained at a time; 0 is one a core, at most 4")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto run = [&]() -> absl::StatusOr<bool> {
    PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::Client> client,
                            client::Client::Connect(arguments.server, {}));
    client::CancelToken cancel;
    const cli::Interrupt interrupt(cancel);
    return Demo(arguments, *client, cancel).Run();
  };
  const absl::StatusOr<bool> enough = run();
  if (enough.ok()) return *enough ? 0 : static_cast<int>(ExitCode::kFailed);
  std::cerr << cli::ErrorText(enough.status(), arguments.server, "") << std::flush;
  return static_cast<int>(ExitCodeOf(enough.status()));
}

}  // namespace
}  // namespace phimap::lab

int main(int argc, char** argv) { return phimap::lab::Run(argc, argv); }
