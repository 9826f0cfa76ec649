#include "core/head/head_program.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Maximum bytes of W·V. The limit is needed because an artifact of few bytes can state a large
// shape, as in a sparse W.
constexpr int64_t kMaxFoldedBytes = int64_t{1} << 30;
// Number of rows that are multiplied together, so small that they stay in the second-level cache.
constexpr int64_t kBlockRows = 40;

// Multiplies W with V in float64, row block by row block, with one overload for each form of W.
template <typename T>
class ProductWithV {
 public:
  explicit ProductWithV(const Matrix<double>& v) : v_(v) {}

  Matrix<double> operator()(const NoProjection&) const { return v_.Clone(); }
  // The zeros below the triangle do not change a chain.
  Matrix<double> operator()(const TriangularProjection<T>& w) const {
    return OfRows(w.order, [&](int64_t k, double* row) {
      std::fill_n(row, k, 0.0);
      std::copy_n(w.elements.data() + w.RowOffset(k), w.order - k, row + k);
    });
  }
  Matrix<double> operator()(const DenseProjection<T>& w) const {
    return OfRows(w.matrix.rows(), [&](int64_t k, double* row) {
      std::copy_n(w.matrix.row(k), w.matrix.cols(), row);
    });
  }
  Matrix<double> operator()(const SparseProjection<T>& w) const {
    const auto v = PanelMatrix<double>::Pack(v_.view());
    const std::vector<double> values(w.values.begin(), w.values.end());
    Matrix<double> product = Matrix<double>::Uninit(w.rows, v_.cols());
    for (int64_t k = 0; k < w.rows; k += kMaxSparseRows) {
      const SparseRowsRef<double> rows = {.rows = std::min(kMaxSparseRows, w.rows - k),
                                          .offsets = w.row_offsets.data() + k,
                                          .columns = w.column_indices.data(),
                                          .values = values.data()};
      v.MultiplySparse(rows, RowsOf(product, k, rows.rows).data());
    }
    return product;
  }

 private:
  // `fill` sets row k of W.
  template <typename Fill>
  Matrix<double> OfRows(int64_t count, Fill fill) const {
    const auto v = PanelMatrix<double>::Pack(v_.view());
    const int64_t stride = SpreadStride<double>(v_.rows());
    Matrix<double> block = Matrix<double>::Uninit(kBlockRows, stride);
    Matrix<double> product = Matrix<double>::Uninit(count, v_.cols());
    for (int64_t k = 0; k < count; k += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, count - k);
      for (int64_t i = 0; i < rows; ++i) fill(k + i, block.row(i));
      v.Multiply(block.data(), stride, rows, RowsOf(product, k, rows).data());
    }
    return product;
  }

  static std::vector<double*> RowsOf(Matrix<double>& matrix, int64_t first, int64_t count) {
    std::vector<double*> rows;
    for (int64_t i = 0; i < count; ++i) rows.push_back(matrix.row(first + i));
    return rows;
  }

  const Matrix<double>& v_;
};

template <typename T>
absl::Status FoldStages(const Head& head, ServingStages<T>& stages) {
  const int64_t bytes = stages.feature_count() * head.scores() * int64_t{sizeof(double)};
  if (bytes > kMaxFoldedBytes) {
    return MakeError(
        absl::StatusCode::kResourceExhausted, reason::kProjectionTooLarge, "",
        absl::StrCat("the version's features of ", stages.feature_count(), " landmarks and the ",
                     head.scores(), " scores of its head take ", bytes,
                     " bytes when they are folded; at most ", kMaxFoldedBytes, " are allowed"),
        {{"limit", absl::StrCat(kMaxFoldedBytes)}, {"actual", absl::StrCat(bytes)}});
  }
  const Matrix<double> product = std::visit(ProductWithV<T>(head.weights), stages.projection);
  DenseProjection<T> folded{Converted<T, double>(product.view())};
  if (!AllFinite(folded.matrix.data(), folded.matrix.size())) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, reason::kValueNotRepresentable, "",
        absl::StrCat("the product of the projection with the head's weights overflows ",
                     FloatTypeName(sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64)));
  }
  stages.projection = std::move(folded);
  return absl::OkStatus();
}

// Rows first … first + count − 1 of a part, whose features are computed together with those of
// other pieces.
struct Piece {
  ScorePart* part = nullptr;
  int64_t first = 0;
  int64_t count = 0;
};

template <typename Number>
Number* Room(AlignedArray<Number>& array, int64_t count) {
  if (array.size() < count) array = AlignedArray<Number>(count);
  return array.data();
}

// What a thread that runs programs keeps between calls.
template <typename T>
struct ProgramMemory {
  std::vector<TransformPart> parts;
  std::vector<Piece> pieces;
  AlignedArray<T> features;
  AlignedArray<double> wide;
  std::vector<double*> scores;

  void Clear() {
    parts.clear();
    pieces.clear();
    scores.clear();
  }
};

void CheckScores(int64_t row, const double* scores, int64_t count, absl::Status& status) {
  if (!status.ok() || AllFinite(scores, count)) return;
  status = MakeError(absl::StatusCode::kOutOfRange, reason::kValueNotRepresentable,
                     absl::StrCat("rows[", row, "]"), "scores of this row overflow float64",
                     {{"row", absl::StrCat(row)}});
}

}  // namespace

absl::StatusOr<Plan> FoldPlan(Plan plan, const Head& head) {
  PHIMAP_RETURN_IF_ERROR(head.Validate(plan.output_columns()));
  PHIMAP_RETURN_IF_ERROR(
      std::visit([&](auto& stages) { return FoldStages(head, stages); }, plan.stages));
  return plan;
}

HeadProgram::HeadProgram(std::shared_ptr<const Engine> engine, std::vector<double> intercepts,
                         PanelMatrix<double> weights)
    : engine_(std::move(engine)),
      intercepts_(std::move(intercepts)),
      weights_(std::move(weights)) {}

absl::StatusOr<HeadProgram> HeadProgram::Folded(Plan plan, const Head& head) {
  PHIMAP_ASSIGN_OR_RETURN(const Plan folded, FoldPlan(std::move(plan), head));
  PHIMAP_ASSIGN_OR_RETURN(std::shared_ptr<const Engine> engine, Engine::Load(folded));
  return HeadProgram(std::move(engine), head.intercepts, PanelMatrix<double>());
}

absl::StatusOr<HeadProgram> HeadProgram::Unfolded(std::shared_ptr<const Engine> features,
                                                  const Head& head) {
  PHIMAP_RETURN_IF_ERROR(head.Validate(features->output_columns()));
  return HeadProgram(std::move(features), head.intercepts,
                     PanelMatrix<double>::Pack(head.weights.view()));
}

int64_t HeadProgram::memory_bytes() const {
  return (folded() ? engine_->memory_bytes() : weights_.memory_bytes()) +
         scores() * int64_t{sizeof(double)};
}

int64_t HeadProgram::multiplications_per_row() const {
  return engine_->multiplications_per_row() + weights_.multiplications();
}

double HeadProgram::Multiplications(const ExamplesView& rows) const {
  return engine_->Multiplications(rows) +
         static_cast<double>(rows.rows()) * static_cast<double>(weights_.multiplications());
}

void HeadProgram::AddIntercepts(double* row) const {
  for (size_t j = 0; j < intercepts_.size(); ++j) row[j] += intercepts_[j];
}

template <typename T>
void HeadProgram::ScoresWhenFolded(absl::Span<ScorePart> parts, EngineScratch& scratch) const {
  constexpr bool kInPlace = std::is_same_v<T, double>;
  auto& memory = scratch.Of<ProgramMemory<T>>();
  int64_t rows = 0;
  for (const ScorePart& part : parts) rows += part.rows.rows();
  T* products = kInPlace ? nullptr : Room(memory.features, rows * scores());
  memory.parts.clear();
  for (ScorePart& part : parts) {
    if constexpr (kInPlace) products = part.scores;
    memory.parts.push_back({.rows = part.rows, .features = products});
    products += part.rows.rows() * scores();
  }
  engine_->Transform(absl::MakeSpan(memory.parts), scratch);
  for (size_t p = 0; p < parts.size(); ++p) {
    ScorePart& part = parts[p];
    part.status = std::move(memory.parts[p].status);
    const int64_t count = part.rows.rows();
    if constexpr (!kInPlace) {
      std::copy_n(static_cast<const T*>(memory.parts[p].features), count * scores(), part.scores);
    }
    for (int64_t i = 0; i < count; ++i) {
      double* const row = part.scores + i * scores();
      AddIntercepts(row);
      if constexpr (kInPlace) CheckScores(i, row, scores(), part.status);
    }
  }
}

template <typename T>
void HeadProgram::MultiplyFeatures(const T* features, int64_t rows, double* const* scores,
                                   EngineScratch& scratch) const {
  const int64_t columns = weights_.depth();
  if constexpr (std::is_same_v<T, double>) {
    weights_.Multiply(features, columns, rows, scores);
  } else {
    const int64_t stride = SpreadStride<double>(columns);
    double* const wide = Room(scratch.Of<ProgramMemory<T>>().wide, rows * stride);
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(features + i * columns, columns, wide + i * stride);
    }
    weights_.Multiply(wide, stride, rows, scores);
  }
  for (int64_t i = 0; i < rows; ++i) AddIntercepts(scores[i]);
}

// Computes the features of few rows at a time, because those of a batch can take megabytes. Rows of
// different parts share a block.
template <typename T>
void HeadProgram::ScoresByFeatures(absl::Span<ScorePart> parts, EngineScratch& scratch) const {
  auto& memory = scratch.Of<ProgramMemory<T>>();
  const int64_t columns = weights_.depth();
  T* const features = Room(memory.features, kBlockRows * columns);
  memory.Clear();
  const auto run = [this, features, &scratch] {
    auto& block = scratch.Of<ProgramMemory<T>>();
    engine_->Transform(absl::MakeSpan(block.parts), scratch);
    MultiplyFeatures(features, static_cast<int64_t>(block.scores.size()), block.scores.data(),
                     scratch);
    for (size_t p = 0; p < block.pieces.size(); ++p) {
      const auto& [part, first, count] = block.pieces[p];
      if (part->status.ok()) part->status = WithRowOffset(block.parts[p].status, first);
      for (int64_t i = first; i < first + count; ++i) {
        CheckScores(i, part->scores + i * scores(), scores(), part->status);
      }
    }
    block.Clear();
  };
  for (ScorePart& part : parts) {
    part.status = absl::OkStatus();
    for (int64_t first = 0; first < part.rows.rows();) {
      const auto filled = static_cast<int64_t>(memory.scores.size());
      const int64_t count = std::min(part.rows.rows() - first, kBlockRows - filled);
      memory.parts.push_back(
          {.rows = part.rows.Slice(first, count), .features = features + filled * columns});
      memory.pieces.push_back({&part, first, count});
      for (int64_t i = first; i < first + count; ++i) {
        memory.scores.push_back(part.scores + i * scores());
      }
      first += count;
      if (filled + count == kBlockRows) run();
    }
  }
  if (!memory.parts.empty()) run();
}

void HeadProgram::Scores(absl::Span<ScorePart> parts, EngineScratch& scratch) const {
  const bool narrow = engine_->serving_type() == FloatType::kFloat32;
  if (folded()) {
    narrow ? ScoresWhenFolded<float>(parts, scratch) : ScoresWhenFolded<double>(parts, scratch);
  } else {
    narrow ? ScoresByFeatures<float>(parts, scratch) : ScoresByFeatures<double>(parts, scratch);
  }
}

void HeadProgram::ScoresOfFeatures(const void* features, int64_t rows, double* scores,
                                   EngineScratch& scratch) const {
  PHIMAP_CHECK(!folded());
  const auto multiply = [&](const auto* from) {
    using T = std::decay_t<decltype(*from)>;
    std::vector<double*>& to = scratch.Of<ProgramMemory<T>>().scores;
    for (int64_t first = 0; first < rows; first += kBlockRows) {
      to.clear();
      for (int64_t i = first; i < std::min(rows, first + kBlockRows); ++i) {
        to.push_back(scores + i * this->scores());
      }
      MultiplyFeatures(from + first * weights_.depth(), static_cast<int64_t>(to.size()), to.data(),
                       scratch);
    }
  };
  if (engine_->serving_type() == FloatType::kFloat32) {
    multiply(static_cast<const float*>(features));
  } else {
    multiply(static_cast<const double*>(features));
  }
}

void HeadProgram::ScoresOfComputed(const void* computed, int64_t rows, double* scores,
                                   EngineScratch& scratch) const {
  if (!folded()) return ScoresOfFeatures(computed, rows, scores, scratch);
  const int64_t columns = this->scores();
  if (engine_->serving_type() == FloatType::kFloat32) {
    std::copy_n(static_cast<const float*>(computed), rows * columns, scores);
  } else {
    std::copy_n(static_cast<const double*>(computed), rows * columns, scores);
  }
  for (int64_t i = 0; i < rows; ++i) AddIntercepts(scores + i * columns);
}

}  // namespace phimap
