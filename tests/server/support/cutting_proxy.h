// Stands between a client and a TCP server, and cuts all connections at a chosen transfer.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_CUTTING_PROXY_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_CUTTING_PROXY_H_

#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace phimap::testing {

// Counts what is passed on, in both directions, from 0: one send of one side is one transfer, as
// long as the two take turns, which a database and its client do. Thread-safe.
class CuttingProxy {
 public:
  // To 127.0.0.1:`server_port`.
  explicit CuttingProxy(int server_port);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  int port() const { return port_; }

  // From now on counts from 0. Transfer `index` is not passed on; all connections are cut instead,
  // and with `for_good` none is made afterwards. -1: never.
  void CutAt(int index, bool for_good);
  // Whether it came to that.
  bool reached();

 private:
  void Accept();
  void Serve(int client);
  // Passes on what comes from `from`; false at its end, or when it is to be cut.
  bool PassOn(int from, int to);
  // True if this one is to be cut.
  bool Count();
  void CutAll();

  const int server_port_;
  int listener_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  int transfers_ = 0;  // under mutex_, as what follows
  int cut_at_ = -1;
  bool for_good_ = false;
  bool closed_ = false;  // no new connections
  std::set<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_CUTTING_PROXY_H_
