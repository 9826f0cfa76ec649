// `phimapd admin`, for operators of a store: its flags, and what it prints.

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/status/command_line.h"
#include "core/status/error.h"
#include "core/status/exit_code.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"
#include "server/options.h"
#include "server/store/admin/admin_store.h"
#include "server/store/admin/store_backup.h"
#include "server/store/admin/store_check.h"
#include "server/store/files/file_system.h"
#include "server/store/garbage_collector.h"

namespace phimap {
namespace {

// Minimum grace time. With a shorter one, a server that is loading a version could find its
// artifact deleted.
constexpr int64_t kLeastGraceSeconds = 600;

constexpr char kAdminExitCodeHelp[] =
    "Exit codes:\n"
    "  0    done\n"
    "  1    failed: damaged artifacts, a full disk, or a bug\n"
    "  2    wrong usage\n"
    "  3    no such store\n"
    "  4    the database cannot be reached, or another program is collecting garbage\n"
    "  5    refused, for example because the target of a backup is not empty\n"
    "  130  interrupted\n";

struct AdminArguments {
  // A data directory, or postgresql://…
  std::string store;
  // Folders: `to` is the destination of a backup, `from` the source of a restore.
  std::string to;
  std::string from;
  bool quarantine = false;
  bool skip_damaged = false;
  int64_t grace_seconds = 3600;
  bool json = false;
};

volatile std::sig_atomic_t admin_is_interrupted = 0;

// Makes the first SIGINT or SIGTERM stop the work tidily. A second one ends the process.
void StopAtSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { admin_is_interrupted = 1; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// One line on a terminal that shows how many artifacts are done. It writes nothing elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(std::string phase) : phase_(std::move(phase)) {}
  ~ProgressLine() {
    if (drawn_ > absl::InfinitePast()) std::cerr << "\r\x1b[K" << std::flush;
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Returns a callback that draws the progress and stops the work when a signal arrives. REQUIRES:
  // this outlives it.
  AdminProgress Callback() {
    return [this](int64_t done, int64_t total) {
      const absl::Time now = absl::Now();
      if (on_terminal_ && now - drawn_ >= absl::Milliseconds(100)) {
        std::cerr << "\r" << phase_ << "  " << done << " of " << CountOf(total, "artifact")
                  << "\x1b[K" << std::flush;
        drawn_ = now;
      }
      return admin_is_interrupted == 0;
    };
  }

 private:
  const std::string phase_;
  const bool on_terminal_ = isatty(STDERR_FILENO) == 1;
  absl::Time drawn_ = absl::InfinitePast();
};

std::string ThisProgram() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat("phimapd admin ", getpid(), " on ", host);
}

void PrintReport(const BackupReport& report, absl::string_view done, const std::string& where,
                 bool json) {
  if (json) {
    std::cout << absl::StrFormat(
        "{\"mappings\": %d, \"versions\": %d, \"aliases\": %d, \"artifacts\": %d, \"bytes\": %d, "
        "\"revision\": %d}\n",
        report.mappings, report.versions, report.aliases, report.artifacts, report.bytes,
        report.revision);
    return;
  }
  std::cout << done << " " << where << ": " << CountOf(report.versions, "version") << " of "
            << CountOf(report.mappings, "mapping") << ", " << CountOf(report.aliases, "alias")
            << ", " << CountOf(report.artifacts, "artifact") << ", " << SizeText(report.bytes)
            << "\n";
}

absl::Status RunBackup(const AdminArguments& arguments) {
  PHIMAP_ASSIGN_OR_RETURN(const AdminStore store, OpenAdminStore(arguments.store));
  ProgressLine progress("copying");
  PHIMAP_ASSIGN_OR_RETURN(const BackupReport report,
                          BackUp(store, arguments.to, ThisProgram(), PosixFileSystem(),
                                 progress.Callback(), arguments.skip_damaged));
  PrintReport(report, "backed up to", arguments.to, arguments.json);
  if (report.damaged.empty()) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kDataLoss, reason::kArtifactDamaged, "--store",
      absl::StrCat("the backup lacks ", CountOf(report.damaged.size(), "artifact"),
                   ", named in its damaged.txt: ", absl::StrJoin(report.damaged, "; ")));
}

absl::Status RunRestore(const AdminArguments& arguments) {
  ProgressLine progress("restoring");
  PHIMAP_ASSIGN_OR_RETURN(
      const BackupReport report,
      Restore(arguments.from, arguments.store, PosixFileSystem(), progress.Callback()));
  // A PostgreSQL address may contain a password.
  const bool on_postgres = IsPostgres(arguments.store);
  PrintReport(report, "restored", on_postgres ? "into the database" : arguments.store,
              arguments.json);
  return absl::OkStatus();
}

void PrintCheck(const CheckReport& report, bool json) {
  if (json) {
    std::vector<std::string> damaged;
    for (const DamagedArtifact& artifact : report.damaged) {
      damaged.push_back(absl::StrFormat(
          "{\"digest\": \"%s\", \"versions\": [\"%s\"], \"set_aside\": %s}", artifact.digest,
          absl::StrJoin(artifact.versions, "\", \""), artifact.set_aside ? "true" : "false"));
    }
    std::cout << absl::StrFormat(
        "{\"versions\": %d, \"artifacts\": %d, \"bytes\": %d, \"damaged\": [%s], "
        "\"unnamed_artifacts\": %d, \"unnamed_bytes\": %d}\n",
        report.versions, report.artifacts, report.bytes, absl::StrJoin(damaged, ", "),
        report.unnamed_artifacts, report.unnamed_bytes);
    return;
  }
  for (const DamagedArtifact& artifact : report.damaged) {
    std::cout << absl::StrJoin(artifact.versions, ", ") << ": " << artifact.what
              << (artifact.set_aside ? " (set aside)" : "") << "\n";
  }
  std::cout << CountOf(report.versions, "version") << ", " << CountOf(report.artifacts, "artifact")
            << ", " << SizeText(report.bytes) << ": " << report.damaged.size() << " damaged; "
            << CountOf(report.unnamed_artifacts, "artifact") << " ("
            << SizeText(report.unnamed_bytes)
            << ") that no version uses, left for the garbage collector\n";
}

absl::Status RunCheck(const AdminArguments& arguments) {
  PHIMAP_ASSIGN_OR_RETURN(const AdminStore store, OpenAdminStore(arguments.store));
  ProgressLine progress("reading");
  PHIMAP_ASSIGN_OR_RETURN(const CheckReport report,
                          CheckStore(store, arguments.quarantine, progress.Callback()));
  PrintCheck(report, arguments.json);
  if (report.damaged.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kDataLoss, reason::kArtifactDamaged, "store",
                   absl::StrCat(CountOf(report.damaged.size(), "artifact"),
                                report.damaged.size() == 1 ? " is" : " are",
                                " damaged or missing; import exported files of those "
                                "versions, restore a backup, or build them again"));
}

absl::Status RunGc(const AdminArguments& arguments) {
  PHIMAP_ASSIGN_OR_RETURN(const AdminStore store, OpenAdminStore(arguments.store));
  GarbageCollector collector(store.database, store.blobs, ThisProgram());
  PHIMAP_ASSIGN_OR_RETURN(const GarbageReport report,
                          collector.Run(absl::Seconds(arguments.grace_seconds)));
  if (!report.busy_holder.empty()) {
    return MakeError(absl::StatusCode::kUnavailable, reason::kMaintenanceBusy, "store",
                     absl::StrCat(report.busy_holder, " is collecting garbage; try again"));
  }
  if (arguments.json) {
    std::cout << absl::StrFormat(
        "{\"listed\": %d, \"removed\": %d, \"unlinked_files\": %d, \"held\": %d}\n", report.listed,
        report.removed, report.remains, report.held);
    return absl::OkStatus();
  }
  std::cout << CountOf(report.removed, "artifact") << " removed, "
            << CountOf(report.remains, "file") << " unlinked; " << report.listed
            << " more found that no version uses; an artifact is removed when its grace time ("
            << arguments.grace_seconds << " s) is over; " << report.held
            << " kept for a backup under way\n";
  return absl::OkStatus();
}

absl::Status RunAction(const std::string& action, const AdminArguments& arguments) {
  PHIMAP_RETURN_IF_ERROR(CheckAddress(arguments.store));
  if (action == "gc") return RunGc(arguments);
  if (action == "backup") return RunBackup(arguments);
  if (action == "restore") return RunRestore(arguments);
  return RunCheck(arguments);
}

CLI::App* AddAction(CLI::App& admin, AdminArguments& arguments, const char* action,
                    const char* help) {
  CLI::App* command = admin.add_subcommand(action, help);
  command
      ->add_option("--store", arguments.store,
                   "The store itself: a server's --data_dir, or postgresql://USER@HOST/DATABASE")
      ->required();
  command->add_flag("--json", arguments.json, "Print one JSON object");
  return command;
}

void SayAdminError(const absl::Status& status) {
  std::cerr << "phimapd: " << status.message() << "\n";
  const std::optional<ErrorDetail> detail = DetailOf(status);
  if (detail.has_value() && detail->retry_delay_ms > 0) {
    std::cerr << "  try again in " << (detail->retry_delay_ms + 999) / 1000 << " s\n";
  }
}

}  // namespace

int RunAdmin(int argc, char** argv) {
  AdminArguments arguments;
  CLI::App admin("Check, back up, restore or clean up a store, while its servers run",
                 "phimapd admin");
  admin.footer(kAdminExitCodeHelp);
  admin.require_subcommand(1);
  CLI::App* check =
      AddAction(admin, arguments, "check",
                "Compare every artifact with its digest; exit code 1 if one is damaged or missing");
  check->add_flag("--quarantine", arguments.quarantine,
                  "Move damaged artifacts aside, so that an import can replace them");
  CLI::App* backup =
      AddAction(admin, arguments, "backup", "Copy a store to a folder while its servers run");
  backup->add_option("--to", arguments.to, "Folder, missing or empty")->required();
  backup->add_flag("--skip-damaged,--skip_damaged", arguments.skip_damaged,
                   "Leave damaged artifacts out of the backup; exit code 1 if there are any");
  CLI::App* restore =
      AddAction(admin, arguments, "restore",
                "Create a store from a backup, in a missing or empty folder, or in an empty "
                "database");
  restore->add_option("--from", arguments.from, "Folder of the backup")->required();
  CLI::App* gc = AddAction(admin, arguments, "gc",
                           "Remove artifacts that no version has used for a while, as servers do "
                           "regularly");
  gc->add_option(
        "--grace", arguments.grace_seconds,
        "Minimum seconds since a version last used an artifact, or since a file was last touched")
      ->check(IntegerFrom(kLeastGraceSeconds, int64_t{365} * 86'400))
      ->capture_default_str();
  try {
    admin.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      admin.exit(error);  // --help
      return static_cast<int>(ExitCode::kOk);
    }
    std::cerr << "phimapd: " << UsageText(admin, error) << "\n";
    return static_cast<int>(ExitCode::kBadInput);
  }
  // A write to a pipe without a reader fails instead of ending the process.
  std::signal(SIGPIPE, SIG_IGN);
  StopAtSignals();
  absl::Status status = RunAction(admin.get_subcommands().front()->get_name(), arguments);
  if (status.ok() && !std::cout.flush()) {
    status = absl::InternalError("writing to standard output failed");
  }
  if (!status.ok()) SayAdminError(status);
  return static_cast<int>(ExitCodeOf(status));
}

}  // namespace phimap
