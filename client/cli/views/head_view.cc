#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"

namespace phimap::cli {
namespace {

// Maximum numbers of classes and mistakes that are shown; --json has all.
constexpr int kHeadClasses = 40;
constexpr int kHeadMistakes = 5;

std::string Interval(const v1::TrainingReport::Estimate& estimate, double factor = 1) {
  return absl::StrCat("from ", ShortNumber(factor * estimate.low()), " to ",
                      ShortNumber(factor * estimate.high()));
}

void RenderParts(const v1::TrainingReport::Parts& parts, std::string& out) {
  AddFact(out, "rows", WithThousands(parts.train()),
          absl::StrCat("trained on; ", WithThousands(parts.validate()), " chose, ",
                       WithThousands(parts.calibrate_link()), " + ",
                       WithThousands(parts.calibrate_sets()), " calibrated, ",
                       WithThousands(parts.test()), " tested"));
}

void RenderClassFigures(const v1::Head& head, const v1::TrainingReport& report, std::string& out) {
  const v1::TrainingReport::Classes& classes = report.classes();
  AddFact(out, "error", PercentText(classes.error().value()),
          absl::StrCat(WithThousands(classes.errors()), " of ", WithThousands(classes.rows()),
                       " test rows; ", Interval(classes.error(), 100), " % of rows to come"));
  AddFact(out, "balanced", PercentText(1 - classes.balanced_accuracy()),
          "mean over classes of the share of their rows that were missed");
  if (classes.has_auc()) {
    AddFact(out, "AUC", ShortNumber(classes.auc()),
            absl::StrCat("how often a row of ", head.class_names(1), " scores over one of ",
                         head.class_names(0)));
  }
  if (classes.has_log_loss()) {
    AddFact(out, "log loss", ShortNumber(classes.log_loss()),
            absl::StrCat("Brier ", ShortNumber(classes.brier()), "; probabilities are off by ",
                         ShortNumber(classes.calibration_error()), " on average"));
  }
}

void RenderNumberFigures(const v1::TrainingReport::Numbers& numbers, std::string& out) {
  AddFact(out, "RMSE", ShortNumber(numbers.rmse().value()),
          absl::StrCat("on ", WithThousands(numbers.rows()), " test rows; ",
                       Interval(numbers.rmse()), " on rows to come"));
  AddFact(out, "MAE", ShortNumber(numbers.mae().value()), Interval(numbers.mae()));
  if (numbers.has_r_squared()) {
    AddFact(out, "R²", ShortNumber(numbers.r_squared().value()), Interval(numbers.r_squared()));
  }
  if (numbers.has_standardised_error()) {
    AddFact(out, "deviations", ShortNumber(numbers.standardised_error()),
            "root mean square of error/deviation; 1 is right");
  }
}

void RenderClassTable(const v1::Head& head, const v1::TrainingReport::Classes& classes,
                      std::string& out) {
  absl::StrAppendFormat(&out, "%-27s %8s %10s %10s\n", "class", "tested", "recall", "precision");
  const auto share = [](int64_t part, int64_t all) {
    return all == 0 ? std::string("-") : PercentText(static_cast<double>(part) / all);
  };
  const int shown = std::min(classes.classes_size(), kHeadClasses);
  for (int i = 0; i < shown; ++i) {
    const auto& one = classes.classes(i);
    absl::StrAppendFormat(&out, "  %-25s %8s %10s %10s\n", PrintableLabel(head.class_names(i)),
                          WithThousands(one.rows()), share(one.correct(), one.rows()),
                          share(one.correct(), one.predicted()));
  }
  if (shown < classes.classes_size()) {
    absl::StrAppend(&out, "  and ", classes.classes_size() - shown, " more; --json has all\n");
  }
  std::vector<v1::TrainingReport::Classes::Confusion> mistakes;
  for (const auto& pair : classes.confusion()) {
    if (pair.actual() != pair.predicted()) mistakes.push_back(pair);
  }
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const auto& a, const auto& b) { return a.count() > b.count(); });
  if (std::ssize(mistakes) > kHeadMistakes) mistakes.resize(kHeadMistakes);
  for (const auto& mistake : mistakes) {
    absl::StrAppend(&out, "  ", WithThousands(mistake.count()), " of ",
                    PrintableLabel(head.class_names(mistake.actual())), " were called ",
                    PrintableLabel(head.class_names(mistake.predicted())), "\n");
  }
}

}  // namespace

namespace {

// The curve of error over time: the versions that were tried, and the best of the kernels.
void RenderTrials(const v1::TrainingReport& report, std::string& out) {
  const v1::TrainingReport::Trial* kernel = nullptr;
  int kernels = 0;
  for (const auto& trial : report.trials()) {
    if (trial.has_error()) continue;
    ++kernels;
    if (kernel == nullptr || trial.loss() < kernel->loss()) kernel = &trial;
  }
  absl::StrAppend(&out, "tried ", kernels, " kernels");
  if (kernel != nullptr) {
    absl::StrAppend(&out, "; the best, ", kernel->kernel(),
                    kernel->standardize() ? " of standardised columns" : "");
  }
  absl::StrAppendFormat(&out, "\n%12s %8s %8s  %s\n", "us per row",
                        report.has_classes() ? "error" : "RMSE", "loss",
                        "version and learner; the least loss is chosen");
  for (const auto& trial : report.trials()) {
    if (!trial.has_error()) continue;
    absl::StrAppendFormat(
        &out, "%12s %8s %8s  %s, %s\n", ShortNumber(trial.microseconds()),
        report.has_classes() ? PercentText(trial.error()) : ShortNumber(trial.error()),
        trial.has_loss() ? ShortNumber(trial.loss()) : "-", trial.spec(), trial.learner());
  }
}

}  // namespace

std::string RenderHead(const v1::Version& version, int width) {
  const v1::Head& head = version.head();
  const v1::TrainingReport& report = head.report();
  std::string out = absl::StrCat("head: ", head.learner(), "\n");
  if (head.task() == v1::HEAD_TASK_CLASSES) {
    AddFact(out, "predicts", absl::StrCat(head.class_names_size(), " classes"));
  } else {
    AddFact(out, "predicts", "a number");
  }
  RenderParts(report.parts(), out);
  if (report.has_classes()) RenderClassFigures(head, report, out);
  if (report.has_numbers()) RenderNumberFigures(report.numbers(), out);
  for (const auto& baseline : report.baselines()) {
    AddFact(out, "beside",
            report.has_classes() ? PercentText(baseline.error()) : ShortNumber(baseline.error()),
            baseline.name());
  }
  for (const auto& coverage : report.coverage()) {
    AddFact(
        out, absl::StrCat("sets of ", ShortNumber(100 * coverage.confidence()), " %"),
        PercentText(static_cast<double>(coverage.covered()) / static_cast<double>(coverage.rows())),
        absl::StrCat(report.has_classes() ? "held the class; classes in a set: "
                                          : "held the number; length of an interval: ",
                     ShortNumber(coverage.mean_size())));
  }
  if (report.has_folding()) {
    AddFact(out, "served", head.folded() ? "folded" : "by its features",
            absl::StrCat("folding changes ", WithThousands(report.folding().changed()), " of ",
                         WithThousands(report.folding().rows()), " answers"));
  }
  if (report.has_classes()) RenderClassTable(head, report.classes(), out);
  if (report.trials_size() > 0) RenderTrials(report, out);
  AppendParagraph(out, "  ", report.premise(), width);
  for (const std::string& note : report.notes()) {
    AppendParagraph(out, "  note: ", note, width);
  }
  return out;
}

}  // namespace phimap::cli
