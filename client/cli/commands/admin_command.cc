#include "client/cli/commands/admin_command.h"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/views/number_text.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/admin/admin_store.h"
#include "server/admin/store_backup.h"
#include "server/admin/store_check.h"
#include "server/files/file_system.h"
#include "server/store/garbage_collector.h"

namespace phimap::cli {
namespace {

std::string ThisProgram() {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat("phimap admin ", getpid(), " on ", host);
}

// Returns a callback that draws the progress and stops the work when the user cancels.
AdminProgress ProgressOf(ProgressBar& bar, std::string phase, client::CancelToken& cancel) {
  return [&bar, phase = std::move(phase), &cancel](int64_t done, int64_t total) {
    const double share =
        static_cast<double>(done) / static_cast<double>(std::max<int64_t>(total, 1));
    bar.Update({.label = "artifacts",
                .rows = done,
                .total_rows = total,
                .phase = phase,
                .fraction = share});
    return !cancel.cancelled();
  };
}

void PrintReport(const BackupReport& report, absl::string_view done, const std::string& where,
                 bool json, std::ostream& out) {
  if (json) {
    out << absl::StrFormat(
        "{\"mappings\": %d, \"versions\": %d, \"aliases\": %d, \"artifacts\": %d, \"bytes\": %d, "
        "\"revision\": %d}\n",
        report.mappings, report.versions, report.aliases, report.artifacts, report.bytes,
        report.revision);
    return;
  }
  out << done << " " << where << ": " << report.versions << " versions of " << report.mappings
      << " mappings, " << report.aliases << " aliases, " << report.artifacts << " artifacts, "
      << SizeText(report.bytes) << "\n";
}

absl::Status RunBackup(const AdminArguments& arguments, std::ostream& out, ProgressBar& bar,
                       client::CancelToken& cancel) {
  PHIMAP_ASSIGN_OR_RETURN(const AdminStore store, OpenAdminStore(arguments.store));
  PHIMAP_ASSIGN_OR_RETURN(const BackupReport report,
                          BackUp(store, arguments.to, ThisProgram(), PosixFileSystem(),
                                 ProgressOf(bar, "copying", cancel), arguments.skip_damaged));
  PrintReport(report, "backed up to", arguments.to, arguments.json, out);
  if (report.damaged.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kDataLoss, "ARTIFACT_DAMAGED", "--store",
                   absl::StrCat("the backup lacks ", report.damaged.size(),
                                " artifacts, which its damaged.txt lists: ",
                                absl::StrJoin(report.damaged, "; ")));
}

absl::Status RunRestore(const AdminArguments& arguments, std::ostream& out, ProgressBar& bar,
                        client::CancelToken& cancel) {
  PHIMAP_ASSIGN_OR_RETURN(const BackupReport report,
                          Restore(arguments.from, arguments.store, PosixFileSystem(),
                                  ProgressOf(bar, "restoring", cancel)));
  // A PostgreSQL address may contain a password.
  const bool on_postgres = IsPostgres(arguments.store);
  PrintReport(report, "restored", on_postgres ? "into the database" : arguments.store,
              arguments.json, out);
  return absl::OkStatus();
}

void PrintCheck(const CheckReport& report, bool json, std::ostream& out) {
  if (json) {
    std::vector<std::string> damaged;
    for (const DamagedArtifact& artifact : report.damaged) {
      damaged.push_back(absl::StrFormat(
          "{\"digest\": \"%s\", \"versions\": [\"%s\"], \"set_aside\": %s}", artifact.digest,
          absl::StrJoin(artifact.versions, "\", \""), artifact.set_aside ? "true" : "false"));
    }
    out << absl::StrFormat(
        "{\"versions\": %d, \"artifacts\": %d, \"bytes\": %d, \"damaged\": [%s], "
        "\"unnamed_artifacts\": %d, \"unnamed_bytes\": %d}\n",
        report.versions, report.artifacts, report.bytes, absl::StrJoin(damaged, ", "),
        report.unnamed_artifacts, report.unnamed_bytes);
    return;
  }
  for (const DamagedArtifact& artifact : report.damaged) {
    out << absl::StrJoin(artifact.versions, ", ") << ": " << artifact.what
        << (artifact.set_aside ? " (set aside)" : "") << "\n";
  }
  out << report.versions << " versions, " << report.artifacts << " artifacts, "
      << SizeText(report.bytes) << ": " << report.damaged.size() << " damaged; "
      << report.unnamed_artifacts << " artifacts (" << SizeText(report.unnamed_bytes)
      << ") that no version uses, left for the garbage collector\n";
}

absl::Status RunCheck(const AdminArguments& arguments, std::ostream& out, ProgressBar& bar,
                      client::CancelToken& cancel) {
  PHIMAP_ASSIGN_OR_RETURN(const AdminStore store, OpenAdminStore(arguments.store));
  PHIMAP_ASSIGN_OR_RETURN(const CheckReport report, CheckStore(store, arguments.quarantine,
                                                               ProgressOf(bar, "reading", cancel)));
  PrintCheck(report, arguments.json, out);
  if (report.damaged.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kDataLoss, "ARTIFACT_DAMAGED", "store",
                   absl::StrCat(report.damaged.size(),
                                " artifacts are damaged or missing; import exported files of those "
                                "versions, restore a backup, or build them again"));
}

absl::Status RunGc(const AdminArguments& arguments, std::ostream& out) {
  PHIMAP_ASSIGN_OR_RETURN(const AdminStore store, OpenAdminStore(arguments.store));
  GarbageCollector collector(store.database, store.blobs, ThisProgram());
  PHIMAP_ASSIGN_OR_RETURN(const GarbageReport report,
                          collector.Run(absl::Seconds(arguments.grace_seconds)));
  if (!report.busy_holder.empty()) {
    return MakeError(absl::StatusCode::kUnavailable, "MAINTENANCE_BUSY", "store",
                     absl::StrCat(report.busy_holder, " is collecting garbage; try again"));
  }
  if (arguments.json) {
    out << absl::StrFormat(
        "{\"listed\": %d, \"removed\": %d, \"unlinked_files\": %d, \"held\": %d}\n", report.listed,
        report.removed, report.remains, report.held);
    return absl::OkStatus();
  }
  out << report.removed << " artifacts removed, " << report.remains << " files unlinked; "
      << report.listed
      << " more found that no version uses; an artifact is removed when its grace time ("
      << arguments.grace_seconds << " s) is over; " << report.held
      << " kept for a backup under way\n";
  return absl::OkStatus();
}

}  // namespace

absl::Status RunAdmin(const AdminArguments& arguments, std::ostream& out, const Console& console,
                      client::CancelToken& cancel) {
  PHIMAP_RETURN_IF_ERROR(CheckAddress(arguments.store));
  if (arguments.action == "gc") return RunGc(arguments, out);
  ProgressBar bar(console);
  if (arguments.action == "backup") return RunBackup(arguments, out, bar, cancel);
  if (arguments.action == "restore") return RunRestore(arguments, out, bar, cancel);
  return RunCheck(arguments, out, bar, cancel);
}

namespace {

CLI::App* AddAdminAction(CLI::App& admin, AdminArguments& arguments, const char* action,
                         const char* help) {
  CLI::App* command = admin.add_subcommand(action, help);
  command->callback([&arguments, action] { arguments.action = action; });
  command
      ->add_option("--store", arguments.store,
                   "The store itself: a server's --data_dir, or postgresql://USER@HOST/DATABASE")
      ->required();
  command->add_flag("--json", arguments.json, "Print one JSON object");
  return command;
}

}  // namespace

Command AddAdmin(CLI::App& app) {
  auto kept = std::make_shared<AdminArguments>();
  AdminArguments& arguments = *kept;
  CLI::App* admin = app.add_subcommand(
      "admin", "Check, back up, restore or clean up a store, while its servers run");
  admin->require_subcommand(1);
  CLI::App* check = AddAdminAction(
      *admin, arguments, "check",
      "Compare every artifact with its digest; exit code 1 if one is damaged or missing");
  check->add_flag("--quarantine", arguments.quarantine,
                  "Move damaged artifacts aside, so that an import can replace them");
  CLI::App* backup =
      AddAdminAction(*admin, arguments, "backup", "Copy a store to a folder while its servers run");
  backup->add_option("--to", arguments.to, "Folder, missing or empty")->required();
  backup->add_flag("--skip-damaged", arguments.skip_damaged,
                   "Leave damaged artifacts out of the backup; exit code 1 if there are any");
  CLI::App* restore = AddAdminAction(
      *admin, arguments, "restore",
      "Create a store from a backup, in a missing or empty folder, or in an empty database");
  restore->add_option("--from", arguments.from, "Folder of the backup")->required();
  CLI::App* gc = AddAdminAction(
      *admin, arguments, "gc",
      "Remove artifacts that no version has used for a while, as servers do regularly");
  gc->add_option(
        "--grace", arguments.grace_seconds,
        "Minimum seconds since a version last used an artifact, or since a file was last touched")
      ->check(CLI::Range(kLeastGraceSeconds, int64_t{365} * 86'400))
      ->capture_default_str();
  return {.app = admin,
          .run_locally =
              [kept](LocalContext& context) {
                return RunAdmin(*kept, context.out, context.console, context.cancel);
              },
          .interruptible = true};
}

}  // namespace phimap::cli
