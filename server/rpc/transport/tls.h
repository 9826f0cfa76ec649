// TLS configuration of the server: its TLS certificate and key, the authorities of client
// certificates, and HTTP/2 as the protocol.
//
// Reload reads the files again. Open connections go on, but for those whose client has a
// certificate that is not accepted any more. If the files are unusable, Reload returns an error and
// the previous configuration stays.
// Thread-safety: all methods may be called from any thread.
#ifndef PHIMAP_SERVER_RPC_TRANSPORT_TLS_H_
#define PHIMAP_SERVER_RPC_TRANSPORT_TLS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/thread/mutex.h"
#include "server/admission/tls_files.h"

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;

namespace phimap {

class TlsContext {
 public:
  // Errors: those of CheckTlsFiles.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Open(const TlsFiles& files);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Reads the files again, for new connections. A client whose certificate they do not accept any
  // more is cut off when it next sends or gets something. Errors: as in Open.
  absl::Status Reload();

  // Creates a server session for TlsChannel, which takes ownership. TLS 1.2 or later; ALPN "h2",
  // and, if `http1`, "http/1.1" or none. Returns null if there is no memory.
  SSL* NewSession(bool http1 = false) const;

  // How often the files have been read.
  int64_t loads() const { return loads_.load(std::memory_order_acquire); }
  // Whether the authorities and the revocation lists, as last read, accept the certificate of the
  // client of a session whose handshake is done.
  bool Accepts(const SSL* session) const;

 private:
  explicit TlsContext(TlsFiles files) : files_(std::move(files)) {}
  absl::StatusOr<std::shared_ptr<SSL_CTX>> Load() const;

  const TlsFiles files_;
  mutable Mutex mutex_;
  std::shared_ptr<SSL_CTX> context_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> loads_{0};
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_RPC_TRANSPORT_TLS_H_
