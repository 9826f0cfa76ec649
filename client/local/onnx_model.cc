#include "client/local/onnx_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/head/head.h"
#include "core/head/head_program.h"
#include "core/kernel/kernel_evaluator.h"
#include "core/linalg/matrix.h"
#include "core/plan/artifact.h"
#include "core/plan/plan.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "onnx/onnx.pb.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;
using Tensor = onnx::TensorProto;

constexpr int64_t kIrVersion = 7;
constexpr int64_t kOpset = 13;
// Limit of a model's weights: protobuf's messages end at 2 GiB, and the rest of a model needs room.
constexpr int64_t kMaxWeightBytes = (int64_t{2} << 30) - (int64_t{16} << 20);
constexpr double kPi = 3.14159265358979323846;
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
// Beyond these angles the engine computes no cosine (core/kernel/op): of turns, in float32 and in
// float64, and of radians.
constexpr double kMostTurns32 = 0x1p20;
constexpr double kMostTurns64 = 0x1p48;
constexpr double kMostRadians = 39000;

absl::Status CannotSay(absl::string_view what) {
  return MakeError(Code::kUnimplemented, reason::kOutputNotAvailable, "",
                   absl::StrCat("no ONNX model says ", what));
}

// A graph that is being written. A value is known by its name. Numbers that are not in the serving
// type are in float64.
class Graph {
 public:
  using Value = std::string;

  Graph(onnx::GraphProto& graph, Tensor::DataType type) : graph_(graph), type_(type) {}

  Tensor::DataType type() const { return type_; }
  int64_t weight_bytes() const { return weight_bytes_; }

  // Adds a node, and returns the name of its only output.
  Value Node(const char* op, const std::vector<Value>& inputs) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type(op);
    for (const Value& input : inputs) node.add_input(input);
    const Value output = absl::StrCat(op, "_", graph_.node_size());
    node.set_name(output);
    node.add_output(output);
    return output;
  }
  Value NodeWith(const char* op, const std::vector<Value>& inputs, const char* attribute,
                 int64_t number) {
    const Value output = Node(op, inputs);
    SetLast(attribute, number);
    return output;
  }
  // Sets an attribute of the last node.
  void SetLast(const char* attribute, int64_t number) {
    onnx::AttributeProto& last = *graph_.mutable_node()->rbegin()->add_attribute();
    last.set_name(attribute);
    last.set_type(onnx::AttributeProto::INT);
    last.set_i(number);
  }
  // The first of the highest of each row.
  Value ArgMax(const Value& scores) {
    const Value index = NodeWith("ArgMax", {scores}, "axis", 1);
    SetLast("keepdims", 0);
    return index;
  }
  Value Cast(const Value& value, Tensor::DataType to) {
    return NodeWith("Cast", {value}, "to", to);
  }
  Value Add(const Value& a, const Value& b) { return Node("Add", {a, b}); }
  Value Sub(const Value& a, const Value& b) { return Node("Sub", {a, b}); }
  Value Mul(const Value& a, const Value& b) { return Node("Mul", {a, b}); }
  Value MatMul(const Value& a, const Value& b) { return Node("MatMul", {a, b}); }
  // Multiplies each column by its factor; `factors` are a 1 × m matrix. A factor alone is a MatMul,
  // which gives the same product: ONNX Runtime moves a single factor of a Mul into a MatMul beside
  // it, as an attribute, which is a float32 even if the matrices are in float64.
  Value ScaleColumns(const Value& value, const Value& factors, int64_t m) {
    return Node(m == 1 ? "MatMul" : "Mul", {value, factors});
  }
  // Sums along an axis.
  Value Sum(const Value& value, int64_t axis, bool keep) {
    return NodeWith("ReduceSum", {value, Integers({axis})}, "keepdims", keep ? 1 : 0);
  }

  // Adds numbers as an initial value, rounded once to the serving type, or as they are.
  Value Numbers(const std::vector<double>& numbers, const std::vector<int64_t>& shape) {
    if (type_ == Tensor::DOUBLE) return Doubles(numbers, shape);
    const std::vector<float> rounded(numbers.begin(), numbers.end());
    return Raw(Tensor::FLOAT, rounded.data(), rounded.size() * sizeof(float), shape);
  }
  Value Doubles(const std::vector<double>& numbers, const std::vector<int64_t>& shape) {
    return Raw(Tensor::DOUBLE, numbers.data(), numbers.size() * sizeof(double), shape);
  }
  Value Number(double number) { return Numbers({number}, {}); }
  Value Double(double number) { return Doubles({number}, {}); }
  Value Integers(const std::vector<int64_t>& numbers) {
    return Raw(Tensor::INT64, numbers.data(), numbers.size() * sizeof(int64_t),
               {static_cast<int64_t>(numbers.size())});
  }
  Value Texts(const std::vector<std::string>& texts) {
    Tensor& tensor = Initial(Tensor::STRING, {static_cast<int64_t>(texts.size())});
    for (const std::string& text : texts) tensor.add_string_data(text);
    return tensor.name();
  }
  template <typename T>
  Value Matrix(const std::vector<T>& elements, int64_t rows, int64_t columns) {
    return Numbers({elements.begin(), elements.end()}, {rows, columns});
  }

  void Input(const char* name, int64_t columns) {
    Describe(*graph_.add_input(), name, type_, columns);
  }
  // Names `value` as an output of n × columns numbers, or n if columns is 0.
  void Output(const char* name, const Value& value, Tensor::DataType type, int64_t columns) {
    onnx::NodeProto& node = *graph_.add_node();
    node.set_op_type("Identity");
    node.set_name(name);
    node.add_input(value);
    node.add_output(name);
    Describe(*graph_.add_output(), name, type, columns);
  }

 private:
  static void Describe(onnx::ValueInfoProto& info, const char* name, Tensor::DataType type,
                       int64_t columns) {
    info.set_name(name);
    onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape()->add_dim()->set_dim_param("n");
    if (columns > 0) tensor.mutable_shape()->add_dim()->set_dim_value(columns);
  }
  Tensor& Initial(Tensor::DataType type, const std::vector<int64_t>& shape) {
    Tensor& tensor = *graph_.add_initializer();
    tensor.set_name(absl::StrCat("value_", graph_.initializer_size()));
    tensor.set_data_type(type);
    for (const int64_t side : shape) tensor.add_dims(side);
    return tensor;
  }
  Value Raw(Tensor::DataType type, const void* data, size_t bytes,
            const std::vector<int64_t>& shape) {
    weight_bytes_ += static_cast<int64_t>(bytes);
    Tensor& tensor = Initial(type, shape);
    // A model that becomes too large is refused afterwards, and need not be in memory.
    if (weight_bytes_ <= kMaxWeightBytes) tensor.set_raw_data(data, bytes);
    return tensor.name();
  }

  onnx::GraphProto& graph_;
  const Tensor::DataType type_;
  int64_t weight_bytes_ = 0;
};

using Value = Graph::Value;

// x' = Pᵀ·((x − c) ∘ s), in float64, and rounded once.
Value InputOf(Graph& graph, const InputStage& input) {
  const Value rows = "rows";
  if (input.shift.empty() && input.scale.empty() && input.projection.empty()) return rows;
  Value x = graph.Cast(rows, Tensor::DOUBLE);
  if (!input.shift.empty()) x = graph.Sub(x, graph.Doubles(input.shift, {input.columns}));
  if (!input.scale.empty()) {
    x = graph.ScaleColumns(x, graph.Doubles(input.scale, {1, input.columns}), input.columns);
  }
  if (!input.projection.empty()) {
    const Matrix<double>& p = input.projection;
    x = graph.MatMul(x, graph.Doubles({p.data(), p.data() + p.size()}, {p.rows(), p.cols()}));
  }
  return graph.Cast(x, graph.type());
}

// The fixed rows of a stage of products, in float64.
struct FixedRows {
  int64_t count = 0;
  int64_t columns = 0;
  std::vector<double> numbers;

  const double* row(int64_t j) const { return numbers.data() + j * columns; }
  std::vector<double> Transposed() const {
    std::vector<double> out(numbers.size());
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t k = 0; k < columns; ++k) out[k * count + j] = numbers[j * columns + k];
    }
    return out;
  }
};

// Writes a kernel program. Operands of a pair are n × m, those of a row of the input n × 1.
class ProgramWriter {
 public:
  ProgramWriter(Graph& graph, const KernelProgram& program, const FixedRows& rows,
                std::vector<double> offsets, Value x)
      : graph_(graph),
        program_(program),
        rows_(rows),
        offsets_(std::move(offsets)),
        x_(std::move(x)) {}

  // `products` replaces x·A'ᵀ where it is not empty.
  absl::StatusOr<Value> Write(const Value& products) {
    if (!program_.strings().empty()) return CannotSay("what a kernel of strings is");
    pairs_.product = products;
    FactorsOfFixedRows();
    PHIMAP_ASSIGN_OR_RETURN(std::vector<Value> stack, Run(program_.ops(), /*self=*/false));
    // First the first numbers of all rows, then the second.
    return stack.size() == 1 ? stack[0] : graph_.NodeWith("Concat", stack, "axis", 1);
  }

 private:
  struct Operands {
    Value product;
    Value distance;
    Value l1;
  };

  Value Product() {
    if (pairs_.product.empty()) {
      pairs_.product =
          graph_.MatMul(x_, graph_.Numbers(rows_.Transposed(), {rows_.columns, rows_.count}));
    }
    return pairs_.product;
  }
  Value SquaredNorm() {
    if (norm_.empty()) norm_ = graph_.Sum(graph_.Mul(x_, x_), 1, /*keep=*/true);
    return norm_;
  }
  Value SquaredDistance() {
    if (pairs_.distance.empty()) {
      std::vector<double> norms(rows_.count);
      for (int64_t j = 0; j < rows_.count; ++j) {
        for (int64_t k = 0; k < rows_.columns; ++k) norms[j] += rows_.row(j)[k] * rows_.row(j)[k];
      }
      const Value sum = graph_.Add(SquaredNorm(), graph_.Numbers(norms, {1, rows_.count}));
      const Value distance = graph_.Sub(sum, graph_.Mul(graph_.Number(2), Product()));
      pairs_.distance = graph_.Node("Max", {distance, graph_.Number(0)});
    }
    return pairs_.distance;
  }

  // Σ_k w_k·g(x_k, a_k) for all pairs, by broadcasting n × 1 × k over 1 × m × k.
  Value ColumnSums(const ColumnSum& sum) {
    const int64_t read = sum.ColumnsReadOf(rows_.columns);
    std::vector<double> fixed;
    std::vector<double> weights;
    for (int64_t k = 0; k < read; ++k) weights.push_back(sum.WeightOf(k));
    for (int64_t j = 0; j < rows_.count; ++j) {
      fixed.insert(fixed.end(), rows_.row(j) + sum.first, rows_.row(j) + sum.first + read);
    }
    const Value x = graph_.Node("Unsqueeze", {Columns(sum.first, read), graph_.Integers({1})});
    const Value a = graph_.Numbers(fixed, {1, rows_.count, read});
    const Value terms = graph_.Mul(KnownTerm(sum.term, x, a), graph_.Numbers(weights, {read}));
    return graph_.Sum(terms, 2, /*keep=*/false);
  }
  Value SelfColumnSum(const ColumnSum& sum) {
    const int64_t read = sum.ColumnsReadOf(rows_.columns);
    std::vector<double> weights;
    for (int64_t k = 0; k < read; ++k) weights.push_back(sum.WeightOf(k));
    const Value x = Columns(sum.first, read);
    const Value terms = graph_.Mul(KnownTerm(sum.term, x, x), graph_.Numbers(weights, {read}));
    return graph_.Sum(terms, 1, /*keep=*/true);
  }
  Value Columns(int64_t first, int64_t count) {
    if (first == 0 && count == rows_.columns) return x_;
    return graph_.Node("Slice", {x_, graph_.Integers({first}), graph_.Integers({first + count}),
                                 graph_.Integers({1})});
  }
  // NaN where x is negative and the term takes numbers >= 0; the engine refuses such rows.
  Value KnownTerm(ColumnTerm term, const Value& x, const Value& a) {
    const Value value = Term(term, x, a);
    if (term == ColumnTerm::kProduct || term == ColumnTerm::kAbsoluteDifference ||
        term == ColumnTerm::kSquaredDifference) {
      return value;
    }
    const Value is_negative = graph_.Node("Less", {x, graph_.Number(0)});
    return graph_.Node("Where", {is_negative, graph_.Number(kNoNumber), value});
  }
  Value Term(ColumnTerm term, const Value& x, const Value& a) {
    switch (term) {
      case ColumnTerm::kProduct:
        return graph_.Mul(x, a);
      case ColumnTerm::kAbsoluteDifference:
        return graph_.Node("Abs", {graph_.Sub(x, a)});
      case ColumnTerm::kSquaredDifference: {
        const Value difference = graph_.Sub(x, a);
        return graph_.Mul(difference, difference);
      }
      case ColumnTerm::kHarmonicMean:
        return Quotient(graph_.Mul(graph_.Number(2), graph_.Mul(x, a)), graph_.Add(x, a));
      case ColumnTerm::kChiSquare: {
        const Value difference = graph_.Sub(x, a);
        return Quotient(graph_.Mul(difference, difference), graph_.Add(x, a));
      }
      case ColumnTerm::kMinimum:
        return graph_.Node("Min", {x, a});
    }
    return "";
  }
  // 0 where the divisor is 0.
  Value Quotient(const Value& dividend, const Value& divisor) {
    const Value is_zero = graph_.Node("Equal", {divisor, graph_.Number(0)});
    const Value safe = graph_.Node("Where", {is_zero, graph_.Number(1), divisor});
    return graph_.Node("Where", {is_zero, graph_.Number(0), graph_.Node("Div", {dividend, safe})});
  }

  // x·A a_j of all pairs, and xᵀAx.
  Value Form(const BilinearForm& form) {
    std::vector<double> fixed(rows_.numbers.size());
    std::vector<double> applied(rows_.columns);
    for (int64_t j = 0; j < rows_.count; ++j) {
      form.Apply(rows_.row(j), applied.data());
      for (int64_t k = 0; k < rows_.columns; ++k) fixed[k * rows_.count + j] = applied[k];
    }
    return graph_.MatMul(x_, graph_.Numbers(fixed, {rows_.columns, rows_.count}));
  }
  Value SelfForm(const BilinearForm& form) {
    const Value applied =
        form.diagonal
            ? graph_.Mul(x_, graph_.Numbers(form.numbers, {form.columns}))
            : graph_.MatMul(x_, graph_.Numbers(form.numbers, {form.columns, form.columns}));
    return graph_.Sum(graph_.Mul(applied, x_), 1, /*keep=*/true);
  }
  Value Extra(int32_t n, bool self) {
    const auto forms = static_cast<int32_t>(program_.forms().size());
    if (n < forms) {
      const BilinearForm& form = program_.forms()[static_cast<size_t>(n)];
      return self ? SelfForm(form) : Form(form);
    }
    const ColumnSum& sum = program_.sums()[static_cast<size_t>(n - forms)];
    return self ? SelfColumnSum(sum) : ColumnSums(sum);
  }

  // f(a_j) of every factor and fixed row, which the engine computes when it loads the plan.
  void FactorsOfFixedRows() {
    const size_t count = program_.factors().size();
    if (count == 0) return;
    const auto m = static_cast<size_t>(rows_.count);
    std::vector<double> norms(m);
    std::vector<std::vector<double>> extras;
    for (const BilinearForm& form : program_.forms()) {
      std::vector<double>& values = extras.emplace_back(m);
      for (size_t j = 0; j < m; ++j) values[j] = form.Square(rows_.row(static_cast<int64_t>(j)));
    }
    for (const ColumnSum& sum : program_.sums()) {
      std::vector<double>& values = extras.emplace_back(m);
      for (size_t j = 0; j < m; ++j) {
        values[j] = sum.Self(rows_.row(static_cast<int64_t>(j)), rows_.columns);
      }
    }
    for (size_t j = 0; j < m; ++j) {
      const double* const row = rows_.row(static_cast<int64_t>(j));
      for (int64_t k = 0; k < rows_.columns; ++k) norms[j] += row[k] * row[k];
    }
    std::vector<const double*> extra_pointers;
    for (const std::vector<double>& values : extras) extra_pointers.push_back(values.data());
    fixed_factors_.assign(count, std::vector<double>(m));
    std::array<double*, kMaxKernelFactors> made = {};
    for (size_t f = 0; f < count; ++f) made[f] = fixed_factors_[f].data();
    EvaluateFactors(program_, norms.data(), extra_pointers.data(), rows_.count, made.data());
  }
  absl::StatusOr<Value> Factor(int32_t n) {
    const auto f = static_cast<size_t>(n);
    if (factors_.size() <= f) factors_.resize(f + 1);
    if (factors_[f].empty()) {
      PHIMAP_ASSIGN_OR_RETURN(const std::vector<Value> stack,
                              Run(program_.factors()[f], /*self=*/true));
      factors_[f] = stack[0];
    }
    return factors_[f];
  }

  // Runs operations on the operands of all pairs, or with `self` on those of K(x, x).
  absl::StatusOr<std::vector<Value>> Run(const std::vector<KernelOp>& ops, bool self) {
    std::vector<Value> stack;
    for (const KernelOp& op : ops) {
      switch (op.code) {
        case KernelOpCode::kPushProduct:
          stack.push_back(self ? SquaredNorm() : Product());
          break;
        case KernelOpCode::kPushSquaredDistance:
          stack.push_back(self ? graph_.Number(0) : SquaredDistance());
          break;
        case KernelOpCode::kPushL1Distance:
          stack.push_back(self ? graph_.Number(0)
                               : ColumnSums({.term = ColumnTerm::kAbsoluteDifference}));
          break;
        case KernelOpCode::kPushShiftedProduct:
          stack.push_back(graph_.Add(Product(), graph_.Numbers(offsets_, {1, rows_.count})));
          break;
        case KernelOpCode::kPushForm:
        case KernelOpCode::kPushColumnSum:
          stack.push_back(Extra(op.n, self));
          break;
        case KernelOpCode::kPushFactor: {
          PHIMAP_ASSIGN_OR_RETURN(const Value factor, Factor(op.n));
          stack.push_back(
              self ? graph_.Mul(factor, factor)
                   : graph_.ScaleColumns(factor,
                                         graph_.Numbers(fixed_factors_[static_cast<size_t>(op.n)],
                                                        {1, rows_.count}),
                                         rows_.count));
          break;
        }
        case KernelOpCode::kPushString:
          return CannotSay("what a kernel of strings is");
        case KernelOpCode::kAdd:
        case KernelOpCode::kMultiply: {
          const Value top = stack.back();
          stack.pop_back();
          stack.back() = op.code == KernelOpCode::kAdd ? graph_.Add(stack.back(), top)
                                                       : graph_.Mul(stack.back(), top);
          break;
        }
        case KernelOpCode::kCosSinTurns: {
          const Value turns = stack.back();
          stack.back() = Turns(op, turns, /*sine=*/false, self);
          stack.push_back(Turns(op, turns, /*sine=*/true, self));
          break;
        }
        case KernelOpCode::kAffine:
        case KernelOpCode::kScale:
        case KernelOpCode::kPower:
        case KernelOpCode::kExp:
        case KernelOpCode::kCos:
        case KernelOpCode::kSin:
        case KernelOpCode::kCosTurns:
        case KernelOpCode::kTanh:
        case KernelOpCode::kIsZero:
        case KernelOpCode::kSquareRoot:
        case KernelOpCode::kInverse:
        case KernelOpCode::kInverseOrZero:
        case KernelOpCode::kMatern:
        case KernelOpCode::kLogOnePlus:
          stack.back() = Unary(op, stack.back(), self);
          break;
      }
    }
    return stack;
  }

  // t·a, where t has a column for each fixed row, or with `self` one.
  Value Scaled(const Value& t, double a, bool self) {
    const int64_t m = self ? 1 : rows_.count;
    const std::vector<double> factors(static_cast<size_t>(m), a);
    return graph_.ScaleColumns(t, graph_.Numbers(factors, {1, m}), m);
  }
  Value Unary(const KernelOp& op, const Value& t, bool self) {
    switch (op.code) {
      case KernelOpCode::kAffine:
        return graph_.Add(Scaled(t, op.a, self), graph_.Number(op.b));
      case KernelOpCode::kScale:
        return Scaled(t, op.a, self);
      case KernelOpCode::kPower:
        return graph_.Node("Pow", {t, graph_.Number(op.n)});
      case KernelOpCode::kExp:
        return graph_.Node("Exp", {t});
      case KernelOpCode::kCos:
        return Within(t, kMostRadians, Cosine(t), kNoNumber);
      case KernelOpCode::kSin:
        return Within(t, kMostRadians, graph_.Node("Sin", {t}), kNoNumber);
      case KernelOpCode::kCosTurns:
        return Turns(op, t, /*sine=*/false, self);
      case KernelOpCode::kTanh:
        return graph_.Node("Tanh", {t});
      case KernelOpCode::kIsZero:
        return graph_.Cast(graph_.Node("Equal", {t, graph_.Number(0)}), graph_.type());
      case KernelOpCode::kSquareRoot:
        return graph_.Node("Sqrt", {t});
      case KernelOpCode::kInverse:
        return graph_.Node("Reciprocal", {t});
      case KernelOpCode::kInverseOrZero:
        return Quotient(graph_.Number(1), t);
      case KernelOpCode::kMatern:
        return Matern(op.n, t);
      case KernelOpCode::kLogOnePlus:
        return graph_.Node("Log", {graph_.Add(t, graph_.Number(1))});
      case KernelOpCode::kPushProduct:
      case KernelOpCode::kPushSquaredDistance:
      case KernelOpCode::kAdd:
      case KernelOpCode::kMultiply:
      case KernelOpCode::kPushShiftedProduct:
      case KernelOpCode::kCosSinTurns:
      case KernelOpCode::kPushL1Distance:
      case KernelOpCode::kPushForm:
      case KernelOpCode::kPushFactor:
      case KernelOpCode::kPushString:
      case KernelOpCode::kPushColumnSum:
        break;  // not unary
    }
    return "";
  }
  // `value` where |t| is at most `most`, and elsewhere `other`.
  Value Within(const Value& t, double most, const Value& value, double other) {
    const Value is_within =
        graph_.Node("LessOrEqual", {graph_.Node("Abs", {t}), graph_.Number(most)});
    return graph_.Node("Where", {is_within, value, graph_.Number(other)});
  }
  // Runtimes have a cosine in float32 alone, and a sine in both types.
  Value Cosine(const Value& t) {
    if (graph_.type() == Tensor::FLOAT) return graph_.Node("Cos", {t});
    return graph_.Node("Sin", {graph_.Add(t, graph_.Number(kPi / 2))});
  }
  // a·cos 2πt or a·sin 2πt, or 0, the mean, where t has too few digits to tell. Whole turns are
  // taken off first, exactly.
  Value Turns(const KernelOp& op, const Value& t, bool sine, bool self) {
    const Value rest = graph_.Sub(t, graph_.Node("Round", {t}));
    const Value angle = graph_.Mul(rest, graph_.Number(2 * kPi));
    const Value wave = sine ? graph_.Node("Sin", {angle}) : Cosine(angle);
    const double most = graph_.type() == Tensor::FLOAT ? kMostTurns32 : kMostTurns64;
    return Scaled(Within(t, most, wave, 0), op.a, self);
  }
  Value Matern(int32_t n, const Value& t) {
    const Value r = graph_.Node("Sqrt", {t});
    const Value decay = graph_.Node("Exp", {graph_.Node("Neg", {r})});
    if (n == 1) return decay;
    Value polynomial = graph_.Add(r, graph_.Number(1));
    if (n == 5) polynomial = graph_.Add(polynomial, graph_.Mul(t, graph_.Number(1.0 / 3)));
    return graph_.Mul(polynomial, decay);
  }

  Graph& graph_;
  const KernelProgram& program_;
  const FixedRows& rows_;
  const std::vector<double> offsets_;
  const Value x_;
  Operands pairs_;
  Value norm_;
  std::vector<Value> factors_;
  std::vector<std::vector<double>> fixed_factors_;
};

template <typename T>
FixedRows RowsOf(const Matrix<T>& rows) {
  return {rows.rows(), rows.cols(), {rows.data(), rows.data() + rows.size()}};
}

template <typename T>
absl::StatusOr<Value> FeaturesOf(Graph& graph, const ProductFeatures<T>& stage, const Value& x) {
  const FixedRows rows = RowsOf(stage.rows);
  return ProgramWriter(graph, stage.program, rows, {stage.offsets.begin(), stage.offsets.end()}, x)
      .Write("");
}

template <typename T>
absl::StatusOr<Value> FeaturesOf(Graph& graph, const L1Features<T>& stage, const Value& x) {
  const FixedRows rows = RowsOf(stage.rows);
  // |x − a| summed, as of the program of distances alone.
  const Value wide = graph.Node("Unsqueeze", {x, graph.Integers({1})});
  const Value difference =
      graph.Sub(wide, graph.Numbers(rows.numbers, {1, rows.count, rows.columns}));
  const Value distances = graph.Sum(graph.Node("Abs", {difference}), 2, /*keep=*/false);
  return ProgramWriter(graph, stage.program, rows, {}, x).Write(distances);
}

// Feature j is a coefficient times the product of `degree` columns; −1 is a column of ones.
template <typename T>
absl::StatusOr<Value> FeaturesOf(Graph& graph, const ExpansionFeatures<T>& stage, const Value& x) {
  const auto features = static_cast<int64_t>(stage.coefficients.size());
  const Value first = graph.NodeWith("Gather", {x, graph.Integers({0})}, "axis", 1);
  const Value ones = graph.Add(graph.Mul(first, graph.Number(0)), graph.Number(1));
  const Value columns = graph.NodeWith("Concat", {ones, x}, "axis", 1);
  const Value coefficients =
      graph.Numbers({stage.coefficients.begin(), stage.coefficients.end()}, {1, features});
  Value product;
  for (int64_t position = 0; position < stage.degree; ++position) {
    std::vector<int64_t> places;
    for (int64_t j = 0; j < features; ++j) {
      places.push_back(stage.columns[static_cast<size_t>(j * stage.degree + position)] + 1);
    }
    const Value factor = graph.NodeWith("Gather", {columns, graph.Integers(places)}, "axis", 1);
    product = position == 0 ? graph.ScaleColumns(factor, coefficients, features)
                            : graph.Mul(factor, product);
  }
  return product;
}

absl::StatusOr<Value> FeaturesOf(Graph&, const RemoteFeatures& stage, const Value&) {
  if (stage.kind == RemoteFeatures::StoredKind::kRowNumbers) {
    return CannotSay("what a precomputed kernel is, whose values the caller computes");
  }
  return CannotSay("how to ask for the values of a remote kernel");
}
absl::StatusOr<Value> FeaturesOf(Graph&, const StringFeatures&, const Value&) {
  return CannotSay("what a kernel of strings is");
}

Value ProjectionOf(Graph&, const NoProjection&, const Value& z) { return z; }
template <typename T>
Value ProjectionOf(Graph& graph, const DenseProjection<T>& w, const Value& z) {
  const std::vector<T> elements(w.matrix.data(), w.matrix.data() + w.matrix.size());
  return graph.MatMul(z, graph.Matrix(elements, w.matrix.rows(), w.matrix.cols()));
}
template <typename T>
Value ProjectionOf(Graph& graph, const TriangularProjection<T>& w, const Value& z) {
  std::vector<T> full(static_cast<size_t>(w.order * w.order));
  for (int64_t k = 0; k < w.order; ++k) {
    std::copy_n(w.elements.data() + w.RowOffset(k), w.order - k, full.data() + k * w.order + k);
  }
  return graph.MatMul(z, graph.Matrix(full, w.order, w.order));
}
template <typename T>
Value ProjectionOf(Graph& graph, const SparseProjection<T>& w, const Value& z) {
  std::vector<T> full(static_cast<size_t>(w.rows * w.columns));
  for (int64_t k = 0; k < w.rows; ++k) {
    for (int64_t e = w.row_offsets[k]; e < w.row_offsets[k + 1]; ++e) {
      full[k * w.columns + w.column_indices[e]] = w.values[e];
    }
  }
  return graph.MatMul(z, graph.Matrix(full, w.rows, w.columns));
}

// The largest matrix that W becomes, which is dense in a model.
template <typename T>
int64_t DenseElements(const ServingStages<T>& stages) {
  return stages.feature_count() * stages.output_columns();
}

absl::StatusOr<Value> OutputOf(Graph& graph, const Plan& plan) {
  const Value x = InputOf(graph, plan.input);
  return std::visit(
      [&](const auto& stages) -> absl::StatusOr<Value> {
        using T = typename std::decay_t<decltype(stages)>::Element;
        const bool projects = !std::holds_alternative<NoProjection>(stages.projection);
        if (projects && DenseElements(stages) * static_cast<int64_t>(sizeof(T)) > kMaxWeightBytes) {
          return CannotSay("a matrix of more than 2 GiB, which is the limit of its format");
        }
        PHIMAP_ASSIGN_OR_RETURN(
            Value z,
            std::visit([&](const auto& features) { return FeaturesOf(graph, features, x); },
                       stages.features));
        if (!stages.centre.empty()) {
          z = graph.Sub(z, graph.Numbers({stages.centre.begin(), stages.centre.end()},
                                         {static_cast<int64_t>(stages.centre.size())}));
        }
        return std::visit([&](const auto& w) { return ProjectionOf(graph, w, z); },
                          stages.projection);
      },
      plan.stages);
}

// Adds b, and what is made of the scores. `scores` are without it, in float64.
void AddAnswers(Graph& graph, const phimap::Head& head, Value scores) {
  scores = graph.Add(scores, graph.Doubles(head.intercepts, {head.scores()}));
  if (head.task == HeadTask::kNumbers) return graph.Output("value", scores, Tensor::DOUBLE, 1);
  const auto classes = static_cast<int64_t>(head.classes.size());
  const bool two = classes == 2;
  const Value index =
      two ? graph.Cast(graph.Node("Squeeze", {graph.Node("Greater", {scores, graph.Double(0)}),
                                              graph.Integers({1})}),
                       Tensor::INT64)
          : graph.ArgMax(scores);
  if (head.integer_classes) {
    std::vector<int64_t> numbers;
    for (const std::string& name : head.classes) {
      int64_t number = 0;
      if (absl::SimpleAtoi(name, &number)) numbers.push_back(number);
    }
    graph.Output("label", graph.Node("Gather", {graph.Integers(numbers), index}), Tensor::INT64, 0);
  } else {
    graph.Output("label", graph.Node("Gather", {graph.Texts(head.classes), index}), Tensor::STRING,
                 0);
  }
  graph.Output("scores", scores, Tensor::DOUBLE, head.scores());
  if (head.link.kind == Link::Kind::kNone) return;
  const Value scaled = graph.Mul(scores, graph.Double(head.link.slope));
  if (!two) {
    return graph.Output("probabilities", graph.NodeWith("Softmax", {scaled}, "axis", 1),
                        Tensor::DOUBLE, classes);
  }
  const Value odds = graph.Add(scaled, graph.Double(head.link.offset));
  const Value second = graph.Node("Sigmoid", {odds});
  const Value first = graph.Node("Sigmoid", {graph.Node("Neg", {odds})});
  graph.Output("probabilities", graph.NodeWith("Concat", {first, second}, "axis", 1),
               Tensor::DOUBLE, classes);
}

absl::Status AddHead(Graph& graph, Plan plan, const phimap::Head& head) {
  if (head.folded) {
    PHIMAP_ASSIGN_OR_RETURN(plan, FoldPlan(std::move(plan), head));
    PHIMAP_ASSIGN_OR_RETURN(const Value scores, OutputOf(graph, plan));
    AddAnswers(graph, head, graph.Cast(scores, Tensor::DOUBLE));
    return absl::OkStatus();
  }
  PHIMAP_ASSIGN_OR_RETURN(const Value features, OutputOf(graph, plan));
  const Matrix<double>& v = head.weights;
  const Value weights = graph.Doubles({v.data(), v.data() + v.size()}, {v.rows(), v.cols()});
  AddAnswers(graph, head, graph.MatMul(graph.Cast(features, Tensor::DOUBLE), weights));
  return absl::OkStatus();
}

void AddFact(onnx::ModelProto& model, const char* key, const std::string& value) {
  if (value.empty()) return;
  onnx::StringStringEntryProto& entry = *model.add_metadata_props();
  entry.set_key(absl::StrCat("phimap.", key));
  entry.set_value(value);
}

}  // namespace

absl::StatusOr<std::string> OnnxModelOf(const FeatureMap& map, OnnxOutputs outputs) {
  PHIMAP_ASSIGN_OR_RETURN(Artifact artifact, DecodeArtifact(map.artifact()));
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("phimap");
  model.add_opset_import()->set_version(kOpset);
  AddFact(model, "digest", map.digest());
  AddFact(model, "spec", artifact.provenance.spec_text);
  AddFact(model, "kernel", artifact.provenance.kernel_text);
  AddFact(model, "columns", absl::StrJoin(artifact.provenance.column_names, "\n"));
  model.mutable_graph()->set_name("phimap");
  const auto type = map.serving_type() == FloatType::kFloat32 ? Tensor::FLOAT : Tensor::DOUBLE;
  Graph graph(*model.mutable_graph(), type);
  graph.Input("rows", map.input_columns());
  if (outputs == OnnxOutputs::kFeatures) {
    PHIMAP_ASSIGN_OR_RETURN(const Value features, OutputOf(graph, artifact.plan));
    graph.Output("features", features, type, map.output_columns());
  } else if (artifact.head.empty()) {
    return MakeError(Code::kFailedPrecondition, reason::kHeadMissing, "",
                     "the map has features alone and no head that answers");
  } else {
    PHIMAP_ASSIGN_OR_RETURN(const phimap::Head head, DecodeHead(artifact.head));
    AddFact(model, "learner", head.learner_text);
    AddFact(model, "classes", absl::StrJoin(head.classes, "\n"));
    PHIMAP_RETURN_IF_ERROR(AddHead(graph, std::move(artifact.plan), head));
  }
  if (graph.weight_bytes() > kMaxWeightBytes) {
    return CannotSay("weights of more than 2 GiB, which is the limit of its format");
  }
  return model.SerializeAsString();
}

}  // namespace phimap
