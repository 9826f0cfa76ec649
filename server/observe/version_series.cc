#include "server/observe/version_series.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/plan/rows.h"

namespace phimap {
namespace {

const std::vector<std::string> kNoClasses;

}  // namespace

void InputDrift::Add(const ExamplesView& row, const RowsView& features,
                     const Residual* residual) const {
  const void* const numbers = features.Row(0);
  const double norm = features.type == FloatType::kFloat32
                          ? SquaredNorm(static_cast<const float*>(numbers), features.columns)
                          : SquaredNorm(static_cast<const double*>(numbers), features.columns);
  double rho = 0;
  if (residual != nullptr) residual->Compute(row, numbers, &rho, /*allowances=*/nullptr);
  if (!std::isfinite(norm) || !std::isfinite(rho)) return counters_.rows_not_finite->Increment();
  counters_.rows->Increment();
  counters_.norm_sum->Increment(norm);
  counters_.residual_sum->Increment(rho);
}

void PredictionCounts::Count(int64_t rows, absl::Span<const int32_t> labels) const {
  std::array<int64_t, kMaxClasses + 1> counts{};
  const size_t other = counters_.answers.size() - 1;
  for (const int32_t label : labels) ++counts[std::min(static_cast<size_t>(label), other)];
  if (labels.empty()) counts[other] = rows;
  for (size_t i = 0; i <= other; ++i) {
    if (counts[i] > 0) counters_.answers[i]->Increment(static_cast<double>(counts[i]));
  }
}

void PredictionCounts::CountConfidence(ConstMatrixView<double> probabilities) const {
  double sum = 0;
  for (int64_t i = 0; i < probabilities.rows(); ++i) {
    const double* const row = probabilities.row(i);
    sum += *std::max_element(row, row + probabilities.cols());
  }
  counters_.confidence_rows->Increment(static_cast<double>(probabilities.rows()));
  counters_.confidence_sum->Increment(sum);
}

VersionSeries::Lease::~Lease() { owner_.Close(*this); }

void VersionSeries::Lease::Promote() const { owner_.Promote(*this); }

VersionSeries::VersionSeries(prometheus::Registry& registry)
    : rows_(prometheus::BuildCounter()
                .Name("phimap_version_rows_total")
                .Help("Rows mapped by a version since it was loaded. At most 100 versions, and 100 "
                      "more that aliases name, have their own labels; all others share the label "
                      "value _other.")
                .Register(registry)),
      drift_rows_(
          prometheus::BuildCounter()
              .Name("phimap_version_drift_rows_total")
              .Help("Rows sampled to detect input drift: the first row of one request in 64.")
              .Register(registry)),
      norm_sum_(prometheus::BuildCounter()
                    .Name("phimap_version_norm_sum_total")
                    .Help("Sum of |F(x)|^2 over the sampled rows; compare their mean with the "
                          "certificate's mean_squared_norm.")
                    .Register(registry)),
      residual_sum_(
          prometheus::BuildCounter()
              .Name("phimap_version_residual_sum_total")
              .Help(
                  "Sum of F2's residuals over the sampled rows, 0 for other mappings. Its share of "
                  "residuals and |F(x)|^2 together corresponds to the certificate's held-out trace "
                  "residual.")
              .Register(registry)),
      rows_not_finite_(prometheus::BuildCounter()
                           .Name("phimap_version_drift_rows_not_finite_total")
                           .Help("Sampled rows whose |F(x)|^2 or residual is not finite. They are "
                                 "in none of the sums.")
                           .Register(registry)),
      predictions_(prometheus::BuildCounter()
                       .Name("phimap_version_predictions_total")
                       .Help("Rows that a version with a head answered with a class. At most 20 "
                             "classes of a version have their own label; the others, and numbers, "
                             "share _other.")
                       .Register(registry)),
      confidence_rows_(prometheus::BuildCounter()
                           .Name("phimap_version_confidence_rows_total")
                           .Help("Predicted rows whose confidence was measured: those of one "
                                 "request in 64, and of requests for probabilities.")
                           .Register(registry)),
      confidence_sum_(prometheus::BuildCounter()
                          .Name("phimap_version_confidence_sum_total")
                          .Help("Sum of the largest probability of these rows.")
                          .Register(registry)),
      other_(Add({{"mapping", "_other"}, {"version", "_other"}}, &kNoClasses)) {}

VersionSeries::Series VersionSeries::Add(const prometheus::Labels& labels,
                                         const std::vector<std::string>* classes) {
  Series series{.rows = &rows_.Add(labels),
                .drift = {.rows = &drift_rows_.Add(labels),
                          .norm_sum = &norm_sum_.Add(labels),
                          .residual_sum = &residual_sum_.Add(labels),
                          .rows_not_finite = &rows_not_finite_.Add(labels)},
                .predictions = {}};
  if (classes == nullptr) return series;
  const size_t named = std::min(classes->size(), PredictionCounts::kMaxClasses);
  for (size_t i = 0; i <= named; ++i) {
    prometheus::Labels with_class = labels;
    with_class["class"] = i < named ? (*classes)[i] : "_other";
    series.predictions.answers.push_back(&predictions_.Add(with_class));
  }
  series.predictions.confidence_rows = &confidence_rows_.Add(labels);
  series.predictions.confidence_sum = &confidence_sum_.Add(labels);
  return series;
}

const VersionSeries::Labelled* VersionSeries::Take(const Lease& lease, size_t limit) {
  const Lease::Key& key = lease.key_;
  auto found = named_.find(key);
  if (found == named_.end()) {
    if (named_.size() >= limit) return nullptr;
    const Series series = Add({{"mapping", key.first}, {"version", absl::StrCat(key.second)}},
                              lease.head_ == nullptr ? nullptr : &lease.head_->classes);
    found = named_.emplace(key, std::make_unique<Labelled>(series)).first;
  }
  ++found->second->leases;
  return found->second.get();
}

std::unique_ptr<const VersionSeries::Lease> VersionSeries::Open(
    const std::string& mapping, int64_t version, std::shared_ptr<const HeadFacts> head) {
  auto lease = absl::WrapUnique(new Lease(*this, Lease::Key(mapping, version), std::move(head)));
  MutexLock lock(&mutex_);
  const Labelled* const own = Take(*lease, kMaxNamed);
  lease->labelled_.store(own != nullptr ? own : &other_, std::memory_order_release);
  return lease;
}

void VersionSeries::Promote(const Lease& lease) {
  MutexLock lock(&mutex_);
  if (lease.now() != &other_) return;
  if (const Labelled* const own = Take(lease, kMaxNamed + kMaxAliased)) {
    lease.labelled_.store(own, std::memory_order_release);
  }
}

void VersionSeries::Close(const Lease& lease) {
  if (lease.now() == &other_) return;
  MutexLock lock(&mutex_);
  const auto found = named_.find(lease.key_);
  if (--found->second->leases > 0) return;
  const Series& series = found->second->series;
  rows_.Remove(series.rows);
  drift_rows_.Remove(series.drift.rows);
  norm_sum_.Remove(series.drift.norm_sum);
  residual_sum_.Remove(series.drift.residual_sum);
  rows_not_finite_.Remove(series.drift.rows_not_finite);
  for (prometheus::Counter* const answers : series.predictions.answers) {
    predictions_.Remove(answers);
  }
  if (!series.predictions.answers.empty()) {
    confidence_rows_.Remove(series.predictions.confidence_rows);
    confidence_sum_.Remove(series.predictions.confidence_sum);
  }
  named_.erase(found);
}

}  // namespace phimap
