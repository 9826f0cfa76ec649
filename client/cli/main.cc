// The command `phimap`.
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/cli/access_arguments.h"
#include "client/cli/admin_command.h"
#include "client/cli/advise_command.h"
#include "client/cli/alias_command.h"
#include "client/cli/bench_command.h"
#include "client/cli/build_command.h"
#include "client/cli/delete_command.h"
#include "client/cli/error_text.h"
#include "client/cli/evaluate_command.h"
#include "client/cli/exit_code.h"
#include "client/cli/export_command.h"
#include "client/cli/health_command.h"
#include "client/cli/import_command.h"
#include "client/cli/inspect_command.h"
#include "client/cli/interrupt.h"
#include "client/cli/keep_command.h"
#include "client/cli/list_command.h"
#include "client/cli/prune_command.h"
#include "client/cli/show_command.h"
#include "client/cli/transform_command.h"
#include "client/cli/usage_error.h"
#include "client/cli/verify_command.h"
#include "core/status/status_macros.h"

namespace phimap::cli {
namespace {

// All that the command line says.
struct Arguments {
  std::string server = "127.0.0.1:7450";
  AccessArguments access;
  BuildArguments build;
  TransformArguments transform;
  ListArguments list;
  ShowArguments show;
  VerifyArguments verify;
  HealthArguments health;
  BenchArguments bench;
  AdviseArguments advise;
  EvaluateArguments evaluate;
  AliasArguments alias;
  DeleteArguments erase;
  KeepArguments keep;
  PruneArguments prune;
  ExportArguments exported;
  ImportArguments imported;
  InspectArguments inspect;
  AdminArguments admin;
};

void AddInput(CLI::App& command, InputArguments& input, const char* label_help) {
  // One value an occurrence: what follows it may be the NAME.
  command
      .add_option("--input", input.paths,
                  "File of rows, by its extension csv, tsv, npy, svmlight or txt (a text on each "
                  "line), compressed by gzip or zstd or not; several, and patterns such as "
                  "'day-*.csv.gz', are one stream; - is standard input and needs --format")
      ->allow_extra_args(false);
  command.add_option("FILE", input.more_paths, "The same as --input=FILE");
  command
      .add_option(
          "--format", input.format,
          "Format of the input: csv (with a header), npy, svmlight (sparse rows), or text (one "
          "on each line, for kernels of strings)")
      ->check(CLI::IsMember({"csv", "npy", "svmlight", "text"}));
  command.add_option("--delimiter", input.delimiter,
                     "What parts the cells of a CSV file, as ';' or tab; a comma unless given, and "
                     "a tab in files named .tsv");
  command.add_option("--text", input.text,
                     "Column of the CSV file that holds texts, which are the examples");
  command.add_option("--label", input.choice.label, label_help);
  command.add_option("--exclude", input.choice.exclude,
                     "Column of the CSV file that is not an input; may be repeated");
  command.add_flag("--zero-based", input.zero_based,
                   "The indices of an svmlight file begin with 0, not with 1");
}

constexpr char kLabelHelp[] = "Column of the CSV file that is not an input";
constexpr char kColumnsHelp[] =
    "The inputs by name, in this order, of a CSV file: x1,x2; or how many columns rows from an "
    "svmlight file have. Those of the version unless given";

constexpr char kTtlHelp[] =
    "How long the version lives after its last use, as in 12h or 7d; for ever unless given";

void AddBuild(CLI::App& app, BuildArguments& build) {
  CLI::App* command = app.add_subcommand("build", "Build a version from rows without labels");
  command->add_option("NAME", build.name, "Name of the mapping")->required();
  AddInput(*command, build.input, kLabelHelp);
  command
      ->add_option("--mapping", build.mapping,
                   "As in 'f2(landmarks=500)', 'fourier(dimensions=512)' or "
                   "'random_projection(dimensions=256)'")
      ->required();
  command->add_option("--kernel", build.kernel,
                      "As in 'rbf(gamma=scale)'; a random projection needs none");
  command->add_flag("--standardize", build.standardize,
                    "Shift each column to mean 0 and scale it to variance 1");
  command->add_option("--seed", build.seed,
                      "Of all random choices, from 0 to 2^64 - 1; 0 unless given");
  command->add_option("--ttl", build.ttl, kTtlHelp);
  command->add_flag("--json", build.json, "Print the version, or the estimate, as JSON");
  command->add_flag("--dry-run", build.dry_run,
                    "Build nothing; print what it would take: memory, size, flops, seconds");
  command
      ->add_option("--rows", build.rows,
                   "Of a dry run: rows of the stream, instead of counting those of the input")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000'000}));
  command
      ->add_option("--columns", build.input.columns_given,
                   "The inputs by name, in this order, of a CSV file: x1,x2; or how many columns "
                   "rows from an svmlight file have, instead of its largest index; of a dry run: "
                   "how many columns the stream has, instead of those of the input")
      ->delimiter(',');
}

void AddTransform(CLI::App& app, TransformArguments& transform) {
  CLI::App* command = app.add_subcommand("transform", "Map rows to their features");
  command
      ->add_option("NAME[@VERSION]", transform.reference, "A mapping, newest version unless named")
      ->required();
  command
      ->add_option(
          "--output", transform.output,
          "File of features, by its extension csv or npy, which appears whole or not at all; - is "
          "standard output. To a pipe, npy needs an input that is npy too")
      ->required();
  command
      ->add_option(
          "--output-format", transform.output_format,
          "Format of the output: csv or npy. Unless given, what has no extension, as a pipe, is "
          "written as the input is, or as csv; another extension is refused")
      ->check(CLI::IsMember({"csv", "npy"}));
  AddInput(*command, transform.input, kLabelHelp);
  command->add_option("--columns", transform.input.columns_given, kColumnsHelp)->delimiter(',');
  command->add_option("--passthrough", transform.input.choice.passthrough,
                      "Column of the CSV file that is carried to the CSV output as it is, such as an "
                      "id; may be repeated");
  command->add_flag("--residual", transform.residual,
                    "One column more, the last: rho(x) = K(x,x) - |F(x)|^2, which bounds the error "
                    "of each row; of f2 only");
  command->add_flag("--resume", transform.resume,
                    "Keep the rows that are done in OUTPUT.partial if it is stopped; the same "
                    "command goes on from there, to the same bytes, with the same version");
  command
      ->add_option("--timeout", transform.timeout_seconds,
                   "Seconds for all rows together; no limit unless given")
      ->check(CLI::Range(0.01, 86'400.0));
}

void AddList(CLI::App& app, ListArguments& list) {
  CLI::App* command =
      app.add_subcommand("list", "List all mappings, or all versions of one, newest first");
  command->add_option("NAME", list.name, "A mapping, to list its versions");
  command->add_flag("--json", list.json, "Print them as JSON");
}

void AddShow(CLI::App& app, ShowArguments& show) {
  CLI::App* command = app.add_subcommand("show", "Show a version and its certificate");
  command->add_option("NAME[@VERSION]", show.reference, "A mapping, newest version unless named")
      ->required();
  command->add_flag("--json", show.json, "Print it as JSON");
}

void AddVerify(CLI::App& app, VerifyArguments& verify) {
  CLI::App* command =
      app.add_subcommand("verify", "Check that the server answers a version bit for bit");
  command->add_option("NAME[@VERSION]", verify.reference, "A mapping, newest version unless named")
      ->required();
}

void AddAdvise(CLI::App& app, AdviseArguments& advise) {
  CLI::App* command = app.add_subcommand(
      "advise", "Say how many landmarks and dimensions suffice, by the theorems of the papers");
  command->add_option(
      "--margin", advise.margin,
      "Margin of the separator, a cosine; divide one that is not by the largest |phi|");
  command->add_option("--error", advise.error, "Error that the mapping may add, as in 0.1")
      ->required();
  command
      ->add_option("--confidence", advise.confidence,
                   "Probability that it holds, 1 - delta, as in 0.95")
      ->required();
  command->add_option("--from-evaluation", advise.from_evaluation,
                      "In the place of --margin: what 'phimap evaluate --json' wrote; the least "
                      "share at which it certifies a margin, unless --alpha names one");
  command->add_option("--alpha", advise.alpha, "Share of the examples that misses the margin");
  command->add_option("--points", advise.points, "Points of a data set, for statements about all");
  command->add_option("--classes", advise.classes, "Classes, for statements about several");
  command->add_option("--distortion", advise.distortion,
                      "How far squared lengths may be off; what halves the margin unless given, "
                      "and 0.1 where there is none");
  command->add_option("--kernel-error", advise.kernel_error,
                      "How far random Fourier features may be off; 0.1 unless given");
  command->add_flag("--json", advise.json, "Print it as JSON");
}

void AddEvaluate(CLI::App& app, EvaluateArguments& evaluate) {
  CLI::App* command = app.add_subcommand(
      "evaluate", "Train and test a learner on labeled rows, and measure its margins");
  command
      ->add_option("NAME[@VERSION]", evaluate.reference,
                   "A mapping, newest version unless named; its features are learnt from")
      ->required();
  AddInput(*command, evaluate.input,
           "Column of the labels of a CSV file, which may be any texts; svmlight has them in "
           "front");
  command->add_option("--columns", evaluate.input.columns_given, kColumnsHelp)->delimiter(',');
  command
      ->add_option("--learner", evaluate.learner,
                   "As in 'perceptron(epochs=20)', 'winnow()', 'weak_learner()' or 'kernel_svm()'")
      ->capture_default_str();
  CLI::Option* const held_out = command->add_option(
      "--held-out", evaluate.held_out, "Share of the rows that is tested; 0.3 unless given");
  command->add_option("--folds", evaluate.folds, "Test every row, in so many folds")
      ->excludes(held_out);
  command->add_option("--seed", evaluate.seed,
                      "Of the split and the learner, from 0 to 2^64 - 1; 0 unless given");
  command->add_option("--confidence", evaluate.confidence,
                      "Of what is certified for rows to come; 0.95 unless given");
  command->add_flag("--json", evaluate.json, "Print it as JSON");
}

CLI::App* AddAliasAction(CLI::App& alias, AliasArguments& arguments, const char* action,
                         const char* help) {
  CLI::App* command = alias.add_subcommand(action, help);
  command->callback([&arguments, action] { arguments.action = action; });
  return command;
}

void AddAlias(CLI::App& app, AliasArguments& arguments) {
  CLI::App* alias =
      app.add_subcommand("alias", "Give versions names that move: set, rollback, delete, list");
  alias->require_subcommand(1);
  constexpr char kName[] = "Mapping and alias, as in letters@prod";
  constexpr char kEtagHelp[] =
      "Only if the alias has this etag (`phimap alias list` shows it); '*': only if it exists; "
      "'none': only if it does not";
  CLI::App* set = AddAliasAction(
      *alias, arguments, "set",
      "Point an alias at a version, which is loaded first: no call waits or fails for it");
  set->add_option("NAME@ALIAS", arguments.name, kName)->required();
  set->add_option("VERSION", arguments.version,
                  "Number of the version, or sha256: and at least 7 digits of its digest")
      ->required();
  set->add_option("--etag", arguments.etag, kEtagHelp);
  set->add_flag("--json", arguments.json, "Print the alias as JSON");
  CLI::App* rollback =
      AddAliasAction(*alias, arguments, "rollback",
                     "Point an alias back at where it pointed before; twice is back again");
  rollback->add_option("NAME@ALIAS", arguments.name, kName)->required();
  rollback->add_flag("--json", arguments.json, "Print the alias as JSON");
  CLI::App* erase = AddAliasAction(*alias, arguments, "delete", "Delete an alias, not its version");
  erase->add_option("NAME@ALIAS", arguments.name, kName)->required();
  erase->add_option("--etag", arguments.etag, kEtagHelp);
  CLI::App* list =
      AddAliasAction(*alias, arguments, "list", "List the aliases, with where they pointed before");
  list->add_option("NAME", arguments.name, "A mapping; all unless named");
  list->add_flag("--json", arguments.json, "Print mappings with their aliases as JSON");
}

void AddDelete(CLI::App& app, DeleteArguments& erase) {
  CLI::App* command = app.add_subcommand(
      "delete", "Delete a version, or a mapping; refused while an alias points there");
  command
      ->add_option("NAME@VERSION", erase.reference,
                   "A version by its number or digest, or a mapping's name with --all-versions")
      ->required();
  command->add_flag("--all-versions", erase.all_versions,
                    "Delete the mapping with all its versions; its numbers are not used again");
  command->add_flag("--give-up-rollback", erase.give_up_rollback,
                    "Also if `phimap alias rollback` would lead back to the version");
}

void AddKeep(CLI::App& app, KeepArguments& keep) {
  CLI::App* command =
      app.add_subcommand("keep", "Let a version live for ever, or for a time after its last use");
  command->add_option("NAME[@VERSION]", keep.reference, "A mapping, newest version unless named")
      ->required();
  command->add_option("--ttl", keep.ttl, kTtlHelp);
  command->add_flag("--json", keep.json, "Print the version as JSON");
}

void AddPrune(CLI::App& app, PruneArguments& prune) {
  CLI::App* command = app.add_subcommand(
      "prune", "Delete the versions of all mappings whose names match, as in 'f2-*'");
  command
      ->add_option("PATTERN", prune.pattern,
                   "Of mapping names, in quotes: * is any letters, ? one, [ab] one of these")
      ->required();
  command->add_flag("--unaliased", prune.unaliased,
                    "Pass over versions that an alias names or would be rolled back to; without "
                    "this they are an error");
  command->add_option("--older-than", prune.older_than,
                      "Only versions that were created so long ago, as in 12h or 7d");
  command->add_flag("--dry-run", prune.dry_run, "Delete nothing; list what would be deleted");
  command->add_flag("--yes", prune.yes, "Do not ask");
  command->add_flag("--json", prune.json, "Print the versions as JSON");
}

void AddExport(CLI::App& app, ExportArguments& exported) {
  CLI::App* command =
      app.add_subcommand("export", "Write a version to a file that another server can import");
  command
      ->add_option("NAME[@VERSION]", exported.reference, "A mapping, newest version unless named")
      ->required();
  command
      ->add_option("-o,--output", exported.output,
                   "File, which appears whole and checked or not at all; - is standard output")
      ->required();
}

void AddImport(CLI::App& app, ImportArguments& imported) {
  CLI::App* command = app.add_subcommand(
      "import", "Store an exported file as a version; safe to repeat, the same file adds nothing");
  command->add_option("FILE", imported.input, "Exported file; - is standard input")->required();
  command->add_option("--name", imported.name,
                      "Name of the mapping that gets the version; unless given, that of FILE up to "
                      "its first '@' or '.', so letters for letters@3.phimap");
  command->add_flag("--json", imported.json, "Print the version as JSON");
}

void AddInspect(CLI::App& app, InspectArguments& inspect) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Check an exported file and show what it holds; asks no server");
  command->add_option("FILE", inspect.input, "Exported file; - is standard input")->required();
  command->add_flag("--json", inspect.json, "Print it as JSON: a version without a name");
}

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

void AddAdmin(CLI::App& app, AdminArguments& arguments) {
  CLI::App* admin = app.add_subcommand(
      "admin", "Look after a store, beside its servers: check, backup, restore, gc");
  admin->require_subcommand(1);
  CLI::App* check = AddAdminAction(*admin, arguments, "check",
                                   "Read every artifact against its digest; exit code 1 if one is "
                                   "damaged or missing");
  check->add_flag("--quarantine", arguments.quarantine,
                  "Set damaged artifacts aside; importing them again heals");
  CLI::App* backup =
      AddAdminAction(*admin, arguments, "backup", "Copy a store to a folder while servers work");
  backup->add_option("--to", arguments.to, "Folder, missing or empty")->required();
  CLI::App* restore = AddAdminAction(*admin, arguments, "restore",
                                     "Make a store of a backup: in a folder that is missing or "
                                     "empty, or in an empty database");
  restore->add_option("--from", arguments.from, "Folder of the backup")->required();
  CLI::App* gc =
      AddAdminAction(*admin, arguments, "gc",
                     "Remove artifacts that no version has named for a while, as servers "
                     "do by themselves");
  gc->add_option("--grace", arguments.grace_seconds,
                 "Seconds that an artifact was not named, or a file not touched")
      ->check(CLI::Range(kLeastGraceSeconds, int64_t{365} * 86'400))
      ->capture_default_str();
}

void AddHealth(CLI::App& app, HealthArguments& health) {
  CLI::App* command =
      app.add_subcommand("health", "Ask the server whether it serves: exit code 0 if it does");
  command->add_option("SERVICE", health.service,
                      "As in phimap.v1.TransformService; the server as a whole unless named");
  command
      ->add_option("--timeout", health.timeout_seconds,
                   "Seconds for the connection and the answer together")
      ->check(CLI::Range(0.01, 3'600.0))
      ->capture_default_str();
}

void AddBenchLoad(CLI::App& command, LoadOptions& load) {
  CLI::Option* const callers =
      command.add_option("--callers", load.callers, "Closed loop: each sends when it was answered")
          ->check(CLI::Range(1, 10'000))
          ->capture_default_str();
  command
      .add_option("--rate", load.rate,
                  "Open loop: calls per second, whatever becomes of them; latency counts from when "
                  "a call was due")
      ->check(CLI::Range(0.001, 1e7))
      ->excludes(callers);
  command.add_option("--rows", load.rows, "Rows of a call")
      ->check(CLI::Range(1, 65'536))
      ->capture_default_str();
  command.add_option("--seconds", load.seconds, "How long to measure")
      ->check(CLI::Range(0.01, 86'400.0))
      ->capture_default_str();
  command.add_option("--warmup", load.warmup_seconds, "Seconds before, not measured")
      ->check(CLI::Range(0.0, 86'400.0))
      ->capture_default_str();
  command.add_option("--timeout", load.timeout_seconds, "Deadline of a call, in seconds")
      ->check(CLI::Range(1.0, 86'400.0))
      ->capture_default_str();
}

void AddBench(CLI::App& app, BenchArguments& bench) {
  CLI::App* command = app.add_subcommand("bench", "Load a server and measure it");
  command
      ->add_option("NAME[@VERSION]", bench.load.reference, "A mapping, newest version unless named")
      ->required();
  AddBenchLoad(*command, bench.load);
  command
      ->add_option("--protocol", bench.load.protocol,
                   "What the calls are: native (Transform) or inference (ModelInfer of the Open "
                   "Inference Protocol)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, BenchProtocol>{
          {"native", BenchProtocol::kNative}, {"inference", BenchProtocol::kInference}}))
      ->default_str("native");
  command
      ->add_option("--connections,--channels", bench.load.channels,
                   "Connections, which callers are spread over; several callers of one connection "
                   "are as many calls at a time on it")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  command
      ->add_option("--max_in_flight", bench.load.max_in_flight, "Unanswered calls of an open loop")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--columns", bench.load.columns, "Columns of a row; the server is asked")
      ->check(CLI::Range(1, 65'536));
  command->add_option("--server_pid", bench.load.server_pid,
                      "The server's process on this machine, to measure its CPU and memory");
  command->add_flag("--json", bench.json, "Print one JSON object");
}

void AddAccess(CLI::App& app, AccessArguments& access) {
  app.add_option("--tls_ca", access.tls.ca_file,
                 "Connect with TLS to a server whose certificate these authorities signed (PEM)")
      ->envname("PHIMAP_TLS_CA");
  app.add_option("--tls_certificate", access.tls.certificate_file,
                 "Certificate of this client (PEM), for a server that asks for one")
      ->envname("PHIMAP_TLS_CERTIFICATE");
  app.add_option("--tls_key", access.tls.key_file, "Its private key (PEM)")
      ->envname("PHIMAP_TLS_KEY");
  app.add_option("--tls_server_name", access.tls.server_name,
                 "Name that the server's certificate holds for, if it is not the HOST of --server")
      ->envname("PHIMAP_TLS_SERVER_NAME");
  CLI::Option* const file = app.add_option("--token_file", access.token_file,
                                           "File whose first line is the token to call with");
  app.add_option("--token", access.token,
                 "The token itself, which every user of this machine can then see; better is "
                 "--token_file, or PHIMAP_TOKEN in the environment")
      ->excludes(file);
}

absl::Status Dispatch(const std::string& command, const Arguments& arguments) {
  if (command == "inspect") {
    return RunInspect(arguments.inspect, StandardErrorConsole().width, std::cout);
  }
  if (command == "admin") {
    client::CancelToken cancel;
    const Interrupt interrupt(cancel);
    return RunAdmin(arguments.admin, std::cout, StandardErrorConsole(), cancel);
  }
  PHIMAP_ASSIGN_OR_RETURN(const client::ConnectOptions connect, ToConnectOptions(arguments.access));
  PHIMAP_ASSIGN_OR_RETURN(const std::unique_ptr<client::Client> client,
                          client::Client::Connect(arguments.server, connect));
  client::CancelToken cancel;
  CommandContext context{*client, std::cout, StandardErrorConsole(), cancel};
  if (command == "list") return RunList(arguments.list, context);
  if (command == "show") return RunShow(arguments.show, context);
  if (command == "verify") return RunVerify(arguments.verify, context);
  if (command == "advise") return RunAdvise(arguments.advise, context);
  if (command == "health") return RunHealth(arguments.health, context);
  if (command == "alias") return RunAlias(arguments.alias, context);
  if (command == "delete") return RunDelete(arguments.erase, context);
  if (command == "keep") return RunKeep(arguments.keep, context);
  if (command == "prune") {
    PruneArguments prune = arguments.prune;
    if (isatty(STDIN_FILENO) != 0) prune.answers = &std::cin;
    return RunPrune(prune, context);
  }
  const Interrupt interrupt(cancel);
  if (command == "bench") {
    BenchArguments bench = arguments.bench;
    bench.load.target = arguments.server;
    bench.load.connect = connect;
    return RunBench(bench, context);
  }
  if (command == "evaluate") return RunEvaluate(arguments.evaluate, context);
  if (command == "build") return RunBuild(arguments.build, context);
  if (command == "export") return RunExport(arguments.exported, context);
  if (command == "import") return RunImport(arguments.imported, context);
  return RunTransform(arguments.transform, context);
}

bool IsFlag(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

// The commands that were named, from phimap itself to the innermost.
std::vector<const CLI::App*> CommandsNamed(const CLI::App& app) {
  std::vector<const CLI::App*> commands = {&app};
  while (!commands.back()->get_subcommands().empty()) {
    commands.push_back(commands.back()->get_subcommands().front());
  }
  return commands;
}

// A flag that there is not is the error to be named, whatever else is missing or left over for it.
// Says so if there is one.
bool SayWhichFlagIsUnknown(const CLI::App& app) {
  std::vector<std::string> known;
  std::string names;
  for (const CLI::App* command : CommandsNamed(app)) {
    names += (names.empty() ? "" : " ") + command->get_name();
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      for (const std::string& name : option->get_snames()) known.push_back("-" + name);
    }
  }
  for (const std::string& word : app.remaining(/*recurse=*/true)) {
    if (!IsFlag(word)) continue;
    std::cerr << "phimap: " << UnknownFlagText(word, known) << "\n  the flags are listed by '"
              << names << " --help'\n";
    return true;
  }
  return false;
}

// The library drops a word that it takes for a command, and says only that a command is missing.
void SayWhichCommandsThereAre(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands(/*filter=*/nullptr)) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  for (const std::string& word : app.remaining()) {
    if (IsFlag(word)) continue;
    std::cerr << "phimap: there is no command '" << word << "'; the commands are " << names << "\n";
    return;
  }
  std::cerr << "phimap: a command is missing; the commands are " << names << "\n";
}

int RefuseUsage(const CLI::App& app, const CLI::ParseError& error) {
  const bool help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
  const std::vector<std::string> words = app.remaining();
  const bool no_command = error.get_name() == "RequiredError" && app.get_subcommands().empty();
  if (no_command && !std::all_of(words.begin(), words.end(), IsFlag)) {
    SayWhichCommandsThereAre(app);
  } else if (help || !SayWhichFlagIsUnknown(app)) {
    no_command ? SayWhichCommandsThereAre(app) : static_cast<void>(app.exit(error));
  }
  return static_cast<int>(help ? ExitCode::kOk : ExitCode::kBadInput);
}

int Run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "phimap: kernels as features. Data goes to standard output, messages to standard error.",
      "phimap");
  app.add_option(
         "--server", arguments.server,
         "HOST:PORT, unix:PATH, or several: ipv4:ADDRESS:PORT,ADDRESS:PORT or dns:///HOST:PORT")
      ->envname("PHIMAP_SERVER")
      ->capture_default_str();
  AddAccess(app, arguments.access);
  app.set_version_flag("--version", "phimap " PHIMAP_VERSION, "Print the version and exit");
  app.require_subcommand(1);
  app.fallthrough();  // --server may follow the subcommand.
  app.footer(ExitCodeHelp());
  AddBuild(app, arguments.build);
  AddTransform(app, arguments.transform);
  AddList(app, arguments.list);
  AddShow(app, arguments.show);
  AddVerify(app, arguments.verify);
  AddAdvise(app, arguments.advise);
  AddEvaluate(app, arguments.evaluate);
  AddAlias(app, arguments.alias);
  AddDelete(app, arguments.erase);
  AddKeep(app, arguments.keep);
  AddPrune(app, arguments.prune);
  AddExport(app, arguments.exported);
  AddImport(app, arguments.imported);
  AddInspect(app, arguments.inspect);
  AddAdmin(app, arguments.admin);
  AddHealth(app, arguments.health);
  AddBench(app, arguments.bench);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return RefuseUsage(app, error);  // --help arrives here too.
  }
  const std::string command = app.get_subcommands().front()->get_name();
  absl::Status status = Dispatch(command, arguments);
  if (status.ok() && !std::cout.flush())
    status = absl::InternalError("writing standard output failed");
  // Who asks for JSON is a program, and compares the API's names.
  const bool json = arguments.advise.json || arguments.evaluate.json || arguments.build.json ||
                    arguments.list.json || arguments.show.json || arguments.bench.json ||
                    arguments.alias.json || arguments.imported.json || arguments.inspect.json ||
                    arguments.keep.json || arguments.prune.json;
  if (!status.ok()) {
    std::cerr << ErrorText(status, arguments.server, json ? "" : command) << std::flush;
  }
  return static_cast<int>(ExitCodeOf(status));
}

}  // namespace
}  // namespace phimap::cli

int main(int argc, char** argv) {
  // Debian's Abseil looks for cycles of locks at every lock that gRPC takes, as if it were
  // debugged.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Answers of half a MiB are freed and allocated again and again: given back to the system each
  // time, they cost 600,000 page faults in 500,000 rows of 8 KiB, a third of the time.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  // A closed descriptor 0, 1 or 2 would become gRPC's, and be read or written as if it were the
  // user's.
  while (true) {
    const int descriptor = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (descriptor > 2) close(descriptor);
    if (descriptor < 0 || descriptor > 2) break;
  }
  // While no call is under way gRPC looks this often whether a connection has come up; 5 seconds
  // unless it is told, which no wait before a retry outlasts.
  setenv("GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS", "200", /*overwrite=*/0);
  // A reader that is gone makes a write fail, which ends the command if the write was of data; what
  // is said to a dead standard error is dropped.
  std::signal(SIGPIPE, SIG_IGN);
  return phimap::cli::Run(argc, argv);
}
