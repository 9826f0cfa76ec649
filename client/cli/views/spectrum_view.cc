#include "client/cli/views/spectrum_view.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/views/number_text.h"

namespace phimap::cli {
namespace {

// Number of lines per power of ten; the top line stands for the whole trace.
constexpr int kLinesPerDecade = 2;
constexpr int kMaxLines = 10;
constexpr int kSpectrumLabelWidth = 10;
constexpr int kMaxColumns = 64;

// Number of lines by which the share stands below the top: 0 for all of the trace.
double Depth(double share) {
  return share > 0 ? -kLinesPerDecade * std::log10(share) : static_cast<double>(kMaxLines);
}

// "10 %", "0.01 %" at whole powers of ten.
std::string LabelOf(int line) {
  if (line % kLinesPerDecade != 0) return "";
  return absl::StrFormat("%g %%", 100 * std::pow(10.0, -line / kLinesPerDecade));
}

void DrawPlot(const std::vector<double>& shares, std::string& out) {
  double deepest = 0;
  for (const double share : shares) deepest = std::max(deepest, Depth(share));
  const int lines = std::clamp(static_cast<int>(std::floor(deepest)) + 1, 1, kMaxLines);
  for (int line = 0; line < lines; ++line) {
    std::string bars;
    for (const double share : shares) bars += Depth(share) < line + 1 ? '#' : ' ';
    const size_t end = bars.find_last_not_of(' ');
    bars.erase(end == std::string::npos ? 0 : end + 1);
    absl::StrAppendFormat(&out, "  %*s |%s\n", kSpectrumLabelWidth, LabelOf(line), bars);
  }
}

}  // namespace

std::string RenderSpectrum(const v1::Certificate::Spectrum& spectrum, int width) {
  const int room = std::min(kMaxColumns, width - kSpectrumLabelWidth - 4);
  std::vector<double> shares;
  for (int i = 0; i < spectrum.eigenvalues_size() && i < room; ++i) {
    const double share = spectrum.eigenvalues(i) / spectrum.trace();
    shares.push_back(std::isfinite(share) ? share : 0);
  }
  std::string out;
  if (shares.empty()) return out;
  absl::StrAppend(
      &out, "  spectrum: eigenvalues 1 to ", shares.size(), " of K on ",
      WithThousands(spectrum.rows()),
      spectrum.held_out() ? " held-out rows" : " rows of the pool, landmarks among them",
      ", shares of their sum\n");
  DrawPlot(shares, out);
  for (const auto& dimension : spectrum.effective_dimensions()) {
    const double level = dimension.lambda() / spectrum.trace();
    absl::StrAppendFormat(
        &out, "  over %-8s %7.1f of %.1f effective dimensions are in the span of the landmarks\n",
        absl::StrFormat("%g %%", 100 * level), dimension.mapping(), dimension.kernel());
  }
  return out;
}

}  // namespace phimap::cli
