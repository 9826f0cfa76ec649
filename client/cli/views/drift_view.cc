#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

// Scores and columns that a line lists.
constexpr int kListedInDrift = 3;
// Evidence below this is what chance gives every few thousand rows.
constexpr double kLeastListed = 0.5;

using Score = v1::AliasDrift::Score;

std::string NameOfScore(Score::Kind kind, int32_t index, absl::string_view name) {
  const std::string text = EnumText(Score::Kind_Name(kind));
  if (!name.empty()) return absl::StrCat(text, " ", name);
  const bool is_numbered = kind == Score::KIND_DIRECTION || kind == Score::KIND_COLUMN;
  return is_numbered ? absl::StrCat(text, " ", index) : text;
}

std::string Finding(const v1::AliasDrift& alias) {
  if (alias.evidence() >= 1) return "the served rows have drifted";
  if (alias.rows() == 0) return "no rows tested yet";
  return alias.has_crossed_time() ? "no evidence of drift any more" : "no evidence of drift";
}

std::string CrossedText(const v1::AliasDrift& alias) {
  if (!alias.has_crossed_time()) return "";
  return absl::FormatTime("; it last reached 1 on %Y-%m-%d at %H:%M UTC",
                          absl::FromUnixSeconds(alias.crossed_time().seconds()),
                          absl::UTCTimeZone());
}

std::string ScoresText(const v1::AliasDrift& alias) {
  std::string line;
  int listed = 0;
  for (const Score& score : alias.scores()) {
    const bool spread = score.spread() > score.location();
    const double evidence = spread ? score.spread() : score.location();
    if (evidence < kLeastListed || listed++ == kListedInDrift) break;
    absl::StrAppend(&line, line.empty() ? "" : ", ",
                    NameOfScore(score.kind(), score.index(), score.name()),
                    spread ? " is spread differently (" : " has moved (",
                    absl::StrFormat("%.2f", evidence), ")");
  }
  return line.empty() ? "" : absl::StrCat("  scores:   ", line, "\n");
}

std::string ShiftText(const v1::AliasDrift& alias) {
  if (!alias.has_shift() || alias.shift_scale() <= 0) return "";
  return absl::StrCat(
      "  shift:    the mean of F has moved by ", ShortPercent(alias.shift() / alias.shift_scale()),
      " of the deviation of F, over the last ", LongCountOf(alias.counted_rows(), "row"), "\n");
}

std::string BeyondText(const v1::AliasDrift& alias) {
  if (alias.beyond_range_expected() <= 0 || alias.counted_rows() == 0) return "";
  std::string line =
      absl::StrCat("  range:    ", ShortPercent(alias.beyond_range_share()),
                   " of the numbers are beyond the range that the version was built from; without "
                   "drift at most ",
                   ShortPercent(alias.beyond_range_expected()), "\n");
  const int count = std::min(kListedInDrift, alias.columns_beyond_range_size());
  for (int i = 0; i < count; ++i) {
    const v1::AliasDrift::Column& column = alias.columns_beyond_range(i);
    absl::StrAppend(&line, i == 0 ? "            worst: " : ", ",
                    NameOfScore(Score::KIND_COLUMN, column.index(), column.name()), " in ",
                    ShortPercent(column.share()), " of the rows");
  }
  return count > 0 ? line + "\n" : line;
}

std::string RenderAlias(absl::string_view name, const v1::AliasDrift& alias) {
  std::string text = absl::StrCat(name, "@", alias.alias(), " (version ", alias.version(), "): ");
  if (!alias.not_tested().empty()) {
    return absl::StrCat(text, "drift is not tested: ", alias.not_tested(), "\n");
  }
  absl::StrAppend(&text, Finding(alias),
                  "\n  evidence: ", absl::StrFormat("%.2f", alias.evidence()), ", of 1, after ",
                  LongCountOf(alias.rows(), "row"), CrossedText(alias), "\n");
  if (alias.rows_not_finite() > 0) {
    absl::StrAppend(&text, "            ", WithThousands(alias.rows_not_finite()),
                    " more rows have scores that are not finite\n");
  }
  return absl::StrCat(text, ScoresText(alias), ShiftText(alias), BeyondText(alias),
                      "  promise:  without drift, a false alarm within ",
                      LongCountOf(alias.promised_rows(), "row"), " has a probability of at most ",
                      ShortPercent(alias.false_alarms()), "\n");
}

}  // namespace

std::string RenderDrift(absl::string_view name, const v1::GetDriftResponse& drift) {
  std::string text;
  for (const v1::AliasDrift& alias : drift.aliases()) {
    absl::StrAppend(&text, text.empty() ? "" : "\n", RenderAlias(name, alias));
  }
  return text;
}

}  // namespace phimap::cli
