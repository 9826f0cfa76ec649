#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/views/console.h"
#include "client/cli/views/text.h"
#include "client/cli/views/views.h"
#include "client/cpp/client.h"
#include "core/digest/named_columns.h"
#include "core/status/words.h"

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
  absl::StrAppend(&out, "  spectrum: eigenvalues 1 to ", shares.size(), " of K on ",
                  LongCountOf(spectrum.rows(), spectrum.held_out() ? "held-out row" : "row"),
                  spectrum.held_out() ? "" : " of the pool, landmarks among them",
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

bool SelfCheckIsAllZero(const v1::SelfCheck& check) {
  const std::string& bytes = check.features().values_case() == v1::DenseRows::kFloat64Le
                                 ? check.features().float64_le()
                                 : check.features().float32_le();
  // The engine never returns -0, so a feature is 0 only if all its bytes are 0.
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

namespace {

constexpr int kNameWidth = 18;
constexpr int kValueWidth = 22;

std::string TypeText(v1::ServingType type) {
  switch (static_cast<int>(type)) {  // a newer server may know others
    case v1::SERVING_TYPE_FLOAT32:
      return "float32";
    case v1::SERVING_TYPE_FLOAT64:
      return "float64";
    default:
      return "unknown";
  }
}

std::string MeanAndMaxText(const v1::Certificate::Error& error) {
  return absl::StrCat(ShortNumber(error.mean()), " / ", ShortNumber(error.max()));
}

// Number of names that fit on a line.
constexpr size_t kShownInputs = 6;

void RenderHeading(std::string& out, absl::string_view title, const v1::Version& version) {
  absl::StrAppend(&out, title, "\n");
  AddFact(out, "spec", version.spec_text());
  AddFact(out, "kernel", version.kernel_text());
  const bool of_strings = version.input_columns() == 0;
  AddFact(out, "columns",
          absl::StrCat(of_strings ? "strings" : absl::StrCat(version.input_columns()), " in, ",
                       version.output_columns(), " out"),
          absl::StrCat(
              of_strings ? "examples, features of each, " : "numbers of a row, features of a row, ",
              TypeText(version.serving_type())));
  if (version.column_names_size() > 0) {
    AddFact(out, "inputs",
            ShownColumnNames({version.column_names().begin(), version.column_names().end()},
                             kShownInputs));
  } else if (!of_strings) {
    AddFact(out, "inputs", "without names", "so the columns of rows cannot be checked");
  }
  AddFact(out, "size", SizeText(version.artifact_size_bytes()), "of the stored artifact");
  if (version.has_create_time()) {
    AddFact(out, "created",
            absl::FormatTime("%Y-%m-%d %H:%M:%S UTC",
                             absl::FromUnixSeconds(version.create_time().seconds()),
                             absl::UTCTimeZone()));
  }
  AddFact(out, "digest", version.ref().digest());
  if (version.has_ttl()) AddFact(out, "lives", LifetimeText(version));
  if (!version.made_by().empty()) AddFact(out, "made by", version.made_by(), "");
  if (version.imported()) {
    AddFact(out, "origin", "imported", "its certificate was measured on another server");
  }
}

void RenderCounts(std::string& out, const v1::Certificate& certificate) {
  const bool landmarks = certificate.landmarks() > 0;
  AddFact(out, "rows", WithThousands(certificate.stream_rows()), "in the stream it was built from");
  if (certificate.pool_rows() > 0) {
    AddFact(out, "pool", WithThousands(certificate.pool_rows()),
            landmarks ? "rows for the policy to choose landmarks from"
                      : "rows that gamma=median was computed from");
  }
  AddFact(out, "held out", WithThousands(certificate.held_out_rows()),
          landmarks ? "other rows, kept apart to measure on" : "rows kept apart to measure on");
  if (!landmarks) return;
  AddFact(out, "landmarks", WithThousands(certificate.landmarks()),
          absl::StrCat("rows that span the features, chosen: ", certificate.policy()));
}

void RenderFactor(std::string& out, const v1::Certificate& certificate) {
  if (certificate.has_rank()) {
    AddFact(out, "rank", absl::StrCat(certificate.rank(), " of ", certificate.landmarks()),
            "landmarks that are numerically independent");
  }
  if (certificate.has_tolerance()) {
    AddFact(out, "tolerance", ShortNumber(certificate.tolerance()),
            certificate.has_zero_landmarks()
                ? "share of its own K(x,x) at which a landmark is dropped"
                : "residual under which a landmark is dropped");
  }
  const bool has_dropped = certificate.rank() < certificate.landmarks();
  if (certificate.has_largest_residual() && has_dropped) {
    AddFact(out, "residual", ShortNumber(certificate.largest_residual()),
            "largest of a dropped landmark; under the tolerance");
  }
  if (certificate.zero_landmarks() > 0) {
    AddFact(out, "zero landmarks", WithThousands(certificate.zero_landmarks()),
            "left out, because their K(x,x) is only rounding");
  }
  if (certificate.has_trace_residual()) {
    AddFact(out, "trace residual", ShortNumber(certificate.trace_residual()),
            "share of the trace of the landmarks' Gram matrix that is lost");
  }
  if (certificate.has_pool_trace_residual()) {
    AddFact(out, "pool residual", PercentText(certificate.pool_trace_residual()),
            "of the sum of K(x,x) on the pool lies outside the landmarks' span");
  }
  if (certificate.pivots_size() > 0) {
    AddFact(out, "pivots",
            absl::StrCat(ShortNumber(certificate.pivots(0)), " to ",
                         ShortNumber(certificate.pivots(certificate.pivots_size() - 1))),
            "from the first to the last landmark kept");
  }
}

// Statements about all pairs, inferred from the measured ones.
void RenderAllPairs(std::string& out, const v1::Certificate::Error& error) {
  if (error.has_interval_low() && error.has_interval_high()) {
    AddFact(out, "", "",
            absl::StrCat("mean between ", ShortNumber(error.interval_low()), " and ",
                         ShortNumber(error.interval_high()), " (95 %, approximate)"));
  }
  if (error.has_pair_bound()) {
    const v1::Certificate::PairBound& bound = error.pair_bound();
    AddFact(out, "", "",
            absl::StrCat("at most ", UpperNumber(100 * bound.share()), " % of pairs err more than ",
                         UpperNumber(bound.largest()), " (95 %, exact, from ",
                         WithThousands(bound.pairs()), " disjoint pairs)"));
  }
  if (error.has_half_width()) {
    AddFact(out, "", "",
            absl::StrCat("mean ± ", ShortNumber(error.half_width()),
                         " (a normal interval of disjoint pairs, by an earlier release)"));
  }
}

// What a learner on the features loses against one on the kernel.
void RenderFidelity(std::string& out, const v1::Certificate& certificate) {
  const v1::Certificate::Fidelity& fidelity = certificate.fidelity();
  if (fidelity.smoothers_size() > 0) {
    std::vector<std::string> distances, lambdas;
    for (const v1::Certificate::Fidelity::Smoother& smoother : fidelity.smoothers()) {
      distances.push_back(ShortNumber(100 * smoother.distance()));
      lambdas.push_back(ShortNumber(smoother.lambda()));
    }
    AddFact(out, "learner", absl::StrCat(absl::StrJoin(distances, " / "), " %"),
            absl::StrCat("difference of predictions on F from those on K by ridge at λ = ",
                         absl::StrJoin(lambdas, " / "), ", over ", fidelity.rows(), " new rows"));
  } else {
    AddFact(out, "learner", "nothing to learn", "all kernel values are equal up to rounding");
  }
  if (certificate.has_left_out_distance()) {
    AddFact(out, "", ShortPercent(certificate.left_out_distance()),
            "the same for a row that is left out of the training, at λ = 1");
  }
  AddFact(out, "Gram error",
          absl::StrCat(ShortPercent(fidelity.gram_error()), " / ",
                       ShortPercent(fidelity.centred_gram_error())),
          "of the Gram matrix of these rows / of the centred one; 100 % for F = 0");
  AddFact(out, "",
          absl::StrCat(ShortPercent(fidelity.self_error_median()), " / ",
                       ShortPercent(fidelity.self_error_quantile_95())),
          "median / 95 % quantile of a row's |K(x,x) - |F(x)|²| as a share of K(x,x)");
  AddFact(out, "", ShortPercent(fidelity.distance_error_quantile_95()),
          "95 % quantile of the error of a squared distance in φ-space, as a share of it");
}

// Says that few rows carry the mean over pairs, so that no interval of it is stated.
void RenderFewRows(std::string& out, const v1::Certificate& certificate) {
  const v1::Certificate::EffectiveRows& rows = certificate.effective_rows();
  constexpr double kLeast = 50;  // kMinEffectiveRows
  if (rows.kernel() >= kLeast && rows.error() >= kLeast) return;
  AddFact(out, "effective rows",
          absl::StrCat(ShortNumber(rows.kernel()), " / ", ShortNumber(rows.error())),
          absl::StrCat(
              "of ", WithThousands(certificate.held_out_rows()),
              " new rows carry ΣK² / the sum of its squared errors: too few for an interval, and "
              "the mean error is of these rows"));
}

// What lies outside the landmarks' span.
void RenderResidualMass(std::string& out, const v1::Certificate& certificate) {
  if (certificate.has_held_out_trace_residual()) {
    AddFact(out, "residual mass", PercentText(certificate.held_out_trace_residual()),
            "of the sum of K(x,x) on new rows lies outside the landmarks' span");
    if (certificate.has_residual_mass()) {
      AddFact(
          out, "", "",
          absl::StrCat("between ", PercentText(certificate.residual_mass().low()), " and ",
                       PercentText(certificate.residual_mass().high()), " (95 %, approximate)"));
    }
  }
  if (certificate.has_residual_share()) {
    const v1::Certificate::ResidualShare& share = certificate.residual_share();
    AddFact(out, "",
            absl::StrCat(ShortNumber(100 * share.median()), " % / ",
                         ShortNumber(100 * share.quantile_95()), " %"),
            absl::StrCat("median / 95 % quantile of a row's own share, over ",
                         LongCountOf(share.rows(), "row")));
    if (share.zero_rows() > 0) {
      AddFact(out, "", "",
              absl::StrCat("without ", LongCountOf(share.zero_rows(), "row"),
                           " whose K(x,x) is only rounding"));
    }
  }
}

// `centred` states that the kernel error is measured against the centred kernel.
void RenderMeasured(std::string& out, const v1::Certificate& certificate, bool centred) {
  RenderResidualMass(out, certificate);
  if (certificate.has_kernel_error()) {
    const v1::Certificate::Error& error = certificate.kernel_error();
    AddFact(out, "kernel error", MeanAndMaxText(error),
            absl::StrCat("mean / max of |K(x,y) - F(x)·F(y)| over ", WithThousands(error.count()),
                         " pairs; the largest K(x,x) of them",
                         centred ? ", centred on the landmarks," : "", " is ",
                         ShortNumber(error.scale())));
    RenderAllPairs(out, error);
  }
  if (certificate.has_effective_rows()) RenderFewRows(out, certificate);
  if (certificate.has_fidelity()) RenderFidelity(out, certificate);
  if (certificate.has_serving_error()) {
    const v1::Certificate::Error& error = certificate.serving_error();
    AddFact(
        out, "serving error", MeanAndMaxText(error),
        absl::StrCat("mean / max of |F(x) - exact F(x)| over ", LongCountOf(error.count(), "row"),
                     "; the largest |F| of them is ", ShortNumber(error.scale())));
  }
  if (certificate.has_serving_distance()) {
    AddFact(out, "float32 costs", ShortPercent(certificate.serving_distance()),
            absl::StrCat("of a learner's predictions at λ = 0.01, against a build for float64",
                         certificate.has_kernel_rank()
                             ? absl::StrCat(", which keeps ",
                                            CountOf(certificate.kernel_rank(), "dimension"))
                             : ""));
  }
  if (!certificate.has_kernel_error() && !certificate.has_serving_error()) {
    AddFact(out, "errors", "not measured",
            "too few held-out rows, or no error applies to this family");
  }
}

void RenderReferenceVectors(std::string& out, const v1::Certificate& certificate, bool ran) {
  if (ran) {
    AddFact(out, "reference vectors",
            absl::StrCat(certificate.self_check().rows().rows(), " × ",
                         CountOf(certificate.self_check().features().columns(), "feature")),
            SelfCheckIsAllZero(certificate.self_check()) ? "all of them are 0, which proves nothing"
                                                         : "match bit for bit on this machine");
  } else if (certificate.has_self_check()) {
    AddFact(out, "reference vectors", "not compared", "this machine has no fused multiply-add");
  } else {
    AddFact(out, "reference vectors", "none",
            "built without fused multiply-add, or no row has features to compare");
  }
}

// Returns the grade in words, and its colour. A server of an earlier release gives no verdict, and
// a newer one may know other grades.
std::string GradeText(const v1::Verdict& verdict, bool color) {
  switch (static_cast<int>(verdict.grade())) {
    case v1::Verdict::GRADE_GOOD:
      return Colored("good", Color::kGreen, color);
    case v1::Verdict::GRADE_FAIR:
      return Colored("fair", Color::kYellow, color);
    case v1::Verdict::GRADE_POOR:
      return Colored("poor", Color::kRed, color);
    default:
      return "not judged";
  }
}

void RenderVerdict(std::string& out, const v1::Certificate& certificate, bool color, int width) {
  const v1::Verdict& verdict = certificate.verdict();
  std::string text = verdict.reason();
  if (text.empty()) text = "the server is of an earlier release";
  if (!verdict.advice().empty()) absl::StrAppend(&text, "; ", verdict.advice());
  const int warnings = certificate.warnings_size();
  if (warnings > 0) {
    absl::StrAppend(&text, "; ", CountOf(warnings, "warning"), " below");
  }
  AppendParagraph(out, absl::StrFormat("  %-*s", kNameWidth, "verdict"),
                  absl::StrCat(GradeText(verdict, color), ": ", text), width);
}

// Certificates of older releases do not say for which rows their theorem holds, and state some
// theorems differently.
bool IsOfOldRelease(const v1::Certificate& certificate) {
  return certificate.theorem_scope().empty() && !absl::StartsWith(certificate.theorem(), "none");
}

void RenderCertificate(std::string& out, const v1::Version& version, int width) {
  const v1::Certificate& certificate = version.certificate();
  absl::StrAppend(&out, "certificate\n");
  RenderCounts(out, certificate);
  RenderFactor(out, certificate);
  RenderMeasured(out, certificate, absl::StrContains(version.spec_text(), "centred=true"));
  if (certificate.has_spectrum()) {
    absl::StrAppend(&out, RenderSpectrum(certificate.spectrum(), width));
  }
  if (!certificate.theorem().empty())
    AppendParagraph(out,
                    IsOfOldRelease(certificate) ? "  theorem, as an earlier release stated it: "
                                                : "  theorem: ",
                    certificate.theorem(), width);
  if (!certificate.theorem_scope().empty())
    AppendParagraph(out, "  holds for: ", certificate.theorem_scope(), width);
  for (const std::string& warning : certificate.warnings()) {
    AppendParagraph(out, "  WARNING: ", warning, width);
  }
}

}  // namespace

void AddFact(std::string& out, absl::string_view name, absl::string_view value,
             absl::string_view meaning) {
  // Two spaces also follow a value that is wider than its column.
  std::string line =
      absl::StrFormat("  %-*s%-*s  %s", kNameWidth, name, kValueWidth - 2, value, meaning);
  line.erase(line.find_last_not_of(' ') + 1);
  absl::StrAppend(&out, line, "\n");
}

std::string RenderVersion(const v1::Version& version, int width, bool color) {
  std::string out;
  RenderHeading(out, client::ReferenceTo(version.ref()), version);
  if (!version.has_certificate()) return out;
  RenderVerdict(out, version.certificate(), color, width);
  RenderCertificate(out, version, width);
  if (version.has_head()) absl::StrAppend(&out, RenderHead(version, width));
  return out;
}

std::string RenderArtifact(absl::string_view file, const v1::Version& version,
                           bool reference_vectors_ran, int width) {
  std::string out;
  RenderHeading(out, file, version);
  RenderReferenceVectors(out, version.certificate(), reference_vectors_ran);
  RenderCertificate(out, version, width);
  return out;
}

std::string RenderVersionLine(const v1::Version& version) {
  const v1::Certificate& certificate = version.certificate();
  std::string line = absl::StrCat(client::ReferenceTo(version.ref()), ": ",
                                  CountOf(version.output_columns(), "feature"));
  if (certificate.has_rank()) {
    absl::StrAppend(&line, ", rank ", certificate.rank(), " of ", certificate.landmarks());
  }
  if (certificate.has_kernel_error()) {
    absl::StrAppend(&line, ", kernel error mean ", ShortNumber(certificate.kernel_error().mean()),
                    ", max ", ShortNumber(certificate.kernel_error().max()));
  }
  const int warnings = certificate.warnings_size();
  if (warnings > 0) absl::StrAppend(&line, ", ", CountOf(warnings, "warning"));
  return line;
}

std::string RenderEstimate(int64_t rows, int32_t columns, const v1::EstimateBuildResponse& estimate,
                           int width) {
  const std::string what =
      columns == 0 ? LongCountOf(rows, "string")
                   : absl::StrCat(LongCountOf(rows, "row"), " of ", CountOf(columns, "column"));
  std::string out = absl::StrCat("a build of ", what, " would take\n");
  constexpr char kLine[] = "  %-10s%-14s%s\n";
  absl::StrAppendFormat(
      &out, kLine, "memory", SizeText(estimate.peak_memory_bytes()),
      absl::StrCat("at its peak; reserves ", SizeText(estimate.reserved_memory_bytes()), " of the ",
                   SizeText(estimate.memory_limit_bytes()), " for all builds"));
  absl::StrAppendFormat(&out, kLine, "artifact", SizeText(estimate.artifact_size_bytes()),
                        "stored");
  absl::StrAppendFormat(&out, kLine, "flops", ShortNumber(estimate.flops()),
                        "additions and multiplications of matrices");
  absl::StrAppendFormat(&out, kLine, "time", ShortNumber(estimate.seconds()) + " s",
                        "of an idle core of the server, within a factor of 3");
  if (estimate.reserved_memory_bytes() > estimate.memory_limit_bytes()) {
    AppendParagraph(out, "  WARNING: ",
                    "the server would refuse it: reduce landmarks or pool_rows, or start phimapd "
                    "with a larger --build_memory_bytes",
                    width);
  }
  return out;
}

}  // namespace phimap::cli
