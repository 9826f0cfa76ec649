#include "core/mapping/build/remote_values.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/certificate/definiteness.h"
#include "core/certificate/kernel_error.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

using Range = RemoteExamples::Range;

// Relative difference of K(x, y) and K(y, x) up to which a kernel counts as symmetric. It is larger
// than rounding in float32, and smaller than the asymmetry of kernels that are not symmetric.
constexpr double kSymmetryTolerance = 1e-5;

// Returns the number of values for pairs of held-out rows; 0 if the kernel error is not measured.
double PairValueCount(const MappingSpec& mapping, int64_t held_out) {
  if (!mapping.kind->approximates_kernel || held_out < kMinHeldOutRows) return 0;
  double values = 0;
  for (int64_t t = 0; t < PairTileCount(held_out); ++t) {
    const PairTile tile = PairTileAt(held_out, t);
    values +=
        static_cast<double>(tile.end - tile.begin) * static_cast<double>(tile.end - tile.first);
  }
  return values;
}

// Requests blocks of values, and reports progress.
class Fetcher {
 public:
  Fetcher(RemoteExamples& examples, double all, Checkpoint checkpoint)
      : examples_(examples), all_(all), checkpoint_(checkpoint) {}

  absl::StatusOr<Matrix<double>> Fetch(const Range& left, const Range& right,
                                       double* diagonal = nullptr) {
    Matrix<double> values = Matrix<double>::Uninit(left.count, right.count);
    if (values.empty()) return values;
    const int64_t at_once = std::max<int64_t>(1, kValuesOfCall / right.count);
    const auto alive = [&] { return checkpoint_(done_ / all_); };
    for (int64_t i = 0; i < left.count; i += at_once) {
      PHIMAP_RETURN_IF_ERROR(alive());
      const int64_t count = std::min(at_once, left.count - i);
      PHIMAP_RETURN_IF_ERROR(examples_.Block({left.part, left.first + i, count}, right,
                                             values.view().Rows(i, count),
                                             diagonal == nullptr ? nullptr : diagonal + i, alive));
      done_ += static_cast<double>(count) * static_cast<double>(right.count);
    }
    return values;
  }

  Range All(RemotePart part) const { return {part, 0, examples_.count(part)}; }

 private:
  RemoteExamples& examples_;
  const double all_;
  Checkpoint checkpoint_;
  double done_ = 0;
};

// Returns "K(x, y) of landmarks 8 and 3 is 1 and K(y, x) is 2" for the first asymmetric pair of
// landmarks, or "" if there is none.
std::string Asymmetry(const Matrix<double>& gram) {
  for (int64_t i = 0; i < gram.rows(); ++i) {
    for (int64_t j = 0; j < i; ++j) {
      const double scale =
          std::max({std::abs(gram(i, i)), std::abs(gram(j, j)), std::abs(gram(i, j))});
      if (std::abs(gram(i, j) - gram(j, i)) <= kSymmetryTolerance * scale) continue;
      return absl::StrCat("K(x, y) of landmarks ", i, " and ", j, " is ", gram(i, j),
                          " and K(y, x) is ", gram(j, i));
    }
  }
  return "";
}

absl::StatusOr<KernelVerdict> VerdictOnValues(const BuildSpec& spec, const RemoteValues& values) {
  const std::string text = spec.KernelText();
  if (const std::string asymmetry = Asymmetry(values.gram); !asymmetry.empty()) {
    return VerdictOnAsymmetry(text, spec.mapping, asymmetry);
  }
  const int64_t n = std::min(values.gram.rows(), kMaxProbeRows);
  PHIMAP_ASSIGN_OR_RETURN(
      const DefinitenessProbe probe,
      ProbeGram(Converted<double, double>(values.gram.view().Block(0, 0, n, n)), values.unit));
  return VerdictOn(text, spec.mapping, probe);
}

// Checks two properties of a positive semidefinite kernel on every held-out row x and every
// landmark y: K(x, x) ≥ 0, and K(x, y)² ≤ K(x, x)·K(y, y). The probe on the landmarks alone cannot
// detect a violation.
absl::Status CheckSelfValues(const BuildSpec& spec, const RemoteValues& values) {
  if (spec.mapping.kind->takes_similarities) return absl::OkStatus();
  for (int64_t i = 0; i < values.held_out.rows(); ++i) {
    const double self = values.known.diagonal[static_cast<size_t>(i)];
    for (int64_t j = 0; j < values.held_out.cols(); ++j) {
      const double both = values.held_out(i, j);
      const double largest = std::max(0.0, self) * std::max(0.0, values.gram(j, j));
      if (self >= 0 && both * both <= largest * (1 + kSymmetryTolerance)) continue;
      return MakeError(
          absl::StatusCode::kFailedPrecondition, reason::kKernelNotPositiveSemidefinite, "kernel",
          absl::StrCat(
              spec.KernelText(), " is not positive semidefinite: for a held-out row x and ",
              "landmark ", j, " as y, K(x, x) is ", self, ", K(x, y) is ", both, " and K(y, y) is ",
              values.gram(j, j), "; expected K(x, x) >= 0 and K(x, y)² <= K(x, x)·K(y, y)"));
    }
  }
  return absl::OkStatus();
}

absl::Status FetchHeldOut(const BuildSpec& spec, Fetcher& fetcher, RemoteValues& values) {
  const Range all = fetcher.All(RemotePart::kHeldOut);
  values.known.diagonal.resize(static_cast<size_t>(all.count));
  PHIMAP_ASSIGN_OR_RETURN(values.held_out, fetcher.Fetch(all, fetcher.All(RemotePart::kLandmarks),
                                                         values.known.diagonal.data()));
  PHIMAP_RETURN_IF_ERROR(CheckSelfValues(spec, values));
  if (PairValueCount(spec.mapping, all.count) == 0) return absl::OkStatus();
  for (int64_t t = 0; t < PairTileCount(all.count); ++t) {
    const PairTile tile = PairTileAt(all.count, t);
    PHIMAP_ASSIGN_OR_RETURN(
        Matrix<double> pairs,
        fetcher.Fetch({RemotePart::kHeldOut, tile.begin, tile.end - tile.begin},
                      {RemotePart::kHeldOut, tile.first, tile.end - tile.first}));
    values.known.pairs.push_back(std::move(pairs));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t GramExamples::count(RemotePart part) const {
  return static_cast<int64_t>(sample_.rows_of(part).size());
}

absl::Status GramExamples::Block(const Range& left, const Range& right, MatrixView<double> out,
                                 double* diagonal, KernelSource::Alive) {
  const std::vector<int64_t>& rows = sample_.rows_of(left.part);
  const std::vector<int64_t>& columns = sample_.rows_of(right.part);
  for (int64_t i = 0; i < left.count; ++i) {
    const int64_t row = rows[left.first + i];
    for (int64_t j = 0; j < right.count; ++j) {
      out(i, j) = sample_.value(row, columns[right.first + j]);
    }
    if (diagonal != nullptr) diagonal[i] = sample_.value(row, row);
  }
  return absl::OkStatus();
}

absl::Status ServiceExamples::Block(const Range& left, const Range& right, MatrixView<double> out,
                                    double* diagonal, KernelSource::Alive alive) {
  return source_.Block(examples(left.part).view().Slice(left.first, left.count),
                       examples(right.part).view().Slice(right.first, right.count), out, diagonal,
                       alive);
}

absl::StatusOr<RemoteValues> FetchRemoteValues(const BuildSpec& spec, RemoteExamples& examples,
                                               Checkpoint checkpoint) {
  const int64_t held_out = examples.count(RemotePart::kHeldOut);
  Fetcher fetcher(examples,
                  CountRemoteValues(spec.mapping, examples.count(RemotePart::kLandmarks), held_out),
                  checkpoint);
  const Range landmarks = fetcher.All(RemotePart::kLandmarks);
  RemoteValues values;
  PHIMAP_ASSIGN_OR_RETURN(values.gram, fetcher.Fetch(landmarks, landmarks));
  values.unit = examples.unit();
  // The verdict is reached before more values are requested, because requests may take long.
  PHIMAP_ASSIGN_OR_RETURN(values.verdict, VerdictOnValues(spec, values));
  PHIMAP_RETURN_IF_ERROR(FetchHeldOut(spec, fetcher, values));
  if (const int64_t m = RemoteSpectrumRows(spec.mapping, held_out); m > 0) {
    const Range rows{RemotePart::kHeldOut, 0, m};
    PHIMAP_ASSIGN_OR_RETURN(values.spectrum_gram, fetcher.Fetch(rows, rows));
  }
  values.unit = examples.unit();
  return values;
}

int64_t RemoteSpectrumRows(const MappingSpec& mapping, int64_t held_out) {
  if (!mapping.kind->has_factor || held_out < kMinHeldOutRows) return 0;
  return std::min(held_out, kMaxRemoteSpectrumRows);
}

double CountRemoteValues(const MappingSpec& mapping, int64_t landmarks, int64_t held_out) {
  const auto d = static_cast<double>(landmarks);
  const auto m = static_cast<double>(RemoteSpectrumRows(mapping, held_out));
  return d * d + static_cast<double>(held_out) * d + m * m + PairValueCount(mapping, held_out);
}

Matrix<double> ColumnsOf(const Matrix<double>& values, const std::vector<int64_t>& which) {
  const auto count = static_cast<int64_t>(which.size());
  Matrix<double> picked = Matrix<double>::Uninit(values.rows(), count);
  for (int64_t i = 0; i < values.rows(); ++i) {
    for (int64_t j = 0; j < count; ++j) picked(i, j) = values(i, which[j]);
  }
  return picked;
}

}  // namespace phimap
