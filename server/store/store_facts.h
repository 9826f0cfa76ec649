// What operators see of a store beside its calls.
#ifndef PHIMAP_SERVER_STORE_STORE_FACTS_H_
#define PHIMAP_SERVER_STORE_STORE_FACTS_H_

#include <cstdint>
#include <string>

namespace phimap {

struct StoreFacts {
  // The random id that the store got when it was created. Restored copies have the same. Empty
  // while the database has not answered yet.
  std::string store_id;
  // Standbys of the database that are connected.
  int64_t standbys = 0;
  // Whether the database names a synchronous standby, but none is connected: commits then wait.
  bool synchronous_standby_missing = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_STORE_STORE_FACTS_H_
