#include "core/plan/plan_codec.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/plan/examples.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr int64_t kNumberAlignment = 64;
constexpr int64_t kMaxNameBytes = 4096;
constexpr int64_t kMaxExampleBytes = 1 << 20;

// The numbers are part of the artifact format and are never reused.
enum FeatureKind : uint8_t {
  kProduct = 1,
  kL1 = 2,
  kStructured = 3,
  kExpansion = 4,
  kRemote = 5,
  kShiftedProduct = 6,
  kComposed = 7,
  kStrings = 8,
  kColumnSums = 9
};
enum ProjectionKind : uint8_t {
  kNone = 0,
  kTriangular = 1,
  kDense = 2,
  kSparse = 3,
  kStructuredW = 4,
  kLandmarkTriangle = 5
};

// The number of the formula that bounds the rounding of features (residual.h). A projection that
// stores K(a, a) of each landmark also stores this number. A projection of the older kind
// kTriangular does not store it and uses formula 1, which depends on the largest K(a, a).
enum RoundingBound : uint8_t { kShareOfEachLandmark = 2 };

template <typename T>
void EncodeNumbers(ByteWriter& writer, const T* values, int64_t count) {
  writer.AlignTo(kNumberAlignment);
  writer.Numbers(values, count);
}

template <typename T>
void EncodeVector(ByteWriter& writer, const std::vector<T>& values) {
  writer.Number<int64_t>(static_cast<int64_t>(values.size()));
  EncodeNumbers(writer, values.data(), static_cast<int64_t>(values.size()));
}

template <typename T>
void EncodeMatrix(ByteWriter& writer, const Matrix<T>& matrix) {
  writer.Number<int64_t>(matrix.rows());
  writer.Number<int64_t>(matrix.cols());
  EncodeNumbers(writer, matrix.data(), matrix.size());
}

// Allocates only after the reader has shown that the bytes are present.
template <typename T>
std::vector<T> DecodeNumbers(ByteReader& reader, int64_t count) {
  reader.AlignTo(kNumberAlignment);
  const char* bytes = reader.Numbers<T>(count);
  if (bytes == nullptr) return {};
  std::vector<T> values(static_cast<size_t>(count));
  if (count > 0) std::memcpy(values.data(), bytes, sizeof(T) * static_cast<size_t>(count));
  return values;
}

template <typename T>
std::vector<T> DecodeVector(ByteReader& reader, int64_t limit) {
  const int64_t count = reader.Number<int64_t>();
  reader.CheckRange("length of a vector", count, 0, limit);
  return reader.ok() ? DecodeNumbers<T>(reader, count) : std::vector<T>{};
}

template <typename T>
Matrix<T> DecodeMatrix(ByteReader& reader) {
  const int64_t rows = reader.Number<int64_t>();
  const int64_t cols = reader.Number<int64_t>();
  reader.CheckRange("rows of a matrix", rows, 0, kMaxPlanDimension);
  reader.CheckRange("columns of a matrix", cols, 0, kMaxPlanDimension);
  reader.AlignTo(kNumberAlignment);
  if (!reader.ok()) return {};
  const char* bytes = reader.Numbers<T>(rows * cols);
  if (bytes == nullptr) return {};
  Matrix<T> matrix = Matrix<T>::Uninit(rows, cols);
  if (!matrix.empty())
    std::memcpy(matrix.data(), bytes, sizeof(T) * static_cast<size_t>(rows * cols));
  return matrix;
}

void EncodeOps(ByteWriter& writer, const std::vector<KernelOp>& ops) {
  writer.Number<uint32_t>(static_cast<uint32_t>(ops.size()));
  for (const KernelOp& op : ops) {
    writer.Number<uint8_t>(static_cast<uint8_t>(op.code));
    writer.Number<int32_t>(op.n);
    writer.Number<double>(op.a);
    writer.Number<double>(op.b);
  }
}

std::vector<KernelOp> DecodeOps(ByteReader& reader) {
  const int64_t count = reader.Number<uint32_t>();
  reader.CheckRange("operations of a kernel program", count, 1, kMaxKernelOps);
  std::vector<KernelOp> ops;
  for (int64_t i = 0; i < count && reader.ok(); ++i) {
    KernelOp op;
    op.code = static_cast<KernelOpCode>(reader.Number<uint8_t>());
    op.n = reader.Number<int32_t>();
    op.a = reader.Number<double>();
    op.b = reader.Number<double>();
    ops.push_back(op);
  }
  return ops;
}

// Encodes the factors and forms of a composed program.
void EncodeExtras(ByteWriter& writer, const KernelProgram& program) {
  writer.Number<uint32_t>(static_cast<uint32_t>(program.factors().size()));
  for (const std::vector<KernelOp>& factor : program.factors()) EncodeOps(writer, factor);
  writer.Number<uint32_t>(static_cast<uint32_t>(program.forms().size()));
  for (const BilinearForm& form : program.forms()) {
    writer.Number<uint8_t>(form.diagonal ? 1 : 0);
    writer.Number<int64_t>(form.columns);
    EncodeVector(writer, form.numbers);
  }
}

void DecodeExtras(ByteReader& reader, KernelProgramParts& parts) {
  const int64_t factors = reader.Number<uint32_t>();
  reader.CheckRange("factors of a kernel", factors, 0, kMaxKernelFactors);
  for (int64_t i = 0; i < factors && reader.ok(); ++i) parts.factors.push_back(DecodeOps(reader));
  const int64_t forms = reader.Number<uint32_t>();
  reader.CheckRange("bilinear forms of a kernel", forms, 0, kMaxKernelForms);
  for (int64_t i = 0; i < forms && reader.ok(); ++i) {
    BilinearForm form;
    const int kind = reader.Number<uint8_t>();
    reader.CheckRange("kind of a bilinear form", kind, 0, 1);
    form.diagonal = kind == 1;
    form.columns = reader.Number<int64_t>();
    reader.CheckRange("columns of a bilinear form", form.columns, 1, kMaxPlanDimension);
    form.numbers = DecodeVector<double>(reader, kMaxPlanDimension * kMaxPlanDimension);
    parts.forms.push_back(std::move(form));
  }
}

void EncodeSums(ByteWriter& writer, const std::vector<ColumnSum>& sums) {
  writer.Number<uint32_t>(static_cast<uint32_t>(sums.size()));
  for (const ColumnSum& sum : sums) {
    writer.Number<uint8_t>(static_cast<uint8_t>(sum.term));
    writer.Number<int64_t>(sum.first);
    EncodeVector(writer, sum.weights);
  }
}

void DecodeSums(ByteReader& reader, KernelProgramParts& parts) {
  const int64_t sums = reader.Number<uint32_t>();
  reader.CheckRange("column sums of a kernel", sums, 1, kMaxColumnSums);
  for (int64_t i = 0; i < sums && reader.ok(); ++i) {
    ColumnSum sum;
    sum.term = static_cast<ColumnTerm>(reader.Number<uint8_t>());
    sum.first = reader.Number<int64_t>();
    sum.weights = DecodeVector<double>(reader, kMaxPlanDimension);
    parts.sums.push_back(std::move(sum));
  }
}

FeatureKind KindOf(const KernelProgram& program) {
  if (!program.sums().empty()) return kColumnSums;
  if (!program.is_plain()) return kComposed;
  return program.uses_offsets() ? kShiftedProduct : kProduct;
}

absl::StatusOr<KernelProgram> DecodeProgram(ByteReader& reader, int kind) {
  KernelProgramParts parts;
  parts.ops = DecodeOps(reader);
  if (kind == kComposed || kind == kColumnSums) DecodeExtras(reader, parts);
  if (kind == kColumnSums) DecodeSums(reader, parts);
  PHIMAP_RETURN_IF_ERROR(reader.status());
  return KernelProgram::FromParts(std::move(parts));
}

absl::Status UnknownKind(absl::string_view stage, int kind) {
  return MakeError(absl::StatusCode::kUnimplemented, reason::kFormatUnknown, "",
                   absl::StrCat("artifact has a ", stage, " stage of kind ", kind,
                                ", which this build does not know"));
}

absl::Status WrongKind(int kind) {
  return MakeError(
      absl::StatusCode::kDataLoss, reason::kArtifactMalformed, "",
      absl::StrCat("the artifact's feature stage has kind ", kind,
                   ", but its program must be stored as kind ", kind == kComposed ? 1 : 7));
}

// Encodes operations, factors, string kernels and strings. Factors are encoded like those of a
// composed program.
void EncodeStrings(ByteWriter& writer, const StringFeatures& f) {
  writer.Number<uint8_t>(kStrings);
  EncodeOps(writer, f.program.ops());
  EncodeExtras(writer, f.program);
  writer.Number<uint32_t>(static_cast<uint32_t>(f.program.strings().size()));
  for (const StringKernel& kernel : f.program.strings()) {
    writer.Number<uint8_t>(static_cast<uint8_t>(kernel.measure));
    writer.Number<uint8_t>(static_cast<uint8_t>(kernel.unit));
    writer.Number<int32_t>(kernel.n);
  }
  writer.Number<uint32_t>(static_cast<uint32_t>(f.strings.size()));
  for (const std::string& string : f.strings) writer.Text(string);
}

absl::StatusOr<StringFeatures> DecodeStrings(ByteReader& reader) {
  KernelProgramParts parts;
  parts.ops = DecodeOps(reader);
  DecodeExtras(reader, parts);
  const int64_t kernels = reader.Number<uint32_t>();
  reader.CheckRange("kernels of strings", kernels, 1, kMaxKernelForms);
  for (int64_t i = 0; i < kernels && reader.ok(); ++i) {
    StringKernel kernel;
    kernel.measure = static_cast<StringMeasure>(reader.Number<uint8_t>());
    kernel.unit = static_cast<StringUnit>(reader.Number<uint8_t>());
    kernel.n = reader.Number<int32_t>();
    parts.strings.push_back(kernel);
  }
  StringFeatures features;
  const int64_t count = reader.Number<uint32_t>();
  reader.CheckRange("strings", count, 1, kMaxPlanDimension);
  for (int64_t i = 0; i < count && reader.ok(); ++i) {
    features.strings.push_back(reader.Text(kMaxStringBytes));
  }
  PHIMAP_RETURN_IF_ERROR(reader.status());
  PHIMAP_ASSIGN_OR_RETURN(features.program, KernelProgram::FromParts(std::move(parts)));
  return features;
}

struct FeatureEncoder {
  ByteWriter& writer;
  template <typename T>
  void operator()(const ProductFeatures<T>& f) const {
    const FeatureKind kind = KindOf(f.program);
    writer.Number<uint8_t>(kind);
    EncodeOps(writer, f.program.ops());
    if (!f.program.is_plain()) EncodeExtras(writer, f.program);
    if (kind == kColumnSums) EncodeSums(writer, f.program.sums());
    EncodeMatrix(writer, f.rows);
    if (!f.offsets.empty()) EncodeVector(writer, f.offsets);
  }
  template <typename T>
  void operator()(const L1Features<T>& f) const {
    writer.Number<uint8_t>(kL1);
    EncodeOps(writer, f.program.ops());
    EncodeMatrix(writer, f.rows);
  }
  template <typename T>
  void operator()(const ExpansionFeatures<T>& f) const {
    writer.Number<uint8_t>(kExpansion);
    writer.Number<int64_t>(f.degree);
    EncodeVector(writer, f.columns);
    EncodeVector(writer, f.coefficients);
  }
  void operator()(const StringFeatures& f) const { EncodeStrings(writer, f); }
  void operator()(const RemoteFeatures& f) const {
    writer.Number<uint8_t>(kRemote);
    writer.Text(f.kernel);
    writer.Text(f.endpoint);
    writer.Number<uint8_t>(static_cast<uint8_t>(f.kind));
    writer.Number<uint32_t>(static_cast<uint32_t>(f.examples.size()));
    for (const std::string& example : f.examples) writer.Text(example);
  }
};

struct ProjectionEncoder {
  ByteWriter& writer;
  void operator()(const NoProjection&) const { writer.Number<uint8_t>(kNone); }
  template <typename T>
  void operator()(const TriangularProjection<T>& p) const {
    writer.Number<uint8_t>(p.self_values.empty() ? kTriangular : kLandmarkTriangle);
    if (!p.self_values.empty()) {
      writer.Number<uint8_t>(kShareOfEachLandmark);
      EncodeVector(writer, p.self_values);
    }
    writer.Number<int64_t>(p.order);
    EncodeNumbers(writer, p.elements.data(), p.elements.size());
  }
  template <typename T>
  void operator()(const DenseProjection<T>& p) const {
    writer.Number<uint8_t>(kDense);
    EncodeMatrix(writer, p.matrix);
  }
  template <typename T>
  void operator()(const SparseProjection<T>& p) const {
    writer.Number<uint8_t>(kSparse);
    writer.Number<int64_t>(p.rows);
    writer.Number<int64_t>(p.columns);
    writer.Number<int64_t>(static_cast<int64_t>(p.values.size()));
    EncodeNumbers(writer, p.row_offsets.data(), p.rows + 1);
    EncodeNumbers(writer, p.column_indices.data(), p.column_indices.size());
    EncodeNumbers(writer, p.values.data(), p.values.size());
  }
};

absl::Status DecodeInputStage(ByteReader& reader, InputStage& input) {
  input.columns = reader.Number<int64_t>();
  reader.CheckRange("input columns", input.columns, 0, kMaxPlanDimension);
  input.shift = DecodeVector<double>(reader, kMaxPlanDimension);
  input.scale = DecodeVector<double>(reader, kMaxPlanDimension);
  input.projection = DecodeMatrix<double>(reader);
  return reader.Finish();
}

RemoteFeatures DecodeRemote(ByteReader& reader) {
  RemoteFeatures remote;
  remote.kernel = reader.Text(kMaxNameBytes);
  remote.endpoint = reader.Text(kMaxNameBytes);
  const int kind = reader.Number<uint8_t>();
  reader.CheckRange("kind of examples", kind, 1, 5);
  remote.kind = static_cast<RemoteFeatures::StoredKind>(kind);
  const int64_t count = reader.Number<uint32_t>();
  reader.CheckRange("examples", count, 1, kMaxPlanDimension);
  for (int64_t i = 0; i < count && reader.ok(); ++i) {
    remote.examples.push_back(reader.Text(kMaxExampleBytes));
  }
  return remote;
}

template <typename T>
ExpansionFeatures<T> DecodeExpansion(ByteReader& reader) {
  ExpansionFeatures<T> expansion;
  expansion.degree = reader.Number<int64_t>();
  reader.CheckRange("degree of an expansion", expansion.degree, 1, kMaxExpansionDegree);
  expansion.columns = DecodeVector<int32_t>(reader, kMaxPlanDimension * kMaxExpansionDegree);
  expansion.coefficients = DecodeVector<T>(reader, kMaxPlanDimension);
  return expansion;
}

template <typename T>
absl::Status DecodeFeatureStage(ByteReader& reader, ServingStages<T>& stages) {
  const int kind = reader.Number<uint8_t>();
  PHIMAP_RETURN_IF_ERROR(reader.status());
  if (kind == kRemote) {
    stages.features = DecodeRemote(reader);
  } else if (kind == kStrings) {
    PHIMAP_ASSIGN_OR_RETURN(stages.features, DecodeStrings(reader));
  } else if (kind == kExpansion) {
    stages.features = DecodeExpansion<T>(reader);
  } else if (kind == kProduct || kind == kL1 || kind == kShiftedProduct || kind == kComposed ||
             kind == kColumnSums) {
    PHIMAP_ASSIGN_OR_RETURN(KernelProgram program, DecodeProgram(reader, kind));
    // Each program has one encoding, so that the same plan gives the same bytes.
    if (program.is_plain() == (kind == kComposed || kind == kColumnSums) ||
        (kind == kComposed && !program.sums().empty())) {
      return WrongKind(kind);
    }
    Matrix<T> rows = DecodeMatrix<T>(reader);
    if (kind != kL1) {
      std::vector<T> offsets;
      if (kind == kShiftedProduct) {
        offsets = DecodeVector<T>(reader, kMaxPlanDimension);
        reader.CheckRange("offsets", static_cast<int64_t>(offsets.size()), 1, kMaxPlanDimension);
      }
      stages.features = ProductFeatures<T>{std::move(rows), std::move(program), std::move(offsets)};
    } else {
      stages.features = L1Features<T>{std::move(rows), std::move(program)};
    }
  } else {
    return UnknownKind("feature", kind);
  }
  return reader.Finish();
}

template <typename T>
TriangularProjection<T> DecodeTriangle(ByteReader& reader) {
  TriangularProjection<T> triangle;
  triangle.order = reader.Number<int64_t>();
  reader.CheckRange("order of a triangle", triangle.order, 1, kMaxPlanDimension);
  reader.AlignTo(kNumberAlignment);
  if (!reader.ok()) return {};
  const int64_t count = triangle.ElementCount(triangle.order);
  const char* bytes = reader.Numbers<T>(count);
  if (bytes == nullptr) return {};
  triangle.elements = AlignedArray<T>(count);
  std::memcpy(triangle.elements.data(), bytes, sizeof(T) * static_cast<size_t>(count));
  return triangle;
}

template <typename T>
SparseProjection<T> DecodeSparse(ByteReader& reader) {
  SparseProjection<T> sparse;
  sparse.rows = reader.Number<int64_t>();
  sparse.columns = reader.Number<int64_t>();
  const int64_t count = reader.Number<int64_t>();
  reader.CheckRange("rows of a sparse matrix", sparse.rows, 1, kMaxPlanDimension);
  reader.CheckRange("columns of a sparse matrix", sparse.columns, 1, kMaxPlanDimension);
  reader.CheckRange("values of a sparse matrix", count, 0, kMaxPlanDimension * kMaxPlanDimension);
  if (!reader.ok()) return {};
  sparse.row_offsets = DecodeNumbers<int64_t>(reader, sparse.rows + 1);
  sparse.column_indices = DecodeNumbers<int32_t>(reader, count);
  sparse.values = DecodeNumbers<T>(reader, count);
  return sparse;
}

template <typename T>
absl::Status DecodeProjectionStage(ByteReader& reader, ServingStages<T>& stages) {
  stages.centre = DecodeVector<T>(reader, kMaxPlanDimension);
  const int kind = reader.Number<uint8_t>();
  PHIMAP_RETURN_IF_ERROR(reader.status());
  switch (kind) {
    case kNone:
      stages.projection = NoProjection{};
      break;
    case kTriangular:
      stages.projection = DecodeTriangle<T>(reader);
      break;
    case kLandmarkTriangle: {
      const auto method = reader.Number<uint8_t>();
      if (reader.ok() && method != kShareOfEachLandmark) {
        return UnknownKind("rounding bound", method);
      }
      std::vector<double> self_values = DecodeVector<double>(reader, kMaxPlanDimension);
      TriangularProjection<T> triangle = DecodeTriangle<T>(reader);
      if (self_values.empty()) reader.Fail("a triangle of landmarks has no values of K(a, a)");
      triangle.self_values = std::move(self_values);
      stages.projection = std::move(triangle);
      break;
    }
    case kDense:
      stages.projection = DenseProjection<T>{DecodeMatrix<T>(reader)};
      break;
    case kSparse:
      stages.projection = DecodeSparse<T>(reader);
      break;
    default:
      return UnknownKind("projection", kind);
  }
  return reader.Finish();
}

template <typename T>
absl::Status DecodeStages(ByteReader& features, ByteReader& projection, Plan& plan) {
  ServingStages<T> stages;
  PHIMAP_RETURN_IF_ERROR(DecodeFeatureStage(features, stages));
  PHIMAP_RETURN_IF_ERROR(DecodeProjectionStage(projection, stages));
  plan.stages = std::move(stages);
  return absl::OkStatus();
}

}  // namespace

std::string EncodeInputStage(const InputStage& input) {
  std::string out;
  ByteWriter writer(out);
  writer.Number<int64_t>(input.columns);
  EncodeVector(writer, input.shift);
  EncodeVector(writer, input.scale);
  EncodeMatrix(writer, input.projection);
  return out;
}

std::string EncodeFeatureStage(const Plan& plan) {
  std::string out;
  ByteWriter writer(out);
  std::visit([&](const auto& stages) { std::visit(FeatureEncoder{writer}, stages.features); },
             plan.stages);
  return out;
}

std::string EncodeProjectionStage(const Plan& plan) {
  std::string out;
  ByteWriter writer(out);
  std::visit(
      [&](const auto& stages) {
        EncodeVector(writer, stages.centre);
        std::visit(ProjectionEncoder{writer}, stages.projection);
      },
      plan.stages);
  return out;
}

absl::Status DecodePlan(FloatType serving_type, ByteReader input, ByteReader features,
                        ByteReader projection, Plan& plan) {
  PHIMAP_RETURN_IF_ERROR(DecodeInputStage(input, plan.input));
  PHIMAP_RETURN_IF_ERROR(serving_type == FloatType::kFloat32
                             ? DecodeStages<float>(features, projection, plan)
                             : DecodeStages<double>(features, projection, plan));
  const absl::Status valid = plan.Validate();
  if (valid.ok()) return valid;
  return MakeError(absl::StatusCode::kDataLoss, reason::kArtifactMalformed, "",
                   absl::StrCat("artifact holds an inconsistent plan: ", valid.message()));
}

}  // namespace phimap
