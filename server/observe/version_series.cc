#include "server/observe/version_series.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace phimap {

VersionSeries::Lease::~Lease() {
  if (owner_ != nullptr) owner_->Close(key_);
}

VersionSeries::VersionSeries(prometheus::Registry& registry)
    : rows_(prometheus::BuildCounter()
                .Name("phimap_version_rows_total")
                .Help("Rows mapped by a version since it was loaded. At most 100 versions have "
                      "their own labels; all others share the label value _other.")
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
      other_(Add({{"mapping", "_other"}, {"version", "_other"}})) {}

VersionSeries::Series VersionSeries::Add(const prometheus::Labels& labels) {
  return {.rows = &rows_.Add(labels),
          .drift = {.rows = &drift_rows_.Add(labels),
                    .norm_sum = &norm_sum_.Add(labels),
                    .residual_sum = &residual_sum_.Add(labels)}};
}

std::unique_ptr<const VersionSeries::Lease> VersionSeries::Open(const std::string& mapping,
                                                                int64_t version) {
  Lease::Key key(mapping, version);
  MutexLock lock(&mutex_);
  auto found = named_.find(key);
  if (found == named_.end()) {
    if (named_.size() >= kMaxNamed) {
      return absl::WrapUnique(new Lease(nullptr, std::move(key), other_));
    }
    const Series series = Add({{"mapping", mapping}, {"version", absl::StrCat(version)}});
    found = named_.emplace(key, Named{series, 0}).first;
  }
  ++found->second.leases;
  return absl::WrapUnique(new Lease(this, std::move(key), found->second.series));
}

void VersionSeries::Close(const Lease::Key& key) {
  MutexLock lock(&mutex_);
  const auto found = named_.find(key);
  if (--found->second.leases > 0) return;
  rows_.Remove(found->second.series.rows);
  drift_rows_.Remove(found->second.series.drift.rows);
  norm_sum_.Remove(found->second.series.drift.norm_sum);
  residual_sum_.Remove(found->second.series.drift.residual_sum);
  named_.erase(found);
}

}  // namespace phimap
