#include "tests/corpus/artifact_record.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/digest/sha256.h"
#include "core/engine/engine.h"
#include "core/plan/residual.h"
#include "core/status/check.h"
#include "tests/support/random_rows.h"
#include "tests/support/sparse_rows.h"

namespace phimap::testing {
namespace {

std::string Exact(double number) { return absl::StrFormat("%a", number); }

std::string ExactList(const std::vector<double>& numbers) {
  return absl::StrJoin(
      numbers, " ", [](std::string* out, double number) { absl::StrAppend(out, Exact(number)); });
}

std::string Digest(const std::string& bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Hex();
}

// Appends a line "name value". A long value is cut and followed by its digest.
void AddLine(std::string& out, const std::string& name, const std::string& value) {
  constexpr size_t kLongest = 120;
  if (value.size() <= kLongest) {
    absl::StrAppend(&out, name, " ", value, "\n");
  } else {
    absl::StrAppend(&out, name, " ", value.substr(0, 40), " … ", Digest(value).substr(0, 16), "\n");
  }
}

void AddNumber(std::string& out, const std::string& name, const std::optional<double>& value) {
  if (value.has_value()) AddLine(out, name, Exact(*value));
}

void AddInteger(std::string& out, const std::string& name, const std::optional<int64_t>& value) {
  if (value.has_value()) AddLine(out, name, absl::StrCat(*value));
}

void AddError(std::string& out, const std::string& name, const std::optional<MeasuredError>& e) {
  if (!e.has_value()) return;
  AddLine(out, name, absl::StrCat(ExactList({e->mean, e->max, e->scale}), " ", e->count));
}

void AddSpectrum(std::string& out, const std::optional<Spectrum>& spectrum) {
  if (!spectrum.has_value()) return;
  AddLine(out, "spectrum",
          absl::StrCat(spectrum->rows, " ", ExactList({spectrum->trace, spectrum->residual})));
  AddLine(out, "eigenvalues", ExactList(spectrum->eigenvalues));
  for (const EffectiveDimension& d : spectrum->effective_dimensions) {
    AddLine(out, "effective_dimension", ExactList({d.lambda, d.kernel, d.mapping}));
  }
}

// Returns the kernel values for the landmarks of the plan, followed by K(x, x).
Matrix<double> ValuesFor(const Matrix<double>& values, int64_t landmarks) {
  PHIMAP_CHECK(landmarks < values.cols());
  Matrix<double> taken(values.rows(), landmarks + 1);
  for (int64_t i = 0; i < values.rows(); ++i) {
    std::copy_n(values.row(i), landmarks, taken.row(i));
    taken(i, landmarks) = values(i, values.cols() - 1);
  }
  return taken;
}

// Owns the examples of an artifact in one of the row forms.
struct MappedExamples {
  Matrix<double> wide;
  Matrix<float> narrow;
  SparseRowsOf<double> sparse;
  std::vector<const std::string*> strings;
  ExamplesView view;
};

MappedExamples ExamplesFor(const Engine& engine, const CorpusInputs& inputs, RowForm form) {
  MappedExamples examples;
  if (engine.takes_strings()) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < inputs.rows.rows(); ++i) {
      const std::string& text = inputs.texts[static_cast<size_t>(i)];
      examples.strings.push_back(&text);
      bytes += static_cast<int64_t>(text.size());
    }
    examples.view =
        StringsView{ExampleKind::kText, examples.strings.data(), inputs.rows.rows(), bytes};
    return examples;
  }
  examples.wide = engine.is_remote() ? ValuesFor(inputs.values, engine.input_columns())
                                     : Converted<double, double>(inputs.rows.view());
  if (form == RowForm::kFloat64 || (form == RowForm::kSparse && engine.is_remote())) {
    examples.view = WireRows(examples.wide);
  } else if (form == RowForm::kFloat32) {
    examples.narrow = Converted<float, double>(std::as_const(examples.wide).view());
    examples.view = WireRows(examples.narrow);
  } else {
    examples.sparse = SparseOf(examples.wide);
    examples.view = examples.sparse.view();
  }
  return examples;
}

// Returns a number's bytes in hexadecimal, the most significant byte first.
std::string HexOf(const char* little_endian, int64_t bytes) {
  std::string hex;
  for (int64_t k = bytes - 1; k >= 0; --k) {
    absl::StrAppendFormat(&hex, "%02x", static_cast<unsigned char>(little_endian[k]));
  }
  return hex;
}

// Checks that rows have the same features alone and in a batch, and returns the features of all
// rows.
std::vector<char> FeaturesOf(const Engine& engine, const ExamplesView& rows) {
  const int64_t row_bytes = engine.output_columns() * FloatTypeBytes(engine.serving_type());
  std::vector<char> features(static_cast<size_t>(rows.rows() * row_bytes));
  EngineScratch scratch;
  TransformPart part{.rows = rows, .features = features.data(), .status = absl::OkStatus()};
  engine.Transform(absl::MakeSpan(&part, 1), scratch);
  PHIMAP_CHECK(part.status.ok());
  std::vector<char> alone(static_cast<size_t>(row_bytes));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    TransformPart one{
        .rows = rows.Slice(i, 1), .features = alone.data(), .status = absl::OkStatus()};
    engine.Transform(absl::MakeSpan(&one, 1), scratch);
    PHIMAP_CHECK(one.status.ok());
    PHIMAP_CHECK(std::memcmp(alone.data(), features.data() + i * row_bytes, row_bytes) == 0);
  }
  return features;
}

}  // namespace

std::string CertificateRecord(const Certificate& c) {
  std::string out;
  AddLine(out, "stream_rows", absl::StrCat(c.stream_rows));
  AddLine(out, "pool_rows", absl::StrCat(c.pool_rows));
  AddLine(out, "held_out_rows", absl::StrCat(c.held_out_rows));
  AddLine(out, "landmarks", absl::StrCat(c.landmarks));
  AddInteger(out, "rank", c.rank);
  AddNumber(out, "tolerance", c.tolerance);
  AddNumber(out, "largest_residual", c.largest_residual);
  AddNumber(out, "trace_residual", c.trace_residual);
  AddNumber(out, "held_out_trace_residual", c.held_out_trace_residual);
  AddNumber(out, "pool_trace_residual", c.pool_trace_residual);
  AddError(out, "kernel_error", c.kernel_error);
  AddError(out, "serving_error", c.serving_error);
  AddLine(out, "policy", c.policy);
  AddLine(out, "theorem", c.theorem);
  AddLine(out, "theorem_scope", c.theorem_scope);
  for (const std::string& warning : c.warnings) AddLine(out, "warning", warning);
  AddLine(out, "pivots", ExactList(c.pivots));
  if (c.self_check.has_value()) {
    AddLine(out, "self_check",
            absl::StrCat(c.self_check->rows, " ", Digest(c.self_check->rows_float32_le), " ",
                         Digest(c.self_check->features_le)));
  }
  AddSpectrum(out, c.spectrum);
  AddNumber(out, "kernel_error_half_width", c.kernel_error_half_width);
  AddNumber(out, "mean_squared_norm", c.mean_squared_norm);
  AddLine(out, "landmark_rows", absl::StrJoin(c.landmark_rows, " "));
  if (c.kernel_error_interval.has_value()) {
    AddLine(out, "kernel_error_interval",
            ExactList({c.kernel_error_interval->low, c.kernel_error_interval->high}));
  }
  if (c.kernel_error_bound.has_value()) {
    const PairBound& bound = *c.kernel_error_bound;
    AddLine(out, "kernel_error_bound",
            absl::StrCat(bound.pairs, " ", ExactList({bound.largest, bound.share})));
  }
  if (c.residual_share.has_value()) {
    const ResidualShare& share = *c.residual_share;
    AddLine(out, "residual_share",
            absl::StrCat(ExactList({share.median, share.quantile_95}), " ", share.rows, " ",
                         share.zero_rows));
  }
  AddInteger(out, "zero_landmarks", c.zero_landmarks);
  AddNumber(out, "serving_share", c.serving_share);
  return out;
}

std::string ArtifactRecord(const Artifact& artifact, const CorpusInputs& inputs, RowForm form) {
  std::string out;
  const Provenance& made = artifact.provenance;
  AddLine(out, "mapping", made.spec_text);
  AddLine(out, "kernel", made.kernel_text);
  AddLine(out, "standardize", made.standardize ? "true" : "false");
  AddLine(out, "seed", absl::StrCat(made.seed));
  AddLine(out, "names", absl::StrJoin(made.column_names, ","));
  const Certificate certificate = DecodeCertificate(artifact.certificate).value();
  absl::StrAppend(&out, CertificateRecord(certificate));

  const std::unique_ptr<const Engine> engine = Engine::Load(artifact.plan).value();
  const int64_t columns = engine->output_columns();
  const int64_t bytes = FloatTypeBytes(engine->serving_type());
  AddLine(out, "columns",
          absl::StrCat(engine->input_columns(), " in, ", columns, " out, ",
                       FloatTypeName(engine->serving_type())));
  const MappedExamples examples = ExamplesFor(*engine, inputs, form);
  const std::vector<char> features = FeaturesOf(*engine, examples.view);
  for (int64_t i = 0; i < examples.view.rows(); ++i) {
    std::string line = "features";
    for (int64_t j = 0; j < columns; ++j) {
      absl::StrAppend(&line, " ", HexOf(features.data() + (i * columns + j) * bytes, bytes));
    }
    absl::StrAppend(&out, line, "\n");
  }
  const std::optional<Residual> residual = Residual::Of(artifact.plan, made);
  if (!residual.has_value()) return out;
  // The release served one number, the sum of what are now the residual and its allowance.
  std::vector<double> rho(static_cast<size_t>(examples.view.rows()));
  std::vector<double> allowances(rho.size());
  residual->Compute(examples.view, features.data(), rho.data(), allowances.data());
  for (size_t i = 0; i < rho.size(); ++i) rho[i] += allowances[i];
  AddLine(out, "residuals", ExactList(rho));
  return out;
}

}  // namespace phimap::testing
