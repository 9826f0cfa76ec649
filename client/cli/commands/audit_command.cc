// `phimap audit`: who changed what, from where, and what was refused.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands/commands.h"
#include "client/cli/views/text.h"
#include "core/status/status_macros.h"
#include "phimap/v1/mapping_service.pb.h"

namespace phimap::cli {
namespace {

struct AuditArguments {
  // Empty: all mappings.
  std::string name;
  std::string by;
  bool by_given = false;
  std::string since;
  std::string until;
  int limit = 100;
  bool json = false;
};

// Parses a time, or a duration before now, such as 24h.
absl::StatusOr<absl::Time> TimeOf(const char* flag, const std::string& text) {
  absl::Duration ago;
  if (absl::ParseDuration(text, &ago)) return absl::Now() - ago;
  absl::Time time;
  std::string error;
  if (absl::ParseTime("%Y-%m-%d", text, &time, &error) ||
      absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return time;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(flag,
                   ": expected a time ago such as 24h, a day such as 2026-11-30, or a time such as "
                   "2026-11-30T08:00:00Z, got '",
                   text, "'"));
}

absl::Status SetTime(const char* flag, const std::string& text, google::protobuf::Timestamp* out) {
  PHIMAP_ASSIGN_OR_RETURN(const absl::Time time, TimeOf(flag, text));
  const int64_t micros = absl::ToUnixMicros(time);
  const int64_t seconds = absl::ToUnixSeconds(time);
  out->set_seconds(seconds);
  out->set_nanos(static_cast<int>((micros - seconds * 1'000'000) * 1000));
  return absl::OkStatus();
}

// "letters", "letters@prod" or "letters build 5f…".
std::string AboutText(const v1::AuditEntry& entry) {
  std::string text = entry.mapping();
  if (!entry.alias().empty()) absl::StrAppend(&text, "@", entry.alias());
  if (!entry.build_id().empty()) absl::StrAppend(&text, " build ", entry.build_id().substr(0, 8));
  return text;
}

// "3 → 4", "→ 4" for a version that was added, "3 →" for one that was deleted.
std::string ChangeText(const v1::AuditEntry& entry) {
  if (entry.previous_version() == 0 && entry.version() == 0) return "";
  if (entry.previous_version() == entry.version()) return absl::StrCat(entry.version());
  const std::string before =
      entry.previous_version() == 0 ? "" : absl::StrCat(entry.previous_version(), " ");
  const std::string after = entry.version() == 0 ? "" : absl::StrCat(" ", entry.version());
  return absl::StrCat(before, "→", after);
}

std::string MethodText(const v1::AuditEntry& entry) {
  return entry.method().substr(entry.method().rfind('/') + 1);
}

std::string OutcomeText(const v1::AuditEntry& entry) {
  std::string text = entry.outcome();
  if (!entry.reason().empty()) absl::StrAppend(&text, " ", entry.reason());
  if (!entry.detail().empty()) absl::StrAppend(&text, " (", entry.detail(), ")");
  return text;
}

// Pads by characters, not bytes, because of the arrow.
std::string Padded(const std::string& text, size_t width) {
  const auto characters = static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  return characters < width ? absl::StrCat(text, std::string(width - characters, ' ')) : text;
}

void Print(const v1::ListAuditEntriesResponse& audit, std::ostream& out) {
  const auto line = [&](const std::string& time, const std::string& who, const std::string& from,
                        const std::string& what, const std::string& about,
                        const std::string& change, const std::string& outcome) {
    std::string text = absl::StrCat(Padded(time, 19), "  ", Padded(who, 12), "  ", Padded(from, 22),
                                    "  ", Padded(what, 13), "  ", Padded(about, 24), "  ",
                                    Padded(change, 9), "  ", outcome);
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << "\n";
  };
  line("TIME (UTC)", "WHO", "FROM", "WHAT", "ON", "VERSION", "OUTCOME");
  for (const v1::AuditEntry& entry : audit.entries()) {
    const absl::Time time = absl::FromUnixSeconds(entry.time().seconds());
    line(absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::UTCTimeZone()),
         entry.principal().empty() ? "-" : entry.principal(),
         entry.peer().empty() ? "-" : entry.peer(), MethodText(entry), AboutText(entry),
         ChangeText(entry), OutcomeText(entry));
  }
}

absl::Status RunAudit(const AuditArguments& arguments, CommandContext& context) {
  v1::ListAuditEntriesRequest request;
  request.set_name(arguments.name);
  if (arguments.by_given) request.set_principal(arguments.by);
  if (!arguments.since.empty()) {
    PHIMAP_RETURN_IF_ERROR(SetTime("--since", arguments.since, request.mutable_start_time()));
  }
  if (!arguments.until.empty()) {
    PHIMAP_RETURN_IF_ERROR(SetTime("--until", arguments.until, request.mutable_end_time()));
  }
  v1::ListAuditEntriesResponse all;
  do {
    request.set_page_size(std::min(arguments.limit - all.entries_size(), 1000));
    PHIMAP_ASSIGN_OR_RETURN(v1::ListAuditEntriesResponse page,
                            context.client.ListAuditEntries(request));
    for (v1::AuditEntry& entry : *page.mutable_entries()) *all.add_entries() = std::move(entry);
    all.set_next_page_token(page.next_page_token());
    request.set_page_token(page.next_page_token());
  } while (!all.next_page_token().empty() && all.entries_size() < arguments.limit);
  if (arguments.json) return PrintJson(all, context.out);
  if (all.entries().empty()) {
    *context.console.stream << "no entry of the audit matches" << std::endl;
    return absl::OkStatus();
  }
  Print(all, context.out);
  if (!all.next_page_token().empty()) {
    *context.console.stream << "There are older entries: --limit or --until shows them."
                            << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace

Command AddAudit(CLI::App& app) {
  auto arguments = std::make_shared<AuditArguments>();
  CLI::App* command =
      app.add_subcommand("audit", "Show who changed what, from where, and what was refused");
  command->add_option("NAME", arguments->name, "Only changes of this mapping (default: all)");
  CLI::Option* by =
      command->add_option("--by", arguments->by,
                          "Only changes by the caller with this name; '' for those without a name");
  command->add_option(
      "--since", arguments->since,
      "Only changes since then: a time ago such as 24h, a day or a time (RFC 3339)");
  command->add_option("--until", arguments->until, "Only changes before then");
  command->add_option("--limit", arguments->limit, "Maximum number of entries, the newest first")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print the answer as JSON");
  return {.app = command,
          .run =
              [arguments, by](CommandContext& context) {
                arguments->by_given = by->count() > 0;
                return RunAudit(*arguments, context);
              },
          .json = &arguments->json};
}

}  // namespace phimap::cli
