#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/escaping.h"
#include "server/transport/channel.h"

namespace phimap {
namespace {

// A TLS record holds at most 16 KiB.
constexpr size_t kRecordBytes = 16384;

// Blocks SIGPIPE on this thread. Otherwise the process would end when OpenSSL writes to a socket
// that the peer has closed.
void BlockBrokenPipes() {
  static thread_local const bool blocked = [] {
    sigset_t broken_pipes;
    sigemptyset(&broken_pipes);
    sigaddset(&broken_pipes, SIGPIPE);
    return pthread_sigmask(SIG_BLOCK, &broken_pipes, nullptr) == 0;
  }();
  static_cast<void>(blocked);
}

class Tls final : public Channel {
 public:
  Tls(int fd, SSL* ssl) : Channel(fd), ssl_(ssl) { SSL_set_fd(ssl_, fd); }
  ~Tls() override {
    SSL_free(ssl_);
    close(fd_);
  }

  bool needs_handshake() const override { return SSL_is_init_finished(ssl_) == 0; }
  bool has_buffered() const override { return SSL_pending(ssl_) > 0; }

  State Handshake(Peer& peer) override {
    BlockBrokenPipes();
    ERR_clear_error();
    const int done = SSL_accept(ssl_);
    if (done != 1) return StateOf(done);
    // A peer that did not negotiate "h2" by ALPN does not speak HTTP/2.
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &protocol, &size);
    if (size != 2 || std::memcmp(protocol, "h2", 2) != 0) return State::kClosed;
    if (X509* const certificate = SSL_get1_peer_certificate(ssl_); certificate != nullptr) {
      peer.certificate_verified = SSL_get_verify_result(ssl_) == X509_V_OK;
      std::array<unsigned char, 32> digest;
      unsigned digest_size = 0;
      X509_digest(certificate, EVP_sha256(), digest.data(), &digest_size);
      peer.certificate_digest = absl::BytesToHexString(
          absl::string_view(reinterpret_cast<char*>(digest.data()), digest_size));
      X509_free(certificate);
    }
    return State::kDone;
  }

  Result Read(char* data, size_t size) override {
    BlockBrokenPipes();
    ERR_clear_error();
    size_t got = 0;
    const int done = SSL_read_ex(ssl_, data, size, &got);
    if (done == 1) return {State::kDone, got};
    return {StateOf(done)};
  }

  // OpenSSL requires that a failed write is retried with the same bytes, so they are copied out of
  // the queue.
  State Write(OutputQueue& queue) override {
    BlockBrokenPipes();
    while (true) {
      if (record_size_ == 0 && !FillRecord(queue)) return State::kDone;
      ERR_clear_error();
      size_t sent = 0;
      const int done =
          SSL_write_ex(ssl_, record_.data() + record_sent_, record_size_ - record_sent_, &sent);
      if (done != 1) return StateOf(done);
      record_sent_ += sent;
      if (record_sent_ == record_size_) record_size_ = record_sent_ = 0;
    }
  }

  void Shutdown() override {
    BlockBrokenPipes();
    ERR_clear_error();
    SSL_shutdown(ssl_);
    ERR_clear_error();
  }

 private:
  bool FillRecord(OutputQueue& queue) {
    while (!queue.empty() && record_size_ < kRecordBytes) {
      iovec piece = {};
      queue.Front(absl::MakeSpan(&piece, 1));
      const size_t size = std::min(piece.iov_len, kRecordBytes - record_size_);
      std::memcpy(record_.data() + record_size_, piece.iov_base, size);
      record_size_ += size;
      queue.Pop(size);
    }
    return record_size_ > 0;
  }

  State StateOf(int result) const {
    const int error = SSL_get_error(ssl_, result);
    ERR_clear_error();
    if (error == SSL_ERROR_WANT_READ) return State::kWantsRead;
    if (error == SSL_ERROR_WANT_WRITE) return State::kWantsWrite;
    return State::kClosed;
  }

  SSL* const ssl_;
  std::array<char, kRecordBytes> record_;
  size_t record_size_ = 0;
  size_t record_sent_ = 0;
};

}  // namespace

std::unique_ptr<Channel> TlsChannel(int fd, SSL* ssl) { return std::make_unique<Tls>(fd, ssl); }

}  // namespace phimap
