#include "core/mapping/sample/stream_sample.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/landmark/split.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "core/status/words.h"

namespace phimap {
namespace {

Reservoir::Form FormOf(ExampleKind kind) {
  if (IsString(kind)) return Reservoir::Form::kSlots;
  return kind == ExampleKind::kSparse ? Reservoir::Form::kSparse : Reservoir::Form::kDense;
}

}  // namespace

int64_t StringSampleBytes(int64_t strings) {
  return strings * static_cast<int64_t>(sizeof(std::string)) + kMaxSampledStringBytes;
}

struct StreamSample::State {
  State(const BuildSpec& spec, int64_t columns, ExampleKind kind)
      : kind(kind),
        pool_rows(spec.PoolRows(columns)),
        copies_pool(spec.kernel.NeedsMedian() || spec.mapping.policy->copies_pool),
        given_rows(spec.mapping.given_rows()),
        moments(columns),
        reservoir(ReservoirCapacity(pool_rows), columns, spec.seed, FormOf(kind)) {
    if (spec.is_precomputed()) gram.emplace(spec, columns);
    if (IsString(kind)) strings->resize(static_cast<size_t>(reservoir.capacity() + given_rows));
  }

  // Copies the block's given landmarks, which are the first rows of the stream. Returns the
  // remaining rows of the block.
  ConstMatrixView<double> TakeGiven(ConstMatrixView<double> block) {
    const int64_t missing = given_rows * block.cols() - static_cast<int64_t>(given.size());
    const int64_t count = std::min(block.rows(), missing / block.cols());
    given.insert(given.end(), block.row(0), block.row(0) + count * block.cols());
    return block.Rows(count, block.rows() - count);
  }

  // Stores a string at `place`. Returns RESOURCE_EXHAUSTED if the strings become too long in total.
  absl::Status Keep(const std::string& string, int64_t place) {
    string_bytes += static_cast<int64_t>(string.size());
    string_bytes -= static_cast<int64_t>((*strings)[place].size());
    // Swapping gives up the capacity of a longer string; an assignment would keep it.
    std::string(string).swap((*strings)[place]);
    if (string_bytes <= kMaxSampledStringBytes) return absl::OkStatus();
    return MakeError(
        absl::StatusCode::kResourceExhausted, reason::kSampleTooLarge, "pool_rows",
        absl::StrCat("the sample of at most ", CountOf(reservoir.capacity(), "example"),
                     " takes more than ", kMaxSampledStringBytes,
                     " bytes; ask for fewer pool_rows, or shorten the examples"),
        {{"limit", absl::StrCat(kMaxSampledStringBytes)}});
  }

  ExampleKind kind;
  int64_t pool_rows;
  bool copies_pool;
  int64_t given_rows;
  // The landmarks of policy `given` received so far.
  std::vector<double> given;
  ColumnMoments moments;
  Reservoir reservoir;
  std::optional<GramSample> gram;
  // Buffer for rows, widened to float64.
  Matrix<double> block;
  // Strings by slot of the reservoir, followed by the landmarks of policy `given`.
  std::shared_ptr<std::vector<std::string>> strings = std::make_shared<std::vector<std::string>>();
  int64_t string_bytes = 0;
};

StreamSample::StreamSample(const BuildSpec& spec, int64_t columns, ExampleKind kind)
    : state_(std::make_unique<State>(spec, columns, kind)) {
  PHIMAP_CHECK(columns >= 1 && columns <= kMaxColumns);
}
StreamSample::~StreamSample() = default;
StreamSample::StreamSample(StreamSample&&) noexcept = default;
StreamSample& StreamSample::operator=(StreamSample&&) noexcept = default;

int64_t StreamSample::rows() const {
  if (state_->gram.has_value()) return state_->gram->rows();
  return state_->reservoir.rows_seen() + static_cast<int64_t>(state_->given.size()) / columns();
}
int64_t StreamSample::columns() const { return state_->reservoir.columns(); }
ExampleKind StreamSample::kind() const { return state_->kind; }
std::shared_ptr<const std::vector<std::string>> StreamSample::strings() const {
  return state_->strings;
}
const ColumnMoments& StreamSample::moments() const { return state_->moments; }
const Reservoir& StreamSample::reservoir() const { return state_->reservoir; }
int64_t StreamSample::pool_rows() const {
  return state_->gram.has_value() ? state_->gram->pool_rows() : state_->pool_rows;
}
const GramSample* StreamSample::gram() const {
  return state_->gram.has_value() ? &*state_->gram : nullptr;
}
ConstMatrixView<double> StreamSample::given() const {
  return {state_->given.data(), static_cast<int64_t>(state_->given.size()) / columns(), columns()};
}

int64_t StreamSample::memory_bound_bytes() const {
  if (state_->gram.has_value()) return state_->gram->memory_bytes();
  const int64_t copies = state_->copies_pool ? 3 : 1;
  // The vector of given landmarks doubles its capacity when it grows.
  const int64_t rows = copies * state_->reservoir.capacity() + 3 * state_->given_rows;
  return rows * (columns() + 1) * static_cast<int64_t>(sizeof(double)) +
         (IsString(kind()) ? StringSampleBytes(state_->reservoir.capacity() + state_->given_rows)
                           : 0);
}

absl::Status StreamSample::CheckBlock(const ExamplesView& examples) const {
  const std::string field = absl::StrCat("examples.", examples.kind_name());
  if (examples.kind() != kind()) {
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kExampleKindsMixed, field,
                     absl::StrCat("expected ", ExampleKindName(kind()),
                                  " examples as in the first block, got ", examples.kind_name()),
                     {{"expected", std::string(ExampleKindName(kind()))},
                      {"actual", std::string(examples.kind_name())}});
  }
  if (!IsString(kind()) && examples.columns() != columns()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument, reason::kColumnsMismatch,
        absl::StrCat(field, ".columns"),
        absl::StrCat("expected ", CountOf(columns(), "column"), " as in the first block, got ",
                     examples.columns()),
        {{"expected", absl::StrCat(columns())}, {"actual", absl::StrCat(examples.columns())}});
  }
  return WithFieldPrefix(CheckExamples(examples), absl::StrCat(field, "."));
}

absl::Status StreamSample::AddStrings(const StringsView& strings) {
  for (int64_t i = 0; i < strings.rows; ++i) {
    Reservoir& reservoir = state_->reservoir;
    if (static_cast<int64_t>(state_->given.size()) < state_->given_rows) {
      const auto place = reservoir.capacity() + static_cast<int64_t>(state_->given.size());
      state_->given.push_back(static_cast<double>(place));
      PHIMAP_RETURN_IF_ERROR(state_->Keep(strings[i], place));
    } else if (reservoir.RowsToSkip() > 0) {
      reservoir.Skip(1);
    } else {
      PHIMAP_RETURN_IF_ERROR(state_->Keep(strings[i], reservoir.Keep(nullptr)));
    }
  }
  return absl::OkStatus();
}

absl::Status StreamSample::Add(const ExamplesView& rows) {
  PHIMAP_RETURN_IF_ERROR(CheckBlock(rows));
  if (rows.strings() != nullptr) return AddStrings(*rows.strings());
  if (state_->gram.has_value()) return state_->gram->Add(*rows.dense());
  // About 64 KiB at a time, so that the widened rows stay in the cache.
  const int64_t at_once = std::clamp<int64_t>(8192 / columns(), 1, 256);
  if (state_->block.rows() != at_once) {
    state_->block = Matrix<double>::Uninit(at_once, columns());
  }
  for (int64_t first = 0; first < rows.rows(); first += at_once) {
    const int64_t count = std::min(at_once, rows.rows() - first);
    for (int64_t i = 0; i < count; ++i) rows.CopyRow(first + i, state_->block.row(i));
    const ConstMatrixView<double> block =
        state_->TakeGiven(std::as_const(state_->block).view().Rows(0, count));
    state_->moments.Add(block);
    state_->reservoir.Offer(block);
  }
  return absl::OkStatus();
}

Matrix<float> StreamSample::MadeUpRows(int64_t count, uint64_t seed) const {
  const RandomStream normals(seed, StreamId::kSelfCheck);
  Matrix<float> rows(count, columns());
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < columns(); ++j) {
      const double deviation = moments().deviation(j);
      const double value =
          moments().mean(j) + deviation * normals.Normal(static_cast<uint64_t>(i * columns() + j));
      // A value that overflows float32 becomes 0. That is allowed, because these rows may be any
      // numbers.
      rows(i, j) = std::abs(value) < 1e38 ? static_cast<float>(value) : 0.0f;
    }
  }
  return rows;
}

absl::Status CheckStreamRows(const BuildSpec& spec, int64_t rows) {
  const bool found = spec.mapping.count_rule != nullptr;
  const int64_t landmarks = found ? kMinDecidedStream : spec.mapping.landmarks;
  const bool given = spec.mapping.given_rows() > 0;
  // The landmarks of policy `given` are not used for moments or gamma, so one more row is needed.
  const int64_t least = std::max<int64_t>(1, landmarks + (given ? 1 : 0));
  if (rows == 0) {
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kStreamEmpty, "examples",
                     absl::StrCat("the stream has 0 rows; expected at least ", least,
                                  found                          ? ""
                                  : spec.mapping.has_landmarks() ? " (landmarks)"
                                                                 : ""));
  }
  if (rows < least && found) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition, reason::kRowsTooFew, "landmarks",
        absl::StrCat("the stream has ", CountOf(rows, "row"), ", and landmarks=auto(…) needs ",
                     least, ", so that ", kMinDecidingRows,
                     " rows can decide how many landmarks suffice; stream more rows or give the "
                     "number of landmarks"),
        {{"expected", absl::StrCat(least)}, {"actual", absl::StrCat(rows)}});
  }
  if (rows < least) {
    return MakeError(absl::StatusCode::kFailedPrecondition, reason::kRowsTooFew, "landmarks",
                     absl::StrCat("the stream has ", CountOf(rows, "row"), ", fewer than the ",
                                  landmarks, given ? " landmarks and one row more" : " landmarks",
                                  "; stream more rows or ask for fewer landmarks"),
                     {{"expected", absl::StrCat(least)}, {"actual", absl::StrCat(rows)}});
  }
  return absl::OkStatus();
}

}  // namespace phimap
