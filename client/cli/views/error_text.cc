#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/views/views.h"
#include "core/status/error.h"
#include "core/status/words.h"

namespace phimap::cli {
namespace {

constexpr char kInputRow[] = "input_row";

// Command-line option for a field of the API and for the fields inside it.
struct OptionOfField {
  // The commands that have the option, separated by spaces; empty means every command.
  absl::string_view commands;
  absl::string_view field;
  absl::string_view option;
};

constexpr OptionOfField kOptions[] = {
    {"build train tune", "name", "NAME"},
    {"build sweep train", "spec", "--spec"},
    {"build sweep train tune", "column_names", "--input"},
    {"build sweep train", "kernel", "--kernel"},
    {"build sweep train", "standardize", "--standardize"},
    {"build sweep", "seed", "--seed"},
    {"build train tune", "ttl", "--ttl"},
    {"tune", "budget", "--budget"},
    {"tune", "max_landmarks", "--max-landmarks"},
    {"build sweep", "examples", "--input"},
    {"transform predict", "examples", "--input"},
    {"evaluate train predict", "reference", "NAME[@VERSION]"},
    {"evaluate sweep train tune", "learner", "--learner"},
    {"train tune", "task", "--task"},
    {"train tune", "seed", "--seed"},
    {"train tune", "examples.weights", "--weights"},
    {"train tune", "examples.parts", "--parts"},
    {"predict", "scores", "--scores"},
    {"predict", "probabilities", "--probabilities"},
    {"predict", "deviations", "--deviations"},
    {"predict", "confidence", "--confidence"},
    {"evaluate", "held_out", "--held-out"},
    {"evaluate", "folds", "--folds"},
    {"evaluate", "confidence", "--confidence"},
    {"evaluate sweep train tune", "examples.labels", "--label"},
    {"evaluate train tune", "examples", "--input"},
    {"bench", "examples.dense.columns", "--columns"},
    {"bench", "examples.dense.rows", "--rows"},
    {"bench", "inputs[x].shape", "--columns"},
    {"bench", "inputs[x].rows", "--rows"},
    {"bench", "model_name", "NAME[@VERSION]"},
    {"bench", "model_version", "NAME[@VERSION]"},
    {"advise", "margin", "--margin"},
    {"advise", "error", "--error"},
    {"advise", "confidence", "--confidence"},
    {"advise", "alpha", "--alpha"},
    {"advise", "points", "--points"},
    {"advise", "classes", "--classes"},
    {"advise", "distortion", "--distortion"},
    {"advise", "kernel_error", "--kernel-error"},
    {"alias", "name", "NAME@ALIAS"},
    {"alias", "alias", "NAME@ALIAS"},
    {"alias", "reference", "VERSION"},
    {"alias", "etag", "--etag"},
    {"keep", "ttl", "--ttl"},
    {"delete", "name", "NAME@VERSION"},
    {"delete", "reference", "NAME@VERSION"},
    {"delete", "give_up_rollback", "--give-up-rollback"},
    {"import", "name", "--name"},
    {"import", "chunk", "FILE"},
    {"import", "digest", "FILE"},
    {"", "reference", "NAME[@VERSION]"},
    {"", "server", "--server"},
    {"", "tls.ca_file", "--tls_ca"},
    {"", "tls.certificate_file", "--tls_certificate"},
    {"", "tls.key_file", "--tls_key"},
};

// Returns whether `field` is `outer` or inside it.
bool IsWithin(absl::string_view field, absl::string_view outer) {
  if (!absl::ConsumePrefix(&field, outer)) return false;
  return field.empty() || field[0] == '.';
}

// "landmarks: ", "--input, row 7: ", or "" if no field is at fault.
std::string PlaceOf(const ErrorDetail& detail, absl::string_view command) {
  if (detail.field.empty()) return "";
  // An error of this process has the fields of a spec where a client of a server has taken the
  // word away (client/cpp/grpc_status.cc).
  absl::string_view field = detail.field;
  absl::ConsumePrefix(&field, "spec.");
  for (const OptionOfField& entry : kOptions) {
    if (!entry.commands.empty() &&
        !absl::c_linear_search(absl::StrSplit(entry.commands, ' '), command)) {
      continue;
    }
    if (!IsWithin(field, entry.field)) continue;
    std::string place(entry.option);
    const auto row = detail.metadata.find(kInputRow);
    if (row != detail.metadata.end()) absl::StrAppend(&place, ", row ", row->second);
    return absl::StrCat(place, ": ");
  }
  return absl::StrCat(field, ": ");
}

std::string InWordsOf(absl::string_view command, const ErrorDetail& detail,
                      absl::string_view message) {
  // Drops the number of the request, because the user did not choose how rows were divided.
  const auto request = detail.metadata.find("request");
  if (request != detail.metadata.end()) {
    absl::ConsumePrefix(&message, absl::StrCat("request ", request->second, ": "));
  }
  return absl::StrCat(PlaceOf(detail, command), message);
}

// More columns than the version has usually mean that a label or an id was not excluded.
std::string ColumnsHint(const ErrorDetail& detail, absl::string_view command) {
  if (detail.reason != reason::kColumnsMismatch || command != "transform") return "";
  const auto expected = detail.metadata.find("expected");
  const auto actual = detail.metadata.find("actual");
  if (expected == detail.metadata.end() || actual == detail.metadata.end()) return "";
  int64_t columns = 0;
  int64_t came = 0;
  const bool numbers =
      absl::SimpleAtoi(expected->second, &columns) && absl::SimpleAtoi(actual->second, &came);
  if (!numbers || came <= columns) return "";
  return absl::StrCat("  got ", CountOf(came, "column"), ", ", came - columns,
                      " more than the version maps; for a CSV file, --exclude=COLUMN leaves out "
                      "a label or an id, and --passthrough=COLUMN copies it to the output\n");
}

// The header of a CSV file names the columns, which values of a kernel must not have.
std::string NamesHint(const ErrorDetail& detail, absl::string_view command) {
  if (detail.reason != reason::kColumnNamesInvalid || command.empty()) return "";
  const auto expected = detail.metadata.find("expected");
  if (expected == detail.metadata.end() || expected->second != "0") return "";
  return "  the header of a CSV file names its columns; give such rows as an npy file, which has "
         "no "
         "names\n";
}

// Whether a server may be started at this address here.
bool IsOfThisMachine(absl::string_view server) {
  if (absl::StrContains(server, ',')) return false;
  return absl::StartsWith(server, "127.") || absl::StartsWith(server, "localhost:") ||
         absl::StartsWith(server, "[::1]:") || absl::StartsWith(server, "unix:/");
}

}  // namespace

std::string ErrorText(const absl::Status& status, absl::string_view server,
                      absl::string_view command) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  // Only an error without details comes from gRPC itself, which could not reach a server.
  if (absl::IsUnavailable(status) && !detail.has_value()) {
    return absl::StrCat(
        "phimap: no server answers at ", server, " (", status.message(), ")\n",
        IsOfThisMachine(server)
            ? absl::StrCat("  start one:    phimapd --data_dir=DIR --listen=", server, "\n")
            : "",
        "  or name one:  --server=HOST:PORT, or PHIMAP_SERVER in the environment\n",
        absl::StrContains(status.message(), "peer certificate")
            ? "  with TLS:     --tls_server_name=NAME, a name that its certificate has\n"
            : "  with TLS:     --tls_ca=FILE, or PHIMAP_TLS_CA in the environment\n");
  }
  if (!detail.has_value()) return absl::StrCat("phimap: ", status.message(), "\n");
  std::string text =
      absl::StrCat("phimap: ",
                   command.empty() ? std::string(status.message())
                                   : InWordsOf(command, *detail, WithoutField(status)),
                   "\n");
  absl::StrAppend(&text, ColumnsHint(*detail, command), NamesHint(*detail, command));
  if (detail->retry_delay_ms > 0) {
    absl::StrAppend(&text, "  try again in ", (detail->retry_delay_ms + 999) / 1000, " s\n");
  }
  return text;
}

absl::Status WithInputRow(const absl::Status& status, int64_t rows_before) {
  std::optional<ErrorDetail> detail = DetailOf(status);
  int64_t row = 0;
  if (!detail.has_value() || !absl::SimpleAtoi(detail->metadata["row"], &row)) return status;
  detail->metadata[kInputRow] = absl::StrCat(rows_before + row + 1);  // People count from 1.
  return MakeError(status.code(), detail->reason, detail->field, WithoutField(status),
                   detail->metadata, detail->retry_delay_ms);
}

}  // namespace phimap::cli
