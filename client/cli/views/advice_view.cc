#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

using AdviceLine = v1::AdviseResponse::Line;

// The texts of numbers that a theorem may leave open. Earlier servers send 0 in their place.
std::string CountText(int64_t count) { return count == 0 ? "-" : WithThousands(count); }
std::string ShareText(double share) { return share == 0 ? "-" : ShortNumber(share); }

std::string Question(const v1::AdviseRequest& request) {
  std::string text = absl::StrFormat("margin %g, error %g, confidence %g", request.margin(),
                                     request.error(), request.confidence());
  if (request.alpha() != 0) absl::StrAppend(&text, ", alpha ", request.alpha());
  if (request.points() != 0) absl::StrAppend(&text, ", points ", WithThousands(request.points()));
  if (request.classes() != 0) absl::StrAppend(&text, ", classes ", request.classes());
  if (request.distortion() != 0) absl::StrAppend(&text, ", distortion ", request.distortion());
  if (request.kernel_error() != 0) {
    absl::StrAppend(&text, ", kernel error ", request.kernel_error());
  }
  return text + "\n";
}

constexpr char kRow[] = "  %-10s %17s %17s %9s %9s %10s\n";

std::string TierText(const AdviceLine& line) {
  return EnumText(AdviceLine::Tier_Name(line.tier()));
}

constexpr char kNoTheorem[] =
    "No theorem covers this case: measure instead. 'phimap evaluate' measures a learner on a "
    "version, and 'phimap show' reports how far its features deviate from the kernel.";

bool HasNumbers(const AdviceLine& line) { return line.dimensions() != 0 || line.landmarks() != 0; }

void RenderLine(std::string& out, const AdviceLine& line, int width) {
  if (HasNumbers(line)) {
    absl::StrAppendFormat(&out, kRow, TierText(line), CountText(line.landmarks()),
                          CountText(line.dimensions()), ShareText(line.margin()),
                          ShareText(line.error()), ShareText(line.distortion()));
  } else {
    absl::StrAppendFormat(&out, "  %-10s no number\n", TierText(line));
  }
  std::string note = line.note();
  if (line.draws() != 0) {
    absl::StrAppend(&note, "; one draw succeeds with probability at least ",
                    ShortNumber(line.success()), ", and at least one of ",
                    WithThousands(line.draws()), " draws succeeds with the requested confidence");
  }
  if (!note.empty()) AppendParagraph(out, "             ", note, width);
}

// Shows what to do, and the commands that do it. The reasons come after it.
void RenderToDo(const v1::AdviseResponse& response, int width, std::string& out) {
  const std::string& to_do = response.to_do();
  if (!to_do.empty()) {
    AppendParagraph(out, "", to_do, width);
  } else if (response.proposal().empty()) {
    AppendParagraph(out, "", kNoTheorem, width);
  }
  const std::string& spec =
      response.proposal().empty() ? response.to_measure() : response.proposal();
  if (!spec.empty()) {
    absl::StrAppend(&out, "  phimap build NAME --input=ROWS --spec='", spec, "' ...\n");
  }
  if (!response.to_measure().empty()) {
    const std::string family = response.to_measure().substr(0, response.to_measure().find('('));
    absl::StrAppend(&out, "  phimap evaluate NAME --input=ROWS --label=COLUMN\n",
                    "  phimap sweep --input=ROWS --label=COLUMN --spec=", family,
                    " --landmarks=100,300,1000,3000 ...\n");
  }
  out += "\n";
}

}  // namespace

std::string RenderAdvice(const v1::AdviseRequest& request, const v1::AdviseResponse& response,
                         int width) {
  std::string out;
  RenderToDo(response, width, out);
  AppendParagraph(out, "Why: ", response.verdict(), width);
  absl::StrAppend(&out, "\n", Question(request));
  absl::StrAppendFormat(&out, kRow, "", "landmarks", "dimensions", "margin", "error", "distortion");
  const AdviceLine* before = nullptr;
  for (const AdviceLine& line : response.lines()) {
    if (before == nullptr || before->subject() != line.subject() ||
        before->source() != line.source()) {
      absl::StrAppend(&out, EnumText(AdviceLine::Subject_Name(line.subject())), ": ", line.source(),
                      "\n");
    }
    RenderLine(out, line, width);
    before = &line;
  }
  return out;
}

}  // namespace phimap::cli
