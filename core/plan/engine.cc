#include "core/plan/engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernel/kernel_evaluator.h"
#include "core/kernel/string_kernel.h"
#include "core/linalg/panel_product.h"
#include "core/plan/sparse_tile.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {

namespace {

// Rows that go through the stages together: a multiple of the row blocks of every target, and small
// enough that a tile's features stay in the second-level cache.
constexpr int64_t kTileRows = 40;

// The same of sparse rows that are walked, which share what they name of A': the more, the less is
// read.
constexpr int64_t kSparseTileRows = kMaxSparseRows;
constexpr int64_t kMaxTileRows = std::max(kTileRows, kSparseTileRows);

// Most bytes that a sparse W may take once it is dense: its shape costs an artifact next to
// nothing.
constexpr int64_t kMaxUnfoldedBytes = int64_t{1} << 30;

// xᵀAx of each form and f(x) of each factor of a kernel, for some rows.
template <typename T>
struct SelfValues {
  AlignedArray<T> numbers;
  int64_t rows = 0;
  std::vector<const T*> forms;
  std::vector<T*> factors;
};

template <typename T>
struct TypedBuffers {
  AlignedArray<T> x;     // tile rows × input-stage columns
  SparseTile<T> sparse;  // in place of x
  // Of one string: its n-grams, and the values of each kernel of strings with the plan's.
  NgramCounts ngrams;
  std::vector<double> string_values;
  std::vector<double*> string_rows;
  AlignedArray<T> norms;                  // tile rows
  std::array<bool, kMaxTileRows> finite;  // whether all features of a row are
  AlignedArray<T> z;          // tile rows × features, or outputs if there is no projection
  AlignedArray<T> distances;  // tile rows × features: L1 distances beside products
  AlignedArray<T> forms;      // for each form of the kernel, the same
  SelfValues<T> self;
  // Of one row.
  std::vector<const T*> row_forms;
  std::vector<T> row_factors;
  std::vector<T*> z_rows;
  std::vector<T*> y_rows;
  std::vector<T*> distance_rows;
  std::vector<T*> form_rows;  // of all forms, one after the other
};

// What an n-gram of a string takes, in multiplications: to be counted and looked up, and for each
// string of the plan that has it.
constexpr double kLookupCost = 4000;
constexpr double kPostingCost = 100;

// What a multiplication of a walked sparse row takes, over one of a dense row that shares its
// registers with eleven others: 4 to 3 with 1 to 25 % of 10,000 numbers named (bench/sparse_bench).
// So rows that name more than one number in four are made dense.
constexpr double kSparseCost = 4;

// Where a row of a tile comes from and goes to.
struct RowPlace {
  TransformPart* part;
  int64_t row;
};

template <typename T>
void Grow(AlignedArray<T>& array, int64_t count) {
  if (array.size() < count) array = AlignedArray<T>(count);
}

}  // namespace

struct EngineScratch::Buffers {
  TypedBuffers<float> f32;
  TypedBuffers<double> f64;
  std::vector<double> row;
  SparseTile<double> sparse;  // on its way to a projection
  AlignedArray<double> projected;
  std::vector<double*> projected_rows;
  std::vector<RowPlace> tile;

  template <typename T>
  TypedBuffers<T>& Typed() {
    if constexpr (sizeof(T) == 4) {
      return f32;
    } else {
      return f64;
    }
  }
};

EngineScratch::EngineScratch() : buffers_(std::make_unique<Buffers>()) {}
EngineScratch::~EngineScratch() = default;

// One plan, packed for serving type T.
template <typename T>
class TypedEngine final : public Engine {
 public:
  static absl::StatusOr<std::unique_ptr<const Engine>> Load(const Plan& plan,
                                                            const ServingStages<T>& stages) {
    auto engine = std::unique_ptr<TypedEngine>(new TypedEngine(plan));
    engine->centre_ = stages.centre;
    PHIMAP_RETURN_IF_ERROR(engine->LoadFeatures(stages));
    PHIMAP_RETURN_IF_ERROR(engine->LoadProjection(stages));
    return std::unique_ptr<const Engine>(std::move(engine));
  }

  int64_t input_columns() const override { return input_.columns; }
  bool is_external() const override { return is_external_; }
  int64_t output_columns() const override { return output_columns_; }
  FloatType serving_type() const override {
    return sizeof(T) == 4 ? FloatType::kFloat32 : FloatType::kFloat64;
  }
  int64_t memory_bytes() const override {
    int64_t forms = 0;
    for (const PanelMatrix<T>& form : form_rows_) forms += form.memory_bytes();
    return input_projection_.memory_bytes() + rows_.memory_bytes() + projection_.memory_bytes() +
           forms + strings_.memory_bytes() +
           static_cast<int64_t>(expansion_.columns.size() * sizeof(int32_t)) +
           static_cast<int64_t>(expansion_.coefficients.size() * sizeof(T)) +
           static_cast<int64_t>(
               (row_norms_.size() + row_self_.numbers.size() + offsets_.size() + centre_.size()) *
               sizeof(T)) +
           static_cast<int64_t>((input_.shift.size() + input_.scale.size()) * sizeof(double));
  }
  int64_t multiplications_per_row() const override {
    // A step of an L1 distance takes three operations where a product takes one.
    const int64_t passes =
        (uses_products_ ? 1 : 0) + (uses_l1_distances_ ? 3 : 0) + form_rows_.size();
    return input_projection_.multiplications() + passes * rows_.multiplications() +
           static_cast<int64_t>(expansion_.columns.size()) + projection_.multiplications() +
           (is_external_ ? feature_count_ : 0);
  }

  double Multiplications(const ExamplesView& rows) const override {
    const double all = Engine::Multiplications(rows);
    if (rows.strings() != nullptr) {
      const double byte =
          kLookupCost * strings_.lookups_per_byte() + kPostingCost * strings_.postings_per_byte();
      return all + byte * static_cast<double>(rows.bytes());
    }
    if (!Walks(rows)) return all;
    const int64_t passes = (uses_products_ ? 1 : 0) + form_rows_.size();
    const bool projects = input_projection_.columns() > 0;
    const double dense = projects ? static_cast<double>(input_projection_.multiplications())
                                  : static_cast<double>(passes * rows_.multiplications());
    const double named =
        static_cast<double>(rows.sparse()->entries()) / static_cast<double>(input_.columns);
    return all - dense * (static_cast<double>(rows.rows()) - named * kSparseCost);
  }

  bool takes_strings() const override { return strings_.strings() > 0; }
  bool takes_bytes() const override { return takes_bytes_; }

  absl::Status CheckTakes(const ExamplesView& examples) const override {
    if (!takes_strings()) return Engine::CheckTakes(examples);
    const StringsView* strings = examples.strings();
    if (strings != nullptr && (takes_bytes_ || strings->kind == ExampleKind::kText)) {
      return absl::OkStatus();
    }
    return MakeError(absl::StatusCode::kInvalidArgument, "WRONG_KIND",
                     absl::StrCat("examples.", examples.kind_name()),
                     absl::StrCat("the version maps ", takes_bytes_ ? "bytes or text" : "text",
                                  ", got ", examples.kind_name()),
                     {{"actual", std::string(examples.kind_name())}});
  }

  // Walked rows share no tile with others, which would make them dense too.
  void Transform(absl::Span<TransformPart> parts, EngineScratch& scratch) const override {
    std::vector<RowPlace>& tile = scratch.buffers_->tile;
    tile.clear();
    tile.reserve(kMaxTileRows);
    for (TransformPart& part : parts) {
      PHIMAP_CHECK(CheckTakes(part.rows).ok());
      part.status = absl::OkStatus();
      const bool walks = Walks(part.rows);
      if (!tile.empty() && walks != Walks(tile.back().part->rows)) {
        TransformTile(tile, *scratch.buffers_);
        tile.clear();
      }
      const int64_t tile_rows = walks ? kSparseTileRows : kTileRows;
      for (int64_t i = 0; i < part.rows.rows(); ++i) {
        tile.push_back({&part, i});
        if (static_cast<int64_t>(tile.size()) == tile_rows) {
          TransformTile(tile, *scratch.buffers_);
          tile.clear();
        }
      }
    }
    if (!tile.empty()) TransformTile(tile, *scratch.buffers_);
  }

 private:
  explicit TypedEngine(const Plan& plan) {
    input_.columns = plan.input.columns;
    input_.shift = plan.input.shift;
    input_.scale = plan.input.scale;
    stage_columns_ = plan.input.output_columns();
    x_stride_ = SpreadStride<T>(stage_columns_);
    plain_input_ = input_.shift.empty() && input_.scale.empty() && plan.input.projection.empty();
    output_columns_ = plan.output_columns();
    if (!plan.input.projection.empty()) {
      input_projection_ = PanelMatrix<double>::Pack(plan.input.projection.view());
    }
  }

  // Whether rows stay sparse up to what reads the named numbers alone; the bits are the same.
  bool Walks(const ExamplesView& rows) const {
    const SparseRowsView* const sparse = rows.sparse();
    return sparse != nullptr && takes_sparse_ &&
           static_cast<double>(sparse->entries()) * kSparseCost <=
               static_cast<double>(sparse->rows) * static_cast<double>(input_.columns);
  }

  absl::Status LoadFeatures(const ServingStages<T>& stages) {
    PHIMAP_RETURN_IF_ERROR(LoadFeatureStage(stages));
    // What reads every column of x', or has made every one other than 0, gets it.
    const bool projects = input_projection_.columns() > 0;
    const bool all_columns = uses_l1_distances_ || is_external_ || !program_.forms().empty() ||
                             !expansion_.columns.empty();
    takes_sparse_ = input_.shift.empty() && (projects || !all_columns);
    return absl::OkStatus();
  }

  absl::Status LoadFeatureStage(const ServingStages<T>& stages) {
    feature_count_ = stages.feature_count();
    if (const auto* product = std::get_if<ProductFeatures<T>>(&stages.features)) {
      rows_ = PanelMatrix<T>::PackTransposed(product->rows.view());
      program_ = product->program;
      row_count_ = product->rows.rows();
      offsets_ = product->offsets;
      if (!offsets_.empty()) offsets_.resize(rows_.padded_columns());
      uses_products_ = program_.uses_products();
      uses_l1_distances_ = program_.uses_l1_distances();
      runs_on_blocks_ = program_.is_plain() && uses_products_ &&
                        (program_.is_identity() || EvaluatesBlocks(program_));
      LoadForms(product->rows);
      return LoadNorms(product->rows);
    }
    if (const auto* l1 = std::get_if<L1Features<T>>(&stages.features)) {
      rows_ = PanelMatrix<T>::PackTransposed(l1->rows.view());
      program_ = l1->program;
      uses_products_ = false;
      uses_l1_distances_ = true;
      is_l1_stage_ = true;
      row_count_ = l1->rows.rows();
      return absl::OkStatus();
    }
    if (const auto* expansion = std::get_if<ExpansionFeatures<T>>(&stages.features)) {
      expansion_ = *expansion;
      uses_products_ = false;
      row_count_ = feature_count_;
      return absl::OkStatus();
    }
    if (const auto* strings = std::get_if<StringFeatures>(&stages.features)) {
      return LoadStrings(*strings);
    }
    // Its values are the rows.
    is_external_ = true;
    uses_products_ = false;
    row_count_ = feature_count_;
    input_.columns = feature_count_;
    stage_columns_ = feature_count_;
    x_stride_ = SpreadStride<T>(stage_columns_);
    return absl::OkStatus();
  }

  absl::Status LoadStrings(const StringFeatures& features) {
    program_ = features.program;
    row_count_ = static_cast<int64_t>(features.strings.size());
    uses_products_ = false;
    takes_bytes_ =
        std::all_of(program_.strings().begin(), program_.strings().end(),
                    [](const StringKernel& kernel) { return kernel.unit == StringUnit::kByte; });
    std::vector<const std::string*> strings;
    for (const std::string& string : features.strings) strings.push_back(&string);
    strings_ = StringIndex(program_.strings(), strings);
    row_norms_.assign(static_cast<size_t>(row_count_), T{0});
    ReserveSelfValues(row_count_, row_self_);
    if (row_self_.factors.empty()) return absl::OkStatus();
    NgramCounts scratch;
    std::vector<double> squares(program_.strings().size());
    for (int64_t j = 0; j < row_count_; ++j) {
      StringSquares(program_.strings(), features.strings[j], scratch, squares.data());
      SetSelfValue(squares.data(), j, row_self_);
    }
    EvaluateFactors(program_, row_norms_.data(), row_self_.forms.data(), row_count_,
                    row_self_.factors.data());
    row_factor_pointers_.assign(row_self_.factors.begin(), row_self_.factors.end());
    return absl::OkStatus();
  }

  // k_m(x, x) of row i for each kernel m of strings: exact in float64, and rounded once.
  void SetSelfValue(const double* squares, int64_t i, SelfValues<T>& self) const {
    for (size_t m = 0; m < self.forms.size(); ++m) {
      self.numbers.data()[static_cast<int64_t>(m) * self.rows + i] = static_cast<T>(squares[m]);
    }
  }

  // k_m(x, a_j) of row i of a tile, for each kernel m of strings, and k_m(x, x); rounded likewise.
  void EvaluateStrings(const std::string& x, int64_t i, int64_t rows,
                       TypedBuffers<T>& typed) const {
    const auto kernels = static_cast<int64_t>(program_.strings().size());
    typed.string_values.resize(static_cast<size_t>(kernels * (row_count_ + 1)));
    typed.string_rows.clear();
    for (int64_t m = 0; m < kernels; ++m) {
      typed.string_rows.push_back(typed.string_values.data() + m * row_count_);
    }
    double* const squares = typed.string_values.data() + kernels * row_count_;
    strings_.Values(x, typed.ngrams, typed.string_rows.data(), squares);
    for (int64_t m = 0; m < kernels; ++m) {
      T* const row = typed.form_rows[m * rows + i];
      for (int64_t j = 0; j < row_count_; ++j) row[j] = static_cast<T>(typed.string_rows[m][j]);
    }
    SetSelfValue(squares, i, typed.self);
  }

  // Room for the forms and factors of `rows` rows.
  void ReserveSelfValues(int64_t rows, SelfValues<T>& self) const {
    const int64_t forms = static_cast<int64_t>(program_.form_count());
    const int64_t factors = static_cast<int64_t>(program_.factors().size());
    Grow(self.numbers, (forms + factors) * rows);
    self.rows = rows;
    self.forms.clear();
    self.factors.clear();
    for (int64_t m = 0; m < forms; ++m) self.forms.push_back(self.numbers.data() + m * rows);
    for (int64_t m = 0; m < factors; ++m) {
      self.factors.push_back(self.numbers.data() + (forms + m) * rows);
    }
  }

  // A·a_j for each form A and each row, rounded once.
  void LoadForms(const Matrix<T>& rows) {
    std::vector<double> applied(rows.cols());
    for (const BilinearForm& form : program_.forms()) {
      Matrix<T> form_rows = Matrix<T>::Uninit(rows.rows(), rows.cols());
      for (int64_t j = 0; j < rows.rows(); ++j) {
        form.Apply(rows.row(j), applied.data());
        for (int64_t k = 0; k < rows.cols(); ++k) form_rows(j, k) = static_cast<T>(applied[k]);
      }
      form_rows_.push_back(PanelMatrix<T>::PackTransposed(form_rows.view()));
    }
  }

  // What the program reads of the rows alone.
  absl::Status LoadNorms(const Matrix<T>& rows) {
    if (!program_.uses_norms()) return absl::OkStatus();
    row_norms_.resize(rows_.padded_columns());
    ChainSquaredNorms(rows.data(), rows.cols(), row_count_, rows.cols(), row_norms_.data());
    if (!AllFinite(row_norms_.data(), row_count_)) {
      return MakeError(
          absl::StatusCode::kFailedPrecondition, "NOT_REPRESENTABLE", "",
          absl::StrCat("the squared norm of a landmark overflows ", FloatTypeName(serving_type()),
                       "; standardize the inputs or serve in float64"));
    }
    SetSelfValues(rows.data(), rows.cols(), row_count_, row_norms_.data(), row_self_);
    row_factor_pointers_.assign(row_self_.factors.begin(), row_self_.factors.end());
    return absl::OkStatus();
  }

  void SetSelfValues(const T* x, int64_t stride, int64_t rows, const T* norms,
                     SelfValues<T>& self) const {
    const int64_t forms = static_cast<int64_t>(program_.forms().size());
    const int64_t factors = static_cast<int64_t>(program_.factors().size());
    self.forms.clear();
    self.factors.clear();
    if (factors == 0) return;
    Grow(self.numbers, (forms + factors) * rows);
    for (int64_t m = 0; m < forms; ++m) {
      T* const out = self.numbers.data() + m * rows;
      for (int64_t i = 0; i < rows; ++i) {
        out[i] = static_cast<T>(program_.forms()[m].Square(x + i * stride));
      }
      self.forms.push_back(out);
    }
    for (int64_t m = 0; m < factors; ++m) {
      self.factors.push_back(self.numbers.data() + (forms + m) * rows);
    }
    EvaluateFactors(program_, norms, self.forms.data(), rows, self.factors.data());
  }

  absl::Status LoadProjection(const ServingStages<T>& stages) {
    if (const auto* triangle = std::get_if<TriangularProjection<T>>(&stages.projection)) {
      projection_ = PanelMatrix<T>::PackUpperTriangle(triangle->elements.data(), triangle->order);
    } else if (const auto* dense = std::get_if<DenseProjection<T>>(&stages.projection)) {
      projection_ = PanelMatrix<T>::Pack(dense->matrix.view());
    } else if (const auto* sparse = std::get_if<SparseProjection<T>>(&stages.projection)) {
      // A zero does not change a chain, so the dense form has the same bits.
      const int64_t unfolded = sparse->rows * sparse->columns * static_cast<int64_t>(sizeof(T));
      if (unfolded > kMaxUnfoldedBytes) {
        return MakeError(
            absl::StatusCode::kResourceExhausted, "PROJECTION_TOO_LARGE", "",
            absl::StrCat("the version's sparse projection of ", sparse->rows, " by ",
                         sparse->columns, " takes ", unfolded, " bytes in memory; at most ",
                         kMaxUnfoldedBytes, " are allowed"),
            {{"limit", absl::StrCat(kMaxUnfoldedBytes)}, {"actual", absl::StrCat(unfolded)}});
      }
      Matrix<T> matrix(sparse->rows, sparse->columns);
      for (int64_t k = 0; k < sparse->rows; ++k) {
        for (int64_t i = sparse->row_offsets[k]; i < sparse->row_offsets[k + 1]; ++i) {
          matrix(k, sparse->column_indices[i]) = sparse->values[i];
        }
      }
      projection_ = PanelMatrix<T>::Pack(matrix.view());
    }
    has_projection_ = !std::holds_alternative<NoProjection>(stages.projection);
    return absl::OkStatus();
  }

  void TransformTile(absl::Span<const RowPlace> tile, EngineScratch::Buffers& buffers) const {
    TypedBuffers<T>& typed = buffers.Typed<T>();
    const int64_t rows = tile.size();
    typed.sparse.Clear();
    if (takes_strings()) {
      RunStrings(tile, typed);
    } else if (Walks(tile[0].part->rows)) {
      RunSparseInputStage(tile, buffers);
    } else {
      RunInputStage(tile, buffers);
    }
    Grow(typed.norms, kMaxTileRows);
    const int64_t z_stride = SpreadStride<T>(feature_count_);
    Grow(typed.z, kMaxTileRows * z_stride);
    typed.z_rows.resize(kMaxTileRows);
    typed.y_rows.resize(kMaxTileRows);
    for (int64_t i = 0; i < rows; ++i) {
      typed.z_rows[i] = typed.z.data() + i * z_stride;
      typed.y_rows[i] = static_cast<T*>(tile[i].part->features) + tile[i].row * output_columns_;
    }
    RunStages(typed, rows, z_stride);
    for (int64_t i = 0; i < rows; ++i) CheckRow(typed, i, tile[i]);
  }

  // The stages after the input. Whether all features of a row are finite is seen by the product
  // that is the last stage, or afterwards.
  void RunStages(TypedBuffers<T>& typed, int64_t rows, int64_t z_stride) const {
    T* const* z = has_projection_ ? typed.z_rows.data() : typed.y_rows.data();
    const bool on_blocks = runs_on_blocks_ && typed.sparse.empty();
    const bool last_on_blocks = on_blocks && centre_.empty() && !has_projection_;
    typed.finite.fill(true);
    if (on_blocks) {
      RunProductsOnBlocks(typed, rows, z, last_on_blocks ? typed.finite.data() : nullptr);
    } else {
      RunFeatureStage(typed, rows, z);
    }
    SubtractCentre(rows, z);
    if (has_projection_) {
      projection_.MultiplyAndCheck(typed.z.data(), z_stride, rows, typed.y_rows.data(),
                                   typed.finite.data());
    } else if (!last_on_blocks) {
      for (int64_t i = 0; i < rows; ++i) {
        typed.finite[i] = AllFinite(typed.y_rows[i], output_columns_);
      }
    }
  }

  // In place of the input stage and of products.
  void RunStrings(absl::Span<const RowPlace> tile, TypedBuffers<T>& typed) const {
    const int64_t rows = tile.size();
    const int64_t kernels = static_cast<int64_t>(program_.strings().size());
    SetRows(typed.forms, kernels * rows, typed.form_rows);
    ReserveSelfValues(rows, typed.self);
    for (int64_t i = 0; i < rows; ++i) {
      EvaluateStrings((*tile[i].part->rows.strings())[tile[i].row], i, rows, typed);
    }
  }

  // float64 whatever the input type, rounded once.
  void RunInputStage(absl::Span<const RowPlace> tile, EngineScratch::Buffers& buffers) const {
    TypedBuffers<T>& typed = buffers.Typed<T>();
    const int64_t rows = tile.size();
    Grow(typed.x, kMaxTileRows * x_stride_);
    const bool projected = !(input_projection_.columns() == 0);
    if (projected) Grow(buffers.projected, kTileRows * (input_.columns + stage_columns_));
    buffers.row.resize(input_.columns + (is_external_ ? 1 : 0));
    for (int64_t i = 0; i < rows; ++i) {
      const RowsView* source = tile[i].part->rows.dense();
      if (plain_input_ && source != nullptr && source->type == serving_type()) {
        std::memcpy(typed.x.data() + i * x_stride_, source->Row(tile[i].row),
                    sizeof(T) * stage_columns_);
        continue;
      }
      double* row = projected ? buffers.projected.data() + i * input_.columns : buffers.row.data();
      tile[i].part->rows.CopyRow(tile[i].row, row);
      ShiftAndScale(row);
      if (!projected) RoundRow(row, typed.x.data() + i * x_stride_);
    }
    if (!projected) return;
    double* out = buffers.projected.data() + kTileRows * input_.columns;
    SetProjectedRows(out, rows, buffers);
    input_projection_.Multiply(buffers.projected.data(), input_.columns, rows,
                               buffers.projected_rows.data());
    for (int64_t i = 0; i < rows; ++i) {
      RoundRow(out + i * stage_columns_, typed.x.data() + i * x_stride_);
    }
  }

  // As RunInputStage without a shift: a number that is not named stays 0, whatever its scale. What
  // comes out is sparse unless it is projected.
  void RunSparseInputStage(absl::Span<const RowPlace> tile, EngineScratch::Buffers& buffers) const {
    TypedBuffers<T>& typed = buffers.Typed<T>();
    if (input_projection_.columns() == 0) {
      for (const RowPlace& place : tile) {
        typed.sparse.Add(*place.part->rows.sparse(), place.row, input_.scale);
      }
      return;
    }
    const int64_t rows = tile.size();
    buffers.sparse.Clear();
    for (const RowPlace& place : tile) {
      buffers.sparse.Add(*place.part->rows.sparse(), place.row, input_.scale);
    }
    Grow(typed.x, kMaxTileRows * x_stride_);
    Grow(buffers.projected, kMaxTileRows * stage_columns_);
    SetProjectedRows(buffers.projected.data(), rows, buffers);
    input_projection_.MultiplySparse(buffers.sparse.ref(), buffers.projected_rows.data());
    for (int64_t i = 0; i < rows; ++i) {
      RoundRow(buffers.projected_rows[i], typed.x.data() + i * x_stride_);
    }
  }

  void SetProjectedRows(double* out, int64_t rows, EngineScratch::Buffers& buffers) const {
    buffers.projected_rows.resize(kMaxTileRows);
    for (int64_t i = 0; i < rows; ++i) buffers.projected_rows[i] = out + i * stage_columns_;
  }

  void ShiftAndScale(double* row) const {
    if (!input_.shift.empty()) {
      for (int64_t k = 0; k < input_.columns; ++k) row[k] -= input_.shift[k];
    }
    if (!input_.scale.empty()) {
      for (int64_t k = 0; k < input_.columns; ++k) row[k] *= input_.scale[k];
    }
  }

  void RoundRow(const double* from, T* to) const {
    for (int64_t k = 0; k < stage_columns_; ++k) to[k] = static_cast<T>(from[k]);
  }

  // Factor by factor, in the order of the columns.
  void RunExpansion(const TypedBuffers<T>& typed, int64_t rows, T* const* z) const {
    const int32_t* const columns = expansion_.columns.data();
    for (int64_t i = 0; i < rows; ++i) {
      const T* const x = typed.x.data() + i * x_stride_;
      for (int64_t j = 0; j < feature_count_; ++j) {
        T value = expansion_.coefficients[j];
        for (int64_t k = j * expansion_.degree; k < (j + 1) * expansion_.degree; ++k) {
          if (columns[k] >= 0) value *= x[columns[k]];
        }
        z[i][j] = value;
      }
    }
  }

  // The feature stage where each block of products becomes features before it is stored. Sets
  // finite[i] to false, if `finite` is not null, for a row i of which one is not finite.
  void RunProductsOnBlocks(TypedBuffers<T>& typed, int64_t rows, T* const* z, bool* finite) const {
    if (program_.is_identity()) {
      rows_.MultiplyAndCheck(typed.x.data(), x_stride_, rows, z, finite);
      return;
    }
    KernelBlockOperands<T> operands;
    if (!offsets_.empty()) operands.offsets = offsets_.data();
    if (program_.uses_norms()) {
      ChainSquaredNorms(typed.x.data(), x_stride_, rows, stage_columns_, typed.norms.data());
      operands.x_norms = typed.norms.data();
      operands.row_norms = row_norms_.data();
    }
    rows_.MultiplyAndFinish(typed.x.data(), x_stride_, rows, z, [&](const ProductBlock<T>& block) {
      EvaluateKernelBlock(program_, operands, block, row_count_, z, finite);
    });
  }

  void SubtractCentre(int64_t rows, T* const* z) const {
    if (centre_.empty()) return;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < feature_count_; ++j) z[i][j] -= centre_[j];
    }
  }

  void RunFeatureStage(TypedBuffers<T>& typed, int64_t rows, T* const* z) const {
    if (!expansion_.columns.empty()) RunExpansion(typed, rows, z);
    for (int64_t i = 0; is_external_ && i < rows; ++i) {
      std::copy_n(typed.x.data() + i * x_stride_, feature_count_, z[i]);
    }
    const bool sparse = !typed.sparse.empty();
    if (uses_products_ && sparse) rows_.MultiplySparse(typed.sparse.ref(), z);
    if (uses_products_ && !sparse) rows_.Multiply(typed.x.data(), x_stride_, rows, z);
    // Distances alone take the place of products.
    T* const* distances = z;
    if (uses_l1_distances_) {
      if (uses_products_) {
        SetRows(typed.distances, rows, typed.distance_rows);
        distances = typed.distance_rows.data();
      }
      rows_.L1Distances(typed.x.data(), x_stride_, rows, distances);
    }
    if (takes_strings()) {
      std::fill_n(typed.norms.data(), rows, T{0});
      EvaluateFactors(program_, typed.norms.data(), typed.self.forms.data(), rows,
                      typed.self.factors.data());
    } else if (program_.uses_norms() && sparse) {
      ChainSquaredNorms(typed.sparse.ref(), typed.norms.data());
    } else if (program_.uses_norms()) {
      ChainSquaredNorms(typed.x.data(), x_stride_, rows, stage_columns_, typed.norms.data());
    }
    if (program_.is_identity()) {
      // The products, or distances, themselves.
    } else if (program_.factors().empty() && program_.form_count() == 0) {
      for (int64_t i = 0; i < rows; ++i) {
        KernelOperands<T> operands = OperandsOf(typed, i, z[i]);
        if (uses_l1_distances_) operands.l1_distances = distances[i];
        EvaluateKernel(program_, operands, row_count_, z[i]);
      }
    } else {
      EvaluateComposed(typed, rows, uses_l1_distances_ ? distances : nullptr, z);
    }
  }

  KernelOperands<T> OperandsOf(const TypedBuffers<T>& typed, int64_t i, const T* products) const {
    KernelOperands<T> operands;
    // L1 features run on distances in place of products.
    operands.products = uses_products_ || is_l1_stage_ ? products : nullptr;
    if (!offsets_.empty()) operands.offsets = offsets_.data();
    if (!program_.uses_norms()) return operands;
    operands.x_norm = typed.norms.data()[i];
    operands.row_norms = row_norms_.data();
    return operands;
  }

  // A kernel with forms or factors.
  void EvaluateComposed(TypedBuffers<T>& typed, int64_t rows, T* const* distances,
                        T* const* z) const {
    const int64_t forms = static_cast<int64_t>(program_.form_count());
    if (!takes_strings()) {
      SetRows(typed.forms, forms * rows, typed.form_rows);
      for (int64_t m = 0; m < forms; ++m) {
        form_rows_[m].Multiply(typed.x.data(), x_stride_, rows, typed.form_rows.data() + m * rows);
      }
      SetSelfValues(typed.x.data(), x_stride_, rows, typed.norms.data(), typed.self);
    }
    typed.row_forms.resize(forms);
    typed.row_factors.resize(typed.self.factors.size());
    for (int64_t i = 0; i < rows; ++i) {
      KernelOperands<T> operands = OperandsOf(typed, i, z[i]);
      if (distances != nullptr) operands.l1_distances = distances[i];
      for (int64_t m = 0; m < forms; ++m) typed.row_forms[m] = typed.form_rows[m * rows + i];
      for (size_t m = 0; m < typed.row_factors.size(); ++m) {
        typed.row_factors[m] = typed.self.factors[m][i];
      }
      operands.forms = typed.row_forms.data();
      operands.x_factors = typed.row_factors.data();
      operands.row_factors = row_factor_pointers_.data();
      EvaluateKernel(program_, operands, row_count_, z[i]);
    }
  }

  // `rows` rows of one number for each row of A', in an array that grows as needed.
  void SetRows(AlignedArray<T>& array, int64_t rows, std::vector<T*>& pointers) const {
    Grow(array, rows * row_count_);
    pointers.resize(rows);
    for (int64_t i = 0; i < rows; ++i) pointers[i] = array.data() + i * row_count_;
  }

  // A kernel value that overflowed shows in the features, or, where exp(−inf) hides it, in the
  // norm; under L1, which has no norm, in the row itself.
  void CheckRow(const TypedBuffers<T>& typed, int64_t i, const RowPlace& place) const {
    const bool finite =
        (!program_.uses_norms() || std::isfinite(typed.norms.data()[i])) &&
        (!uses_l1_distances_ || AllFinite(typed.x.data() + i * x_stride_, stage_columns_)) &&
        typed.finite[i];
    if (finite || !place.part->status.ok()) return;
    place.part->status = MakeError(
        absl::StatusCode::kOutOfRange, "NOT_REPRESENTABLE", absl::StrCat("rows[", place.row, "]"),
        absl::StrCat(
            "kernel values or features of this row overflow ", FloatTypeName(serving_type()),
            program_.factors().empty() ? "" : ", or K(x, x) that it is divided by is not > 0",
            program_.strings().empty()
                ? "; scale the inputs, build with standardize, or serve in float64"
                : "; scale the kernel down, or serve in float64"),
        {{"row", absl::StrCat(place.row)}});
  }

  InputStage input_;  // without its projection, which is packed
  PanelMatrix<double> input_projection_;
  int64_t stage_columns_ = 0;
  int64_t x_stride_ = 0;
  bool plain_input_ = false;   // the stage changes nothing but the type
  int64_t row_count_ = 0;      // of A'
  int64_t feature_count_ = 0;  // row_count_ times the program's results
  int64_t output_columns_ = 0;
  PanelMatrix<T> rows_;
  // Filled up with zeros to whole panels.
  std::vector<T> row_norms_;
  std::vector<T> offsets_;
  KernelProgram program_;
  ExpansionFeatures<T> expansion_;
  // What is computed for each row of a tile.
  bool uses_products_ = true;
  bool uses_l1_distances_ = false;
  bool is_l1_stage_ = false;
  bool is_external_ = false;
  bool runs_on_blocks_ = false;  // of products, unless rows are walked
  bool takes_sparse_ = false;    // sparse rows need not become dense
  StringIndex strings_;          // of a plan of strings
  bool takes_bytes_ = false;
  std::vector<PanelMatrix<T>> form_rows_;  // A·a_j of each form
  SelfValues<T> row_self_;
  std::vector<const T*> row_factor_pointers_;
  std::vector<T> centre_;
  bool has_projection_ = false;
  PanelMatrix<T> projection_;
};

absl::Status Engine::CheckTakes(const ExamplesView& examples) const {
  return CheckShape(examples, input_columns(), is_external());
}

absl::StatusOr<std::unique_ptr<const Engine>> Engine::Load(const Plan& plan) {
  if (plan.arithmetic != kArithmetic) {
    return MakeError(absl::StatusCode::kUnimplemented, "UNKNOWN_ARITHMETIC", "",
                     absl::StrCat("the version wants arithmetic ", plan.arithmetic,
                                  "; this build knows ", kArithmetic));
  }
  PHIMAP_RETURN_IF_ERROR(plan.Validate());
  return std::visit(
      [&](const auto& stages) {
        using T = typename std::decay_t<decltype(stages)>::Element;
        return TypedEngine<T>::Load(plan, stages);
      },
      plan.stages);
}

const char* EngineTargetName() { return VectorTargetName(); }

}  // namespace phimap
