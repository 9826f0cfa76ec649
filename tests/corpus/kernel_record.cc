#include "tests/corpus/kernel_record.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/engine/engine.h"
#include "core/kernel/kernel_block.h"
#include "core/kernel/kernel_expression.h"
#include "core/kernel/kernel_rounding.h"
#include "core/kernel/kernel_work.h"
#include "core/mapping/build/build_cost.h"
#include "core/status/check.h"
#include "tests/support/random_rows.h"

namespace phimap::testing {
namespace {

constexpr int64_t kFixedRows = 4;
constexpr int64_t kMappedRows = 2;

std::string YesNo(bool value) { return value ? "yes" : "no"; }

std::string Numbers(const std::vector<double>& numbers) {
  return absl::StrJoin(numbers, " ", [](std::string* out, double number) {
    absl::StrAppendFormat(out, "%a", number);
  });
}

std::string Operations(const std::vector<KernelOp>& ops) {
  return absl::StrJoin(ops, " ", [](std::string* out, const KernelOp& op) {
    absl::StrAppend(out, static_cast<int>(op.code));
    if (op.a != 0 || op.b != 0 || op.n != 0) {
      absl::StrAppendFormat(out, "(%a,%a,%d)", op.a, op.b, op.n);
    }
  });
}

std::string ProgramRecord(const KernelProgram& program) {
  std::string out = absl::StrCat("  program ", Operations(program.ops()), "\n");
  for (const auto& factor : program.factors()) {
    absl::StrAppend(&out, "  factor ", Operations(factor), "\n");
  }
  for (const BilinearForm& form : program.forms()) {
    absl::StrAppend(&out, "  form ", YesNo(form.diagonal), " ", Numbers(form.numbers), "\n");
  }
  for (const StringKernel& strings : program.strings()) {
    absl::StrAppend(&out, "  strings ", static_cast<int>(strings.measure), " ",
                    static_cast<int>(strings.unit), " ", strings.n, "\n");
  }
  return out;
}

std::string PropertyRecord(const KernelExpression& kernel) {
  double factor = 0;
  const bool linear = kernel.IsScaledLinear(&factor);
  return absl::StrCat("  text ", kernel.ToText(), "\n  scale ", YesNo(kernel.NeedsScale()),
                      ", median ", YesNo(kernel.NeedsMedian()), ", translation invariant ",
                      YesNo(kernel.IsTranslationInvariant()), ", delta ",
                      YesNo(kernel.JumpsAtEqualRows()), ", strings ", YesNo(kernel.TakesStrings()),
                      ", bytes ", YesNo(kernel.TakesBytes()), ", linear ",
                      linear ? Numbers({factor}) : "no", ", refuted ",
                      YesNo(!kernel.CheckPositiveSemidefinite().ok()), ", proven ",
                      YesNo(kernel.IsProvenPositiveSemidefinite()), "\n");
}

std::string WorkRecord(const KernelExpression& kernel) {
  std::string out;
  for (const int64_t columns : {5, 700}) {
    const std::optional<int64_t> dimension = FeatureDimension(kernel, columns);
    const ValueWork work = WorkOfValue(kernel, columns);
    absl::StrAppend(&out, "  of ", columns, " columns: dimension ",
                    dimension.has_value() ? absl::StrCat(*dimension) : "unbounded", ", work ",
                    Numbers({work.products, work.elements}), "\n");
  }
  return out;
}

// The rows on which a build evaluates kernels. A string is represented by a row with its index.
struct KernelRows {
  KernelProgram program;
  Matrix<double> x;
  // The input of the rounding bound: x for rows, k_m(x, x) for strings.
  Matrix<double> read;
  std::vector<double> norms;
  std::vector<double> self;
};

KernelRows RowsFor(const KernelExpression& kernel, const CorpusInputs& inputs, int64_t first,
                   int64_t count) {
  KernelRows rows{.program = KernelProgram::Compile(kernel)};
  if (kernel.TakesStrings()) {
    rows.program = KernelProgram::Compile(
        kernel.Over(std::make_shared<const std::vector<std::string>>(inputs.texts)));
    rows.x = Matrix<double>(count, 1);
    for (int64_t i = 0; i < count; ++i) rows.x(i, 0) = static_cast<double>(first + i);
    rows.read = SelfStringValues(rows.program, rows.x.view());
    rows.norms.assign(static_cast<size_t>(count), 0.0);
    rows.self = StringDiagonal(rows.program, rows.read.view());
    return rows;
  }
  rows.x = Matrix<double>(count, inputs.stream.cols());
  std::copy_n(inputs.stream.row(first), rows.x.size(), rows.x.data());
  rows.read = Converted<double, double>(std::as_const(rows.x).view());
  rows.norms = SquaredNorms(std::as_const(rows.x).view());
  rows.self = KernelDiagonal(rows.program, std::as_const(rows.x).view(), rows.norms);
  return rows;
}

std::string RoundingRecord(const KernelRows& x, const KernelRows& a) {
  std::string out;
  const bool shares = std::all_of(a.self.begin(), a.self.end(), [](double k) { return k > 0; });
  for (const double unit : {0x1p-24, 0x1p-53}) {
    const KernelRounding rounding(x.program, a.read.view(), unit);
    std::vector<double> of;
    std::vector<double> scaled;
    for (int64_t i = 0; i < x.read.rows(); ++i) {
      of.push_back(rounding.Of(x.read.row(i), x.norms[i], 1));
    }
    for (int64_t i = 0; i < x.read.rows() && shares; ++i) {
      if (!(x.self[i] > 0)) continue;
      const KernelRounding of_shares =
          KernelRounding::OfShares(x.program, a.read.view(), a.self, unit);
      scaled.push_back(of_shares.ScaledOf(x.read.row(i), x.norms[i], x.self[i]));
      scaled.push_back(of_shares.SelfError(x.read.row(i), x.norms[i]));
      if (i == 0) scaled.push_back(of_shares.LargestShare(a.read.view(), a.self));
    }
    absl::StrAppend(&out, "  rounding ", Numbers(of), "\n  shares ", Numbers(scaled), "\n");
  }
  return out;
}

template <typename T>
std::string EngineRecord(const KernelExpression& kernel, const CorpusInputs& inputs) {
  Plan plan;
  ServingStages<T> stages;
  const KernelProgram program = KernelProgram::Compile(kernel);
  std::vector<const std::string*> strings;
  ExamplesView view;
  int64_t bytes = 0;
  if (kernel.TakesStrings()) {
    StringFeatures features{.strings = {}, .program = program};
    for (int64_t i = 0; i < kFixedRows; ++i) features.strings.push_back(inputs.texts[i]);
    stages.features = std::move(features);
    for (int64_t i = 0; i < kMappedRows; ++i) {
      strings.push_back(&inputs.texts[static_cast<size_t>(kFixedRows + i)]);
      bytes += static_cast<int64_t>(strings.back()->size());
    }
    view = StringsView{ExampleKind::kText, strings.data(), kMappedRows, bytes};
  } else {
    plan.input.columns = inputs.stream.cols();
    stages.features = ProductFeatures<T>{
        Converted<T, double>(inputs.stream.view().Rows(0, kFixedRows)), program, {}};
    view = WireRows(inputs.stream).Slice(kFixedRows, kMappedRows);
  }
  plan.stages = std::move(stages);
  const auto engine = Engine::Load(plan).value();
  std::vector<T> features(static_cast<size_t>(kMappedRows * kFixedRows));
  TransformPart part{.rows = view, .features = features.data(), .status = absl::OkStatus()};
  EngineScratch scratch;
  engine->Transform(absl::MakeSpan(&part, 1), scratch);
  if (!part.status.ok()) return absl::StrCat(part.status.message(), "\n");
  return Numbers(std::vector<double>(features.begin(), features.end())) + "\n";
}

}  // namespace

std::string KernelRecord(const std::string& text, const CorpusInputs& inputs) {
  const KernelExpression asked = KernelExpression::Parse(text).value();
  const KernelExpression kernel = asked.Resolved(0.5, 0.25);
  const KernelRows a = RowsFor(kernel, inputs, 0, kFixedRows);
  const KernelRows x = RowsFor(kernel, inputs, kFixedRows, kMappedRows);
  Matrix<double> values(kMappedRows, kFixedRows);
  KernelBlock(x.program, x.x.view(), x.norms, a.x.view(), a.norms, values.view());
  return absl::StrCat("kernel\t", text, "\n", PropertyRecord(asked), ProgramRecord(a.program),
                      WorkRecord(asked), "  diagonal ", Numbers(a.self), "\n  values ",
                      Numbers(std::vector<double>(values.data(), values.data() + values.size())),
                      "\n  float32 ", EngineRecord<float>(kernel, inputs), "  float64 ",
                      EngineRecord<double>(kernel, inputs), RoundingRecord(x, a));
}

std::string CostRecord(const BuildSpec& spec) {
  constexpr int64_t kRows = 100000;
  constexpr int64_t kColumns = 5;
  const int64_t columns = spec.is_precomputed() ? kRows / 2 : kColumns;
  const BuildCost cost = CostOfBuild(spec, kRows, columns, 2);
  const BuildShares shares = SharesOfBuild(spec, kRows, columns);
  return absl::StrCat(
      Numbers({cost.work.product_flops, cost.work.factor_flops, cost.work.elements}), " ",
      cost.sample_bytes, " ", cost.compute_bytes, " ", cost.artifact_bytes, " ",
      Numbers({shares.choose, shares.mapping, shares.spectrum, shares.measurement}), " ",
      ReservedBytes(spec, columns, 2), "\n");
}

}  // namespace phimap::testing
