#include "client/cli/views/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/views/text.h"
#include "core/status/words.h"

namespace phimap::cli {

ColorChoice ParseColorChoice(absl::string_view text) {
  if (text == "always") return ColorChoice::kAlways;
  return text == "never" ? ColorChoice::kNever : ColorChoice::kAuto;
}

bool IsCapableTerminal(int descriptor) {
  const char* const terminal = std::getenv("TERM");
  return isatty(descriptor) == 1 && (terminal == nullptr || absl::string_view(terminal) != "dumb");
}

bool UsesColor(ColorChoice choice, int descriptor) {
  if (choice != ColorChoice::kAuto) return choice == ColorChoice::kAlways;
  const char* const refused = std::getenv("NO_COLOR");
  return IsCapableTerminal(descriptor) && (refused == nullptr || *refused == '\0');
}

std::string Colored(absl::string_view text, Color color, bool on) {
  if (!on) return std::string(text);
  const char* const code = color == Color::kRed ? "31" : color == Color::kYellow ? "33" : "32";
  return absl::StrCat("\x1b[", code, "m", text, "\x1b[0m");
}

namespace {

constexpr int kBarWidth = 24;
constexpr absl::Duration kRedrawInterval = absl::Milliseconds(100);

std::string Bar(double fraction) {
  const int filled = static_cast<int>(fraction * kBarWidth);
  return absl::StrCat("[", std::string(filled, '#'), std::string(kBarWidth - filled, '.'), "] ",
                      static_cast<int>(fraction * 100), "%");
}

// Returns the finished share of the work, if it is known.
std::optional<double> FractionOf(const ProgressState& state) {
  double fraction = state.fraction;
  if (state.phase.empty()) {
    if (state.total_rows.value_or(0) <= 0) return state.share_read;
    fraction = static_cast<double>(state.rows) / static_cast<double>(*state.total_rows);
  }
  return std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
}

// Returns the remaining time at the present rate; 0 if it is unknown or too early to tell.
double SecondsLeft(const ProgressState& state, std::optional<double> fraction, double seconds) {
  if (!state.phase.empty()) return state.seconds_left;
  constexpr double kFirstSeconds = 2;
  if (!fraction.has_value() || *fraction <= 0 || seconds < kFirstSeconds) return 0;
  return seconds * (1 - *fraction) / *fraction;
}

// Removes control characters from the server's texts, which must not control the terminal.
std::string Printable(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

}  // namespace

std::string RenderProgress(const ProgressState& state, int width) {
  const double seconds = absl::ToDoubleSeconds(state.elapsed);
  const std::string rows = LongCountOf(state.rows, "row");
  std::string rate;
  if (state.phase.empty() && seconds > 0) {
    const double per_second = static_cast<double>(state.rows) / seconds;
    rate = absl::StrCat(WithThousands(static_cast<int64_t>(per_second)), " rows/s");
  }
  const std::optional<double> fraction = FractionOf(state);
  const std::string bar = fraction.has_value() ? Bar(*fraction) : "";
  // The remaining time tells more than the elapsed time, and replaces it if it is known.
  const double seconds_left = SecondsLeft(state, fraction, seconds);
  const bool estimated = seconds_left > 0 && seconds_left < 1e9;
  const std::string time =
      estimated ? absl::StrCat("about ", DurationText(std::ceil(seconds_left)), " left")
                : DurationText(std::max(seconds, 0.0));

  const auto join = [&](bool with_rate, bool with_bar, bool with_time) {
    std::vector<std::string> parts = {Printable(state.label)};
    if (with_bar && !bar.empty()) parts.push_back(bar);
    parts.push_back(rows);
    if (!state.phase.empty()) parts.push_back(Printable(state.phase));
    if (with_rate && !rate.empty()) parts.push_back(rate);
    if (with_time) parts.push_back(time);
    return absl::StrJoin(parts, "  ");
  };
  for (const auto& [with_rate, with_bar, with_time] :
       {std::tuple(true, true, true), std::tuple(!estimated, true, estimated),
        std::tuple(true, false, false), std::tuple(false, false, false)}) {
    std::string line = join(with_rate, with_bar, with_time);
    if (static_cast<int>(line.size()) <= width) return line;
  }
  return join(false, false, false).substr(0, std::max(width, 0));
}

ProgressState StateOf(const client::BuildProgress& progress, std::string label,
                      std::optional<int64_t> total_rows) {
  ProgressState state{.label = std::move(label), .rows = progress.rows_sent};
  state.total_rows = total_rows;
  if (!progress.sent) return state;
  state.rows = std::max(progress.rows_sent, progress.job.rows_received());
  state.fraction = progress.job.fraction();
  state.seconds_left = progress.job.seconds_left();
  switch (static_cast<int>(progress.job.state())) {  // a newer server may know others
    case v1::BuildJob::STATE_QUEUED:
      state.phase = "waiting for its turn";
      break;
    case v1::BuildJob::STATE_PUBLISHING:
    case v1::BuildJob::STATE_DONE:
      state.phase = "publishing";
      state.fraction = 1;
      break;
    default:
      state.phase = progress.job.phase().empty() ? "computing" : progress.job.phase();
  }
  return state;
}

Console StandardErrorConsole(ColorChoice color) {
  Console console{.stream = &std::cerr,
                  .is_terminal = IsCapableTerminal(STDERR_FILENO),
                  .color = UsesColor(color, STDERR_FILENO)};
  struct winsize size;
  if (console.is_terminal && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    console.width = size.ws_col;
  }
  return console;
}

ProgressBar::ProgressBar(const Console& console, Clock clock)
    : console_(console), clock_(clock), start_(clock()) {}

ProgressBar::~ProgressBar() { Clear(); }

void ProgressBar::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (drawn_ && !done_) *console_.stream << "\r\x1b[K" << std::flush;
  drawn_ = false;
}

void ProgressBar::Update(ProgressState state) {
  if (!console_.is_terminal) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (done_) return;
  state_ = std::move(state);
  const absl::Time now = clock_();
  if (now - last_drawn_ < kRedrawInterval) return;
  last_drawn_ = now;
  Draw();
}

void ProgressBar::Keep() {
  if (!console_.is_terminal) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (done_ || !drawn_) return;
  Draw();
  *console_.stream << '\n' << std::flush;
  done_ = true;
}

void ProgressBar::Draw() {
  drawn_ = true;
  state_.elapsed = clock_() - start_;
  // Leaves one column free: some terminals wrap when the last one is written.
  *console_.stream << '\r' << RenderProgress(state_, console_.width - 1) << "\x1b[K" << std::flush;
}

}  // namespace phimap::cli
