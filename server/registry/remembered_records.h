// A cache of the records of existing versions.
#ifndef PHIMAP_SERVER_REGISTRY_REMEMBERED_RECORDS_H_
#define PHIMAP_SERVER_REGISTRY_REMEMBERED_RECORDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/store/records.h"

namespace phimap {

// Records do not change, so those in the cache can be used while the database is unavailable. When
// the cache is full, a record is dropped for each new one. Not thread-safe; the registry guards it.
class RememberedRecords {
 public:
  // Returns null if the record is not in the cache.
  const VersionRecord* Find(const std::string& mapping, int64_t number) const {
    const auto found = records_.find({mapping, number});
    return found == records_.end() ? nullptr : &found->second;
  }
  void Remember(const VersionRecord& record) {
    if (records_.size() >= kMaxRecords) records_.erase(records_.begin());
    records_.emplace(std::make_pair(record.mapping, record.number), record);
  }
  std::vector<VersionRecord> All() const {
    std::vector<VersionRecord> all;
    for (const auto& [name, record] : records_) all.push_back(record);
    return all;
  }
  void Forget(const std::string& mapping, int64_t number) { records_.erase({mapping, number}); }

 private:
  // A record takes half a kilobyte.
  static constexpr size_t kMaxRecords = 10'000;

  std::map<std::pair<std::string, int64_t>, VersionRecord> records_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_REMEMBERED_RECORDS_H_
