// What is printed on a terminal: colours for single words, and one line at its foot that shows the
// progress of a build or a transform.
#ifndef PHIMAP_CLIENT_CLI_VIEWS_CONSOLE_H_
#define PHIMAP_CLIENT_CLI_VIEWS_CONSOLE_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cpp/client.h"

namespace phimap::cli {

enum class ColorChoice { kAuto, kAlways, kNever };

// "auto", "always" or "never".
ColorChoice ParseColorChoice(absl::string_view text);

// Whether output to this descriptor is coloured. kAuto means: if it is a terminal other than
// TERM=dumb, and NO_COLOR (no-color.org) is unset or empty.
bool UsesColor(ColorChoice choice, int descriptor);

// Whether a line can be redrawn in place on this descriptor.
bool IsCapableTerminal(int descriptor);

enum class Color { kRed, kYellow, kGreen };

// The text, in this colour if `on`.
std::string Colored(absl::string_view text, Color color, bool on);

struct ProgressState {
  // Short label of the activity: the name of a mapping.
  std::string label = {};
  // Rows sent or mapped so far, and their total if it is known.
  int64_t rows = 0;
  std::optional<int64_t> total_rows = {};
  // Share of the input's bytes that was read, 0..1, where the total is not known.
  std::optional<double> share_read = {};
  // The server's current step, and its finished share, 0..1. Empty while rows are being sent.
  std::string phase = {};
  double fraction = 0;
  // 0: not known.
  double seconds_left = 0;
  absl::Duration elapsed = {};
};

// Returns the line, no wider than it needs to be and at most `width` characters; ASCII. While rows
// are sent, it shows their number and rate, with a bar and the time left if the total or the share
// of the input is known. Afterwards it shows the server's phase with a bar. If the line is too
// long, parts are dropped in this order: the elapsed time, or the rate if the remaining time is
// known; the bar; the rate. Then the line is cut. Pure.
std::string RenderProgress(const ProgressState& state, int width);

// Converts the progress of a build to the state that a bar shows.
ProgressState StateOf(const client::BuildProgress& progress, std::string label,
                      std::optional<int64_t> total_rows);

// Destination of messages for people.
struct Console {
  std::ostream* stream = nullptr;
  bool is_terminal = false;
  // Characters in a line.
  int width = 80;
  bool color = false;
};

// Standard error, with the width of the terminal. A terminal with TERM=dumb does not count as one.
Console StandardErrorConsole(ColorChoice color = ColorChoice::kAuto);

// Redraws one line in place; writes nothing if the console is not a terminal. The destructor leaves
// the cursor at the start of an empty line.
//
// Thread-safe.
class ProgressBar {
 public:
  using Clock = absl::Time (*)();
  explicit ProgressBar(const Console& console, Clock clock = &absl::Now);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws at most ten times a second; `state.elapsed` is filled in.
  void Update(ProgressState state);
  // Leaves the cursor at the start of an empty line, until the next update.
  void Clear();
  // Keeps the last state on its line, as a record, and begins the next line. Later updates are
  // ignored.
  void Keep();

 private:
  void Draw();

  const Console console_;
  const Clock clock_;
  const absl::Time start_;
  std::mutex mutex_;
  // Guarded by mutex_.
  absl::Time last_drawn_ = absl::InfinitePast();
  ProgressState state_;
  bool drawn_ = false;
  bool done_ = false;
};

}  // namespace phimap::cli

#endif  // PHIMAP_CLIENT_CLI_VIEWS_CONSOLE_H_
