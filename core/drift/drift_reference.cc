#include "core/drift/drift_reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/plan/byte_codec.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

// Reads `count` numbers. The bytes must be there before memory is allocated.
template <typename T>
std::vector<T> ReadNumbers(ByteReader& reader, int64_t count) {
  const char* const from = reader.Numbers<T>(count);
  if (from == nullptr || count == 0) return {};
  std::vector<T> numbers(static_cast<size_t>(count));
  std::memcpy(numbers.data(), from, sizeof(T) * numbers.size());
  return numbers;
}

template <typename T>
void CheckFiniteNumbers(absl::string_view what, const std::vector<T>& numbers, ByteReader& reader) {
  const auto bad =
      std::find_if(numbers.begin(), numbers.end(), [](T number) { return !std::isfinite(number); });
  if (bad != numbers.end()) {
    reader.Fail(absl::StrCat(what, ": number ", bad - numbers.begin(), " is not finite"));
  }
}

absl::Status UnknownScore(uint32_t kind) {
  return MakeError(
      absl::StatusCode::kUnimplemented, reason::kFormatUnknown, "",
      absl::StrCat("the drift reference has a score of kind ", kind,
                   ", but this build knows only kinds up to 4; a newer phimap wrote the artifact"));
}

void WriteScore(const ScoreFunction& function, const ScoreHistogram& histogram,
                ByteWriter& writer) {
  writer.Number<uint8_t>(static_cast<uint8_t>(function.kind));
  writer.Number<int32_t>(function.index);
  writer.Number<uint32_t>(static_cast<uint32_t>(histogram.edges.size()));
  writer.Numbers(histogram.edges.data(), static_cast<int64_t>(histogram.edges.size()));
  writer.Numbers(histogram.counts.data(), static_cast<int64_t>(histogram.counts.size()));
}

// Returns the number of indices that a kind of score has.
int64_t IndexCount(ScoreKind kind, const DriftReference& reference) {
  if (kind == ScoreKind::kDirection) return reference.scores.directions.rows();
  return kind == ScoreKind::kColumn ? static_cast<int64_t>(reference.low.size()) : 1;
}

absl::Status ReadScore(ByteReader& reader, DriftReference& reference) {
  const uint8_t kind = reader.Number<uint8_t>();
  const int32_t index = reader.Number<int32_t>();
  PHIMAP_RETURN_IF_ERROR(reader.status());
  if (kind < 1 || kind > 4) return UnknownScore(kind);
  const ScoreFunction function{static_cast<ScoreKind>(kind), index};
  reader.CheckRange("index of a score", index, 0, IndexCount(function.kind, reference) - 1);
  const uint32_t edges = reader.Number<uint32_t>();
  reader.CheckRange("edges of a score", edges, 0, kMaxBins - 1);
  PHIMAP_RETURN_IF_ERROR(reader.status());
  ScoreHistogram histogram;
  histogram.edges = ReadNumbers<double>(reader, edges);
  histogram.counts = ReadNumbers<uint16_t>(reader, int64_t{edges} + 1);
  CheckFiniteNumbers("edges", histogram.edges, reader);
  if (std::adjacent_find(histogram.edges.begin(), histogram.edges.end(), std::greater_equal<>()) !=
      histogram.edges.end()) {
    reader.Fail("the edges of a score do not rise");
  }
  const int64_t sum = std::accumulate(histogram.counts.begin(), histogram.counts.end(), int64_t{0});
  reader.CheckRange("rows in the bins of a score", sum, reference.rows, reference.rows);
  reference.scores.functions.push_back(function);
  reference.histograms.push_back(std::move(histogram));
  return reader.status();
}

// Reads the fields before the scores.
void ReadFacts(ByteReader& reader, DriftReference& reference) {
  reference.rows = reader.Number<int64_t>();
  reference.stream_rows = reader.Number<int64_t>();
  const int64_t features = reader.Number<int64_t>();
  const int64_t columns = reader.Number<int64_t>();
  const uint32_t directions = reader.Number<uint32_t>();
  reader.CheckRange("held-out rows", reference.rows, kMinReferenceRows, kMaxReferenceRows);
  reader.CheckRange("rows of the stream", reference.stream_rows, reference.rows, int64_t{1} << 53);
  reader.CheckRange("features", features, 1, kMaxPlanDimension);
  reader.CheckRange("columns", columns, 0, kMaxPlanDimension);
  reader.CheckRange("directions", directions, 0, kMaxScores);
  if (!reader.ok()) return;
  const std::vector<float> flat = ReadNumbers<float>(reader, features * directions);
  CheckFiniteNumbers("directions", flat, reader);
  reference.mean = ReadNumbers<double>(reader, features);
  CheckFiniteNumbers("mean", reference.mean, reader);
  reference.scatter = reader.Number<double>();
  if (!(reference.scatter >= 0) || !std::isfinite(reference.scatter)) {
    reader.Fail("the scatter is not a finite number of at least 0");
  }
  reference.low = ReadNumbers<float>(reader, columns);
  reference.high = ReadNumbers<float>(reader, columns);
  CheckFiniteNumbers("low ends of ranges", reference.low, reader);
  CheckFiniteNumbers("high ends of ranges", reference.high, reader);
  if (!reader.ok() || flat.empty()) return;
  reference.scores.directions = Matrix<float>::Uninit(directions, features);
  std::copy(flat.begin(), flat.end(), reference.scores.directions.data());
}

absl::Status Misfit(absl::string_view what, int64_t actual, int64_t expected) {
  return MakeError(absl::StatusCode::kDataLoss, reason::kArtifactMalformed, "",
                   absl::StrCat("the drift reference is of ", actual, " ", what,
                                ", but the plan has ", expected),
                   {{"expected", absl::StrCat(expected)}, {"actual", absl::StrCat(actual)}});
}

}  // namespace

int64_t ScoreHistogram::BinOf(double value) const {
  // A search without branches: the values of a build come in no order, so every branch of
  // std::upper_bound would be mispredicted half of the time.
  const double* from = edges.data();
  for (size_t left = edges.size(); left > 0;) {
    const size_t half = (left + 1) / 2;
    from += from[half - 1] <= value ? half : 0;
    left -= half;
  }
  return from - edges.data();
}

int64_t DriftReference::memory_bytes() const {
  int64_t bytes = scores.directions.size() * int64_t{sizeof(float)} +
                  output_columns() * int64_t{sizeof(double)} +
                  static_cast<int64_t>((low.size() + high.size()) * sizeof(float));
  for (const ScoreHistogram& histogram : histograms) {
    bytes += static_cast<int64_t>(sizeof(histogram) + sizeof(ScoreFunction) +
                                  histogram.edges.size() * sizeof(double) +
                                  histogram.counts.size() * sizeof(uint16_t));
  }
  return bytes;
}

std::string EncodeDriftReference(const DriftReference& reference) {
  std::string out;
  ByteWriter writer(out);
  const Matrix<float>& directions = reference.scores.directions;
  writer.Number<int64_t>(reference.rows);
  writer.Number<int64_t>(reference.stream_rows);
  writer.Number<int64_t>(reference.output_columns());
  writer.Number<int64_t>(static_cast<int64_t>(reference.low.size()));
  writer.Number<uint32_t>(static_cast<uint32_t>(directions.rows()));
  writer.Numbers(directions.data(), directions.size());
  writer.Numbers(reference.mean.data(), reference.output_columns());
  writer.Number<double>(reference.scatter);
  writer.Numbers(reference.low.data(), static_cast<int64_t>(reference.low.size()));
  writer.Numbers(reference.high.data(), static_cast<int64_t>(reference.high.size()));
  writer.Number<uint32_t>(static_cast<uint32_t>(reference.scores.count()));
  for (size_t s = 0; s < reference.scores.functions.size(); ++s) {
    WriteScore(reference.scores.functions[s], reference.histograms[s], writer);
  }
  return out;
}

absl::StatusOr<DriftReference> DecodeDriftReference(absl::string_view bytes) {
  ByteReader reader(bytes, 0);
  DriftReference reference;
  ReadFacts(reader, reference);
  const uint32_t scores = reader.Number<uint32_t>();
  reader.CheckRange("scores", scores, 1, kMaxScores);
  PHIMAP_RETURN_IF_ERROR(reader.status());
  for (uint32_t s = 0; s < scores; ++s) {
    PHIMAP_RETURN_IF_ERROR(ReadScore(reader, reference));
  }
  PHIMAP_RETURN_IF_ERROR(reader.Finish());
  for (size_t j = 0; j < reference.low.size(); ++j) {
    if (reference.low[j] > reference.high[j]) {
      return DamagedArtifact(0, absl::StrCat("the range of column ", j, " is empty"));
    }
  }
  return reference;
}

absl::Status CheckReferenceFits(const DriftReference& reference, const Plan& plan,
                                bool has_residual) {
  if (reference.output_columns() != plan.output_columns()) {
    return Misfit("features", reference.output_columns(), plan.output_columns());
  }
  const bool remote = std::visit(
      [](const auto& stages) { return std::holds_alternative<RemoteFeatures>(stages.features); },
      plan.stages);
  const auto columns = static_cast<int64_t>(reference.low.size());
  const int64_t expected = remote ? 0 : plan.input_columns();
  if (columns != expected) return Misfit("columns", columns, expected);
  for (const ScoreFunction& function : reference.scores.functions) {
    if (function.kind == ScoreKind::kResidualShare && !has_residual) {
      return MakeError(absl::StatusCode::kDataLoss, reason::kArtifactMalformed, "",
                       "the drift reference has a score of residuals, but the plan has none");
    }
  }
  return absl::OkStatus();
}

}  // namespace phimap
