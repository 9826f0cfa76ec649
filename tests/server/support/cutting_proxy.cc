#include "tests/server/support/cutting_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/status/check.h"

namespace phimap::testing {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

}  // namespace

CuttingProxy::CuttingProxy(int server_port) : server_port_(server_port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  PHIMAP_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0);
  PHIMAP_CHECK(listen(listener_, 64) == 0);
  PHIMAP_CHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

CuttingProxy::~CuttingProxy() {
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  CutAll();
  for (std::thread& thread : threads_) thread.join();
  close(listener_);
}

void CuttingProxy::CutAt(int index, bool for_good) {
  const std::lock_guard<std::mutex> lock(mutex_);
  transfers_ = 0;
  cut_at_ = index;
  for_good_ = for_good;
  closed_ = false;
}

bool CuttingProxy::reached() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return cut_at_ >= 0 && transfers_ > cut_at_;
}

bool CuttingProxy::Count() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool cut = transfers_++ == cut_at_;
  if (cut && for_good_) closed_ = true;
  return cut;
}

void CuttingProxy::CutAll() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const int fd : sockets_) shutdown(fd, SHUT_RDWR);
}

void CuttingProxy::Accept() {
  for (;;) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) {
      close(client);
      continue;
    }
    sockets_.insert(client);
    threads_.emplace_back([this, client] { Serve(client); });
  }
}

void CuttingProxy::Serve(int client) {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(server_port_);
  const bool connected =
      connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    sockets_.insert(server);
  }
  pollfd both[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
  bool open = connected;
  while (open && poll(both, 2, -1) > 0) {
    for (int i = 0; open && i < 2; ++i) {
      if (both[i].revents != 0) open = PassOn(both[i].fd, both[1 - i].fd);
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const int fd : {client, server}) {
    sockets_.erase(fd);
    close(fd);
  }
}

bool CuttingProxy::PassOn(int from, int to) {
  char bytes[1 << 16];
  const ssize_t count = recv(from, bytes, sizeof(bytes), 0);
  if (count <= 0) return false;
  if (Count()) {
    CutAll();
    return false;
  }
  for (ssize_t sent = 0; sent < count;) {
    const ssize_t now = send(to, bytes + sent, static_cast<size_t>(count - sent), MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += now;
  }
  return true;
}

}  // namespace phimap::testing
