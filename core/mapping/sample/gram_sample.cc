#include "core/mapping/sample/gram_sample.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/landmark/split.h"
#include "core/random/stream_ids.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/words.h"

namespace phimap {
namespace {

std::string SquareText(int64_t rows, int64_t examples) {
  return absl::StrCat(
      "with kernel precomputed() the stream is the Gram matrix of its examples: "
      "expected as many rows as columns (",
      examples, "), got ", CountOf(rows, "row"));
}

std::map<std::string, std::string> Both(int64_t rows, int64_t examples) {
  return {{"expected", absl::StrCat(examples)}, {"actual", absl::StrCat(rows)}};
}

}  // namespace

GramSample::GramSample(const BuildSpec& spec, int64_t examples)
    : examples_(examples), row_(static_cast<size_t>(examples)) {
  const int64_t wanted = spec.mapping.landmarks;
  const int64_t given = std::min(spec.mapping.given_rows(), examples);
  // The landmarks of policy `given` are the first examples, which are used for nothing else.
  std::vector<int64_t> order =
      FirstOfPermutation(examples - given, examples - given, {spec.seed, StreamId::kSplit});
  for (int64_t& row : order) row += given;
  const int64_t drawn = given > 0 ? 0 : std::min(wanted, examples);
  const int64_t others = static_cast<int64_t>(order.size());
  // The landmarks do not depend on how many of the rows that are kept apart are measured.
  const int64_t apart = std::min(HeldOutCount(others, others, drawn), kMaxRemoteHeldOutRows);
  pool_rows_ = others - apart;
  held_out_.assign(order.begin(), order.begin() + std::min(apart, spec.MostHeldOutRows()));
  landmarks_.resize(static_cast<size_t>(given));
  std::iota(landmarks_.begin(), landmarks_.end(), 0);
  landmarks_.insert(landmarks_.end(), order.begin() + apart, order.begin() + apart + drawn);
  for (const std::vector<int64_t>* part : {&landmarks_, &held_out_}) {
    kept_.insert(kept_.end(), part->begin(), part->end());
  }
  std::sort(kept_.begin(), kept_.end());
  kept_.erase(std::unique(kept_.begin(), kept_.end()), kept_.end());
  const auto kept = static_cast<int64_t>(kept_.size());
  values_ = Matrix<double>(kept, kept);
}

absl::Status GramSample::Add(const RowsView& rows) {
  PHIMAP_CHECK(rows.columns == examples_);
  if (rows_ + rows.rows > examples_) {
    const int64_t came = rows_ + rows.rows;
    return MakeError(absl::StatusCode::kInvalidArgument, reason::kMatrixNotSquare,
                     "examples.dense.rows", SquareText(came, examples_), Both(came, examples_));
  }
  if (rows.type == FloatType::kFloat32) unit_ = 0x1p-24;
  for (int64_t i = 0; i < rows.rows; ++i, ++rows_) {
    const auto place = std::lower_bound(kept_.begin(), kept_.end(), rows_);
    if (place == kept_.end() || *place != rows_) continue;
    rows.CopyRow(i, row_.data());
    double* const to = values_.row(place - kept_.begin());
    for (size_t j = 0; j < kept_.size(); ++j) to[j] = row_[kept_[j]];
  }
  return absl::OkStatus();
}

absl::Status GramSample::CheckComplete() const {
  if (rows_ == examples_) return absl::OkStatus();
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kMatrixNotSquare, "examples",
                   SquareText(rows_, examples_), Both(rows_, examples_));
}

const std::vector<int64_t>& GramSample::rows_of(RemotePart part) const {
  switch (part) {
    case RemotePart::kLandmarks:
      return landmarks_;
    case RemotePart::kHeldOut:
      return held_out_;
  }
  PHIMAP_CHECK(false);
}

int64_t GramSample::PlaceOf(int64_t row) const {
  return std::lower_bound(kept_.begin(), kept_.end(), row) - kept_.begin();
}

}  // namespace phimap
