#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "client/cpp/client.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

// Maximum numbers of classes and mistakes that are shown; --json has all.
constexpr int kShownClasses = 40;
constexpr size_t kShownMistakes = 5;
// Percentiles that are shown.
constexpr std::array<int, 8> kShown = {0, 1, 5, 10, 25, 50, 75, 100};

void AddRow(std::string& out, absl::string_view name, absl::string_view value,
            absl::string_view note) {
  absl::StrAppendFormat(&out, "  %-12s  %-18s%s\n", name, value, note);
}

// Shows between which numbers the error on future rows lies, and what this assumes.
void RenderInterval(const v1::Evaluation& evaluation, int width, std::string& out) {
  if (!evaluation.has_error_low() || !evaluation.has_error_high()) return;
  AddRow(out, "",
         absl::StrFormat("%.2f to %.2f %%", 100 * evaluation.error_low(),
                         100 * evaluation.error_high()),
         absl::StrFormat("of future rows, confidence %g", evaluation.confidence()));
  AppendParagraph(out, "                ", evaluation.error_premise(), width);
}

void RenderErrors(const v1::Evaluation& evaluation, int width, std::string& out) {
  AddRow(out, "rows", WithThousands(evaluation.rows()),
         absl::StrCat("of ", CountOf(evaluation.classes_size(), "class")));
  if (evaluation.held_out() > 0) {
    AddRow(out, "tested", WithThousands(evaluation.tested_rows()),
           "held out; the others were learnt from");
  } else {
    AddRow(out, "tested", WithThousands(evaluation.tested_rows()),
           absl::StrCat("each in one of ", CountOf(evaluation.folds_size(), "fold")));
  }
  AddRow(out, "error", PercentText(evaluation.error()),
         absl::StrCat(LongCountOf(evaluation.errors(), "row"),
                      evaluation.errors() == 1 ? " was assigned a class not its own"
                                               : " were assigned a class not theirs"));
  RenderInterval(evaluation, width, out);
  if (evaluation.folds_size() == 1) {
    AddRow(out, "training", "", evaluation.folds(0).summary());
  }
}

double Share(int64_t part, int64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

void RenderClasses(const v1::Evaluation& evaluation, std::string& out) {
  absl::StrAppendFormat(&out, "%-27s %10s %10s %10s %10s %10s\n", "class", "rows", "tested",
                        "found", "recall", "precision");
  for (int i = 0; i < std::min(evaluation.classes_size(), kShownClasses); ++i) {
    const auto& c = evaluation.classes(i);
    absl::StrAppendFormat(
        &out, "  %-25s %10s %10s %10s %10s %10s\n", PrintableLabel(c.label()),
        WithThousands(c.rows()), WithThousands(c.tested_rows()), WithThousands(c.correct()),
        c.tested_rows() == 0 ? "-" : PercentText(Share(c.correct(), c.tested_rows())),
        c.predicted() == 0 ? "-" : PercentText(Share(c.correct(), c.predicted())));
  }
  if (evaluation.classes_size() > kShownClasses) {
    absl::StrAppend(&out, "  and ", evaluation.classes_size() - kShownClasses,
                    " more, in --json\n");
  }
}

void RenderMistakes(const v1::Evaluation& evaluation, int width, std::string& out) {
  std::vector<const v1::Evaluation::Confusion*> mistakes;
  for (const auto& confusion : evaluation.confusion()) {
    if (confusion.actual() != confusion.predicted()) mistakes.push_back(&confusion);
  }
  if (mistakes.empty()) return;
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const auto* a, const auto* b) { return a->count() > b->count(); });
  std::string text;
  for (size_t i = 0; i < std::min(mistakes.size(), kShownMistakes); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ",
                    PrintableLabel(evaluation.classes(mistakes[i]->actual()).label()), " as ",
                    PrintableLabel(evaluation.classes(mistakes[i]->predicted()).label()), " (",
                    WithThousands(mistakes[i]->count()), ")");
  }
  AppendParagraph(out, "  most often mistaken: ", text, width);
}

void RenderQuantiles(const char* name, const google::protobuf::RepeatedField<double>& quantiles,
                     std::string& out) {
  if (quantiles.size() != 101) return;
  absl::StrAppendFormat(&out, "  %-16s", name);
  for (const int percent : kShown) absl::StrAppendFormat(&out, " %8.4f", quantiles[percent]);
  out += "\n";
}

void RenderMargins(const v1::Evaluation& evaluation, int width, std::string& out) {
  if (evaluation.margin_quantiles().empty()) {
    AppendParagraph(out, "", "The learner has no weight vector, and therefore no margins.", width);
    return;
  }
  absl::StrAppendFormat(&out, "%-18s", "margins");
  for (const int percent : kShown) absl::StrAppendFormat(&out, " %6d %%", percent);
  out += "\n";
  RenderQuantiles("features", evaluation.margin_quantiles(), out);
  RenderQuantiles("not normalised", evaluation.unnormalised_margin_quantiles(), out);
  RenderQuantiles("kernel's space", evaluation.kernel_margin_quantiles(), out);
  if (evaluation.intercept_scale() > 0) {
    const double b = evaluation.intercept_scale();
    AppendParagraph(
        out, "  ",
        absl::StrCat("The learner has an intercept, so these are the margins of rows to which "
                     "a constant ",
                     ShortNumber(b), " is appended, and of the kernel K + ", ShortNumber(b * b),
                     "; with bias=0 it has no intercept"),
        width);
  }
}

void RenderCertified(const v1::Evaluation& evaluation, int width, std::string& out) {
  if (evaluation.certified_margins().empty()) {
    AppendParagraph(out, "",
                    "No margin is certified: this requires features that are coordinates in the "
                    "kernel's own space, and a learner with a weight vector.",
                    width);
    return;
  }
  absl::StrAppend(
      &out, "certified: some separator in the kernel's space has this margin, except on a share\n");
  absl::StrAppendFormat(&out, "  %-8s %20s %34s\n", "share", "of these rows",
                        absl::StrFormat("of future rows, confidence %g", evaluation.confidence()));
  for (const auto& certified : evaluation.certified_margins()) {
    absl::StrAppendFormat(
        &out, "  %-8g %20.6f %34s\n", certified.alpha(), certified.rows_margin(),
        certified.has_margin() ? absl::StrFormat("%.6f", certified.margin()) : "-");
  }
  AppendParagraph(
      out, "  ",
      "The margins of future rows are valid only if the version was not built from these "
      "rows, which the server cannot know",
      width);
}

}  // namespace

std::string RenderEvaluation(const v1::Evaluation& evaluation, int width) {
  std::string out =
      absl::StrCat(client::ReferenceTo(evaluation.version()), "  ", evaluation.learner(), "\n");
  RenderErrors(evaluation, width, out);
  RenderClasses(evaluation, out);
  RenderMistakes(evaluation, width, out);
  RenderMargins(evaluation, width, out);
  RenderCertified(evaluation, width, out);
  for (const std::string& warning : evaluation.warnings()) {
    AppendParagraph(out, "warning: ", warning, width);
  }
  return out;
}

}  // namespace phimap::cli
