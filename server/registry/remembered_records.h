// Records of versions that were looked up and exist.
#ifndef PHIMAP_SERVER_REGISTRY_REMEMBERED_RECORDS_H_
#define PHIMAP_SERVER_REGISTRY_REMEMBERED_RECORDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "server/store/records.h"

namespace phimap {

// Records do not change, so a database that is away need not be asked for them again. Some are
// forgotten when they are many. Not thread-safe; the registry guards it.
class RememberedRecords {
 public:
  // Null if it is not remembered.
  const VersionRecord* Find(const std::string& mapping, int64_t number) const {
    const auto found = records_.find({mapping, number});
    return found == records_.end() ? nullptr : &found->second;
  }
  void Remember(const VersionRecord& record) {
    if (records_.size() >= kMaxRecords) records_.erase(records_.begin());
    records_.emplace(std::make_pair(record.mapping, record.number), record);
  }
  void Forget(const std::string& mapping, int64_t number) { records_.erase({mapping, number}); }

 private:
  // Half a kilobyte each.
  static constexpr size_t kMaxRecords = 10'000;

  std::map<std::pair<std::string, int64_t>, VersionRecord> records_;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_REGISTRY_REMEMBERED_RECORDS_H_
