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
                .Help("Rows mapped by a version since it became live. At most 100 versions are "
                      "named, the others are together the mapping _other.")
                .Register(registry)),
      other_rows_(rows_.Add({{"mapping", "_other"}, {"version", "_other"}})) {}

std::unique_ptr<const VersionSeries::Lease> VersionSeries::Open(const std::string& mapping,
                                                                int64_t version) {
  Lease::Key key(mapping, version);
  MutexLock lock(&mutex_);
  auto found = named_.find(key);
  if (found == named_.end()) {
    if (named_.size() >= kMaxNamed) {
      return absl::WrapUnique(new Lease(nullptr, std::move(key), &other_rows_));
    }
    prometheus::Counter& rows =
        rows_.Add({{"mapping", mapping}, {"version", absl::StrCat(version)}});
    found = named_.emplace(key, Named{&rows, 0}).first;
  }
  ++found->second.leases;
  return absl::WrapUnique(new Lease(this, std::move(key), found->second.rows));
}

void VersionSeries::Close(const Lease::Key& key) {
  MutexLock lock(&mutex_);
  const auto found = named_.find(key);
  if (--found->second.leases > 0) return;
  rows_.Remove(found->second.rows);
  named_.erase(found);
}

}  // namespace phimap
