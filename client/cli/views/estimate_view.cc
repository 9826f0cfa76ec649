#include "client/cli/views/estimate_view.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/views/number_text.h"
#include "client/cli/views/paragraph.h"

namespace phimap::cli {

std::string RenderEstimate(int64_t rows, int32_t columns, const v1::EstimateBuildResponse& estimate,
                           int width) {
  const std::string what =
      columns == 0 ? " strings"
                   : absl::StrCat(" rows of ", columns, columns == 1 ? " column" : " columns");
  std::string out = absl::StrCat("a build of ", WithThousands(rows), what, " would take\n");
  constexpr char kLine[] = "  %-10s%-14s%s\n";
  absl::StrAppendFormat(
      &out, kLine, "memory", SizeText(estimate.peak_memory_bytes()),
      absl::StrCat("at its peak; reserves ", SizeText(estimate.reserved_memory_bytes()), " of the ",
                   SizeText(estimate.memory_limit_bytes()), " for all builds"));
  absl::StrAppendFormat(&out, kLine, "artifact", SizeText(estimate.artifact_size_bytes()),
                        "stored");
  absl::StrAppendFormat(&out, kLine, "flops", ShortNumber(estimate.flops()),
                        "additions and multiplications of matrices");
  absl::StrAppendFormat(&out, kLine, "time", ShortNumber(estimate.seconds()) + " s",
                        "of an idle core of the server, within a factor of 3");
  if (estimate.reserved_memory_bytes() > estimate.memory_limit_bytes()) {
    AppendParagraph(out, "  WARNING: ",
                    "the server would refuse it: reduce landmarks or pool_rows, or start phimapd "
                    "with a larger --build_memory_bytes",
                    width);
  }
  return out;
}

}  // namespace phimap::cli
