#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/views/views.h"
#include "core/status/error.h"

namespace phimap::cli {
namespace {

constexpr char kInputRow[] = "input_row";

// Command-line option for a field of the API and for the fields inside it.
struct OptionOfField {
  // The command that has the option; empty means every command.
  absl::string_view command;
  absl::string_view field;
  absl::string_view option;
  // Whether the inner fields are parameters that the user wrote, as in f2(landmarks=50).
  bool parameters = false;
};

constexpr OptionOfField kOptions[] = {
    {"build", "spec.mapping", "NAME"},
    {"build", "spec.spec", "--mapping", /*parameters=*/true},
    {"build", "spec.kernel", "--kernel"},
    {"build", "spec.standardize", "--standardize"},
    {"build", "spec.seed", "--seed"},
    {"build", "spec.ttl", "--ttl"},
    {"build", "examples", "--input"},
    {"build", "rows", "--rows"},
    {"build", "columns", "--columns"},
    {"transform", "examples", "--input"},
    {"evaluate", "spec.reference", "NAME[@VERSION]"},
    {"evaluate", "spec.learner", "--learner", /*parameters=*/true},
    {"evaluate", "spec.held_out", "--held-out"},
    {"evaluate", "spec.folds", "--folds"},
    {"evaluate", "spec.confidence", "--confidence"},
    {"evaluate", "examples.labels", "--label"},
    {"evaluate", "examples", "--input"},
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
    {"alias", "mapping", "NAME@ALIAS"},
    {"alias", "alias", "NAME@ALIAS"},
    {"alias", "version", "VERSION"},
    {"alias", "digest", "VERSION"},
    {"alias", "etag", "--etag"},
    {"keep", "ttl", "--ttl"},
    {"delete", "mapping", "NAME@VERSION"},
    {"delete", "version", "NAME@VERSION"},
    {"delete", "give_up_rollback", "--give-up-rollback"},
    {"import", "mapping", "--name"},
    {"import", "chunk", "FILE"},
    {"import", "digest", "FILE"},
    {"", "reference", "NAME[@VERSION]"},
    {"", "tls.ca_file", "--tls_ca"},
    {"", "tls.certificate_file", "--tls_certificate"},
    {"", "tls.key_file", "--tls_key"},
};

// Returns whether `field` is `outer` or inside it, and sets `inner` to the rest after `outer`.
bool IsWithin(absl::string_view field, absl::string_view outer, absl::string_view& inner) {
  inner = field;
  if (!absl::ConsumePrefix(&inner, outer)) return false;
  return inner.empty() || absl::ConsumePrefix(&inner, ".");
}

// "--mapping: landmarks: ", "--input, row 7: ", or "" if no field is at fault.
std::string PlaceOf(const ErrorDetail& detail, absl::string_view command) {
  if (detail.field.empty()) return "";
  absl::string_view inner;
  for (const OptionOfField& entry : kOptions) {
    if (!entry.command.empty() && entry.command != command) continue;
    if (!IsWithin(detail.field, entry.field, inner)) continue;
    std::string place(entry.option);
    const auto row = detail.metadata.find(kInputRow);
    if (row != detail.metadata.end()) absl::StrAppend(&place, ", row ", row->second);
    // The inner field `text` means the whole argument.
    if (entry.parameters && !inner.empty() && inner != "text") {
      absl::StrAppend(&place, ": ", inner);
    }
    return absl::StrCat(place, ": ");
  }
  return absl::StrCat(detail.field, ": ");
}

std::string InWordsOf(absl::string_view command, const ErrorDetail& detail,
                      absl::string_view message) {
  // MakeError has put the field in front of the message.
  if (!detail.field.empty()) absl::ConsumePrefix(&message, absl::StrCat(detail.field, ": "));
  // Drops the number of the request, because the user did not choose how rows were divided.
  const auto request = detail.metadata.find("request");
  if (request != detail.metadata.end()) {
    absl::ConsumePrefix(&message, absl::StrCat("request ", request->second, ": "));
  }
  return absl::StrCat(PlaceOf(detail, command), message);
}

// More columns than the version has usually mean that a label or an id was not excluded.
std::string ColumnsHint(const ErrorDetail& detail, absl::string_view command) {
  if (detail.reason != "COLUMNS_MISMATCH" || command != "transform") return "";
  const auto expected = detail.metadata.find("expected");
  const auto actual = detail.metadata.find("actual");
  if (expected == detail.metadata.end() || actual == detail.metadata.end()) return "";
  int64_t columns = 0;
  int64_t came = 0;
  const bool numbers =
      absl::SimpleAtoi(expected->second, &columns) && absl::SimpleAtoi(actual->second, &came);
  if (!numbers || came <= columns) return "";
  return absl::StrCat("  got ", came, " columns, ", came - columns,
                      " more than the version maps; for a CSV file, --exclude=COLUMN leaves out "
                      "a label or an id, and --passthrough=COLUMN copies it to the output\n");
}

}  // namespace

std::string ErrorText(const absl::Status& status, absl::string_view server,
                      absl::string_view command) {
  const std::optional<ErrorDetail> detail = DetailOf(status);
  // Only an error without details comes from gRPC itself, which could not reach a server.
  if (absl::IsUnavailable(status) && !detail.has_value()) {
    return absl::StrCat("phimap: no server answers at ", server, " (", status.message(), ")\n",
                        "  start one:    phimapd --data_dir=DIR --listen=", server, "\n",
                        "  or name one:  --server=HOST:PORT, or PHIMAP_SERVER in the environment\n",
                        "  with TLS:     --tls_ca=FILE, or PHIMAP_TLS_CA in the environment\n");
  }
  if (!detail.has_value()) return absl::StrCat("phimap: ", status.message(), "\n");
  std::string text = absl::StrCat("phimap: ",
                                  command.empty() ? std::string(status.message())
                                                  : InWordsOf(command, *detail, status.message()),
                                  "\n");
  absl::StrAppend(&text, ColumnsHint(*detail, command));
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
  absl::string_view message = status.message();
  if (!detail->field.empty()) absl::ConsumePrefix(&message, absl::StrCat(detail->field, ": "));
  return MakeError(status.code(), detail->reason, detail->field, message, detail->metadata,
                   detail->retry_delay_ms);
}

}  // namespace phimap::cli
