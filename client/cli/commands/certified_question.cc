#include "client/cli/commands/certified_question.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/views/text.h"
#include "client/files/input_file.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

// The smallest margin that the advisor accepts.
constexpr double kLeastMargin = 1e-4;
// An evaluation of 1,000 classes takes some MiB.
constexpr size_t kMostEvaluationBytes = size_t{64} << 20;

absl::StatusOr<std::string> ReadAll(InputFile& file) {
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (true) {
    PHIMAP_ASSIGN_OR_RETURN(const size_t read, file.Read(buffer.data(), buffer.size()));
    if (read == 0) return text;
    text.append(buffer.data(), read);
    if (text.size() > kMostEvaluationBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("--from-evaluation: ", file.name(),
                       " has over 64 MiB; expected the output of 'phimap evaluate --json'"));
    }
  }
}

// Whether two shares are equal, up to the rounding of decimal numbers.
bool Same(double a, double b) { return std::abs(a - b) < 1e-9; }

// A certified margin for future rows, converted for the theorems about two classes.
struct Usable {
  double alpha = 0;
  double margin = 0;
};
std::vector<Usable> UsableOf(const v1::Evaluation& evaluation) {
  const double of_two = evaluation.classes_size() > 2 ? 0.5 : 1;
  std::vector<Usable> usable;
  for (const auto& certified : evaluation.certified_margins()) {
    const double margin = of_two * certified.margin();
    if (certified.has_margin() && margin >= kLeastMargin) {
      usable.push_back({certified.alpha(), margin});
    }
  }
  return usable;
}

absl::Status NothingToUse(const v1::Evaluation& evaluation, std::optional<double> alpha,
                          const std::vector<Usable>& usable) {
  if (evaluation.certified_margins().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--from-evaluation: the evaluation certifies no margin; this requires "
                     "features that are coordinates in the kernel's own space and a learner with a "
                     "weight vector, got ",
                     evaluation.learner(), " on ", client::ReferenceTo(evaluation.version())));
  }
  if (usable.empty()) {
    return absl::InvalidArgumentError(
        "--from-evaluation: no margin over 0.0001 is certified for future rows at any share up to "
        "0.5; more labeled rows, another kernel or another learner may give one");
  }
  const std::string shares = absl::StrJoin(
      usable, ", ", [](std::string* out, const Usable& u) { absl::StrAppend(out, u.alpha); });
  return absl::InvalidArgumentError(
      absl::StrCat("--alpha: expected a share at which the evaluation certifies a margin, one of ",
                   shares, ", got ", *alpha));
}

}  // namespace

absl::StatusOr<v1::Evaluation> ReadEvaluation(const std::string& path) {
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<InputFile> file, InputFile::Open(path));
  PHIMAP_ASSIGN_OR_RETURN(const std::string text, ReadAll(*file));
  v1::Evaluation evaluation;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // A newer phimap may have more fields.
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, &evaluation, options);
  if (!parsed.ok() || !evaluation.has_version()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--from-evaluation: expected the output of 'phimap evaluate --json' in ", file->name(),
        parsed.ok() ? ", got JSON without a version"
                    : absl::StrCat(": ", parsed.message().ToString())));
  }
  return evaluation;
}

absl::StatusOr<std::string> AskFromEvaluation(const v1::Evaluation& evaluation,
                                              std::optional<double> alpha,
                                              v1::AdviseRequest& request) {
  const std::vector<Usable> usable = UsableOf(evaluation);
  const Usable* chosen = nullptr;
  for (const Usable& u : usable) {
    if (!alpha.has_value() || Same(u.alpha, *alpha)) {
      chosen = &u;
      break;
    }
  }
  if (chosen == nullptr) return NothingToUse(evaluation, alpha, usable);
  request.set_margin(std::min(1.0, chosen->margin));
  request.set_alpha(chosen->alpha);
  const int classes = evaluation.classes_size();
  if (request.classes() == 0 && classes > 2) request.set_classes(classes);
  const double b = evaluation.intercept_scale();
  return absl::StrCat(
      "margin ", ShortNumber(chosen->margin), " for all examples but a share of ", chosen->alpha,
      ", certified with confidence ", evaluation.confidence(), " by ",
      client::ReferenceTo(evaluation.version()), " and ", evaluation.learner(),
      classes > 2
          ? "; it is half of the margin among several classes, because the theorems are about two"
          : "",
      b > 0 ? absl::StrCat("; it holds in the space of the kernel K + ", ShortNumber(b * b),
                           ", because the learner has an intercept")
            : "");
}

}  // namespace phimap::cli
