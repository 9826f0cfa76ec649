// A proxy between clients and a TCP server that cuts all connections at a chosen transfer.
#ifndef PHIMAP_TESTS_SERVER_SUPPORT_CUTTING_PROXY_H_
#define PHIMAP_TESTS_SERVER_SUPPORT_CUTTING_PROXY_H_

#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace phimap::testing {

// Counts transfers in both directions, beginning with 0. If the two sides take turns, as a database
// and its client do, each transfer is one message of one side. Thread-safe.
class CuttingProxy {
 public:
  // Forwards connections to 127.0.0.1:`server_port`.
  explicit CuttingProxy(int server_port);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  int port() const { return port_; }

  // Counts transfers from 0 again. Instead of forwarding transfer `index`, cuts all connections
  // and, with `for_good`, refuses new ones afterwards. If `index` is -1, cuts nothing.
  void CutAt(int index, bool for_good);
  // Whether transfer `index` was reached.
  bool reached();

 private:
  void Accept();
  void Serve(int client);
  // Forwards one transfer from `from` to `to`. Returns false if `from` has ended, or if this is the
  // transfer at which to cut.
  bool PassOn(int from, int to);
  // Counts a transfer. Returns true if this is the transfer at which to cut.
  bool Count();
  void CutAll();

  const int server_port_;
  int listener_ = -1;
  int port_ = 0;
  std::mutex mutex_;
  int transfers_ = 0;  // mutex_ guards this member and those that follow
  int cut_at_ = -1;
  bool for_good_ = false;
  bool closed_ = false;  // if true, no new connections are accepted
  std::set<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_SUPPORT_CUTTING_PROXY_H_
