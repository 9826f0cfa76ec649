#include "core/head/head_answers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/head/link.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

absl::Status NotAvailable(absl::string_view field, absl::string_view why) {
  return MakeError(Code::kFailedPrecondition, reason::kOutputNotAvailable, field,
                   absl::StrCat("the version's head ", why));
}

}  // namespace

HeadAnswers::HeadAnswers(Head head, HeadProgram program)
    : head_(std::move(head)),
      program_(std::move(program)),
      conformal_(head_.calibration, static_cast<int32_t>(head_.classes.size())),
      engine_(program_.shared_engine()) {
  head_.weights = Matrix<double>();
}

absl::StatusOr<std::unique_ptr<const HeadAnswers>> HeadAnswers::Load(Plan plan, Head head,
                                                                     bool features) {
  std::shared_ptr<const Engine> engine;
  if (features || !head.folded) {
    PHIMAP_ASSIGN_OR_RETURN(engine, Engine::Load(plan));
  }
  PHIMAP_ASSIGN_OR_RETURN(HeadProgram program, head.folded
                                                   ? HeadProgram::Folded(std::move(plan), head)
                                                   : HeadProgram::Unfolded(engine, head));
  std::optional<VarianceFunction> variance;
  if (features && !head.variance.empty()) variance.emplace(head.variance);
  head.variance = HeadVariance();
  auto answers = std::unique_ptr<HeadAnswers>(new HeadAnswers(std::move(head), std::move(program)));
  answers->variance_ = std::move(variance);
  if (features) answers->engine_ = std::move(engine);
  return answers;
}

int64_t HeadAnswers::memory_bytes() const {
  int64_t bytes = program_.memory_bytes() + static_cast<int64_t>(head_.report.size()) +
                  16 * static_cast<int64_t>(head_.calibration.scores.size());
  // The program's engine is engine() unless that is the one of the features.
  if (engine_ == program_.shared_engine() && program_.folded()) {
    bytes -= engine_->memory_bytes();
  }
  return bytes + (variance_.has_value() ? variance_->memory_bytes() : 0);
}

absl::Status HeadAnswers::Check(const WantedAnswers& wanted) const {
  const bool numbers = head_.task == HeadTask::kNumbers;
  if (wanted.probabilities && head_.link.kind == Link::Kind::kNone) {
    return NotAvailable(
        "probabilities",
        numbers ? "predicts numbers, which have no probabilities; ask for "
                  "`confidence`"
                : "has no probabilities, because no rows were left to calibrate "
                  "them; train it with more rows, or with some of the part calibrate-link");
  }
  if (wanted.deviations && !variance_.has_value()) {
    return NotAvailable(
        "deviations",
        numbers ? absl::StrCat("has no deviations: it was trained by ", head_.learner_text,
                               ", and only ridge on a mapping with residuals, f2, "
                               "has them")
                : "predicts classes, which have no deviations; ask for "
                  "`probabilities`");
  }
  if (wanted.confidence == 0) return absl::OkStatus();
  if (!(wanted.confidence > 0 && wanted.confidence < 1)) {
    return MakeError(Code::kInvalidArgument, reason::kFieldOutOfRange, "confidence",
                     absl::StrCat("expected a number over 0 and under 1, got ", wanted.confidence),
                     {{"actual", absl::StrCat(wanted.confidence)}});
  }
  if (!head_.calibration.scores.empty()) return absl::OkStatus();
  return NotAvailable("confidence",
                      "has no sets or intervals, because no rows were left to calibrate them; "
                      "train it with more rows, or with some of the part calibrate-sets");
}

void HeadAnswers::AddClasses(const WantedAnswers& wanted, ConstMatrixView<double> scores,
                             Answers& out) const {
  const auto classes = static_cast<int64_t>(head_.classes.size());
  const bool sets = wanted.confidence > 0;
  if (wanted.probabilities) out.probabilities = Matrix<double>::Uninit(scores.rows(), classes);
  std::vector<double> thresholds;
  if (sets) thresholds = conformal_.ClassThresholds(wanted.confidence);
  std::vector<double> probabilities(static_cast<size_t>(classes));
  out.labels.reserve(static_cast<size_t>(scores.rows()));
  for (int64_t i = 0; i < scores.rows(); ++i) {
    const absl::Span<const double> row(scores.row(i), static_cast<size_t>(scores.cols()));
    out.labels.push_back(ClassOf(row));
    if (!sets && !wanted.probabilities) continue;
    Probabilities(head_.link, row, absl::MakeSpan(probabilities));
    if (wanted.probabilities) {
      std::copy(probabilities.begin(), probabilities.end(), out.probabilities.row(i));
    }
    if (!sets) continue;
    ConformalSet(probabilities, thresholds, out.set_classes);
    out.set_ends.push_back(static_cast<int64_t>(out.set_classes.size()));
  }
}

absl::StatusOr<Answers> HeadAnswers::Compute(const WantedAnswers& wanted, const ExamplesView& rows,
                                             const void* computed, const Residual* residual,
                                             EngineScratch& scratch) const {
  Answers out;
  Matrix<double> scores = Matrix<double>::Uninit(rows.rows(), program_.scores());
  if (engine_ == program_.shared_engine()) {
    program_.ScoresOfComputed(computed, rows.rows(), scores.data(), scratch);
  } else {
    // The features were computed for the deviations. The scores are those of the folded program, so
    // that an answer has the same bits whether deviations are wanted or not.
    ScorePart part{rows, scores.data(), absl::OkStatus()};
    program_.Scores(absl::MakeSpan(&part, 1), scratch);
    PHIMAP_RETURN_IF_ERROR(part.status);
  }
  for (int64_t i = 0; i < scores.rows(); ++i) {
    if (std::all_of(scores.row(i), scores.row(i) + scores.cols(),
                    [](double score) { return std::isfinite(score); })) {
      continue;
    }
    return MakeError(
        Code::kOutOfRange, reason::kValueNotRepresentable, absl::StrCat("rows[", i, "]"),
        "the scores of the row overflow; scale the inputs", {{"row", absl::StrCat(i)}});
  }
  if (head_.task == HeadTask::kClasses) {
    AddClasses(wanted, std::as_const(scores).view(), out);
  } else {
    out.values.assign(scores.data(), scores.data() + scores.rows());
    if (wanted.confidence > 0) {
      out.interval_half_width =
          conformal_.Threshold(wanted.confidence).value_or(std::numeric_limits<double>::infinity());
    }
  }
  if (wanted.deviations) {
    out.deviations.resize(static_cast<size_t>(rows.rows()));
    std::vector<double> residuals(out.deviations.size());
    residual->Compute(rows, computed, residuals.data(), /*allowances=*/nullptr);
    const int64_t d = variance_->features();
    if (engine_->serving_type() == FloatType::kFloat32) {
      variance_->Compute<float>({static_cast<const float*>(computed), rows.rows(), d}, residuals,
                                absl::MakeSpan(out.deviations));
    } else {
      variance_->Compute<double>({static_cast<const double*>(computed), rows.rows(), d}, residuals,
                                 absl::MakeSpan(out.deviations));
    }
    for (double& value : out.deviations) {
      value = std::sqrt(value + variance_->observation_variance());
    }
  }
  if (wanted.scores) out.scores = std::move(scores);
  return out;
}

}  // namespace phimap
