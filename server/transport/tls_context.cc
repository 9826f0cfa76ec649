#include "server/transport/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

constexpr unsigned char kHttp2[] = {2, 'h', '2'};
constexpr unsigned char kSessionId[] = "phimapd";

int SelectHttp2(SSL*, const unsigned char** out, unsigned char* out_size,
                const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* chosen = nullptr;
  const int found =
      SSL_select_next_proto(&chosen, out_size, kHttp2, sizeof(kHttp2), offered, offered_size);
  if (found != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

absl::Status Unusable(const char* flag, const std::string& path) {
  ERR_clear_error();
  return MakeError(absl::StatusCode::kFailedPrecondition, "TLS_FILE_INVALID", flag,
                   absl::StrCat(path, ": OpenSSL cannot use this file"), {{"path", path}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Open(const TlsFiles& files) {
  auto context = absl::WrapUnique(new TlsContext(files));
  PHIMAP_RETURN_IF_ERROR(context->Reload());
  return context;
}

absl::Status TlsContext::Reload() {
  PHIMAP_ASSIGN_OR_RETURN(std::shared_ptr<SSL_CTX> loaded, Load());
  MutexLock lock(&mutex_);
  context_ = std::move(loaded);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<SSL_CTX>> TlsContext::Load() const {
  PHIMAP_RETURN_IF_ERROR(CheckTlsFiles(files_).status());
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  PHIMAP_CHECK(context != nullptr);
  SSL_CTX* const raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(
      raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(raw, SelectHttp2, nullptr);
  SSL_CTX_set_session_id_context(raw, kSessionId, sizeof(kSessionId) - 1);
  if (SSL_CTX_use_certificate_chain_file(raw, files_.certificate.c_str()) != 1) {
    return Unusable("tls_certificate", files_.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(raw, files_.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Unusable("tls_key", files_.key);
  }
  if (!files_.client_ca.empty()) {
    if (SSL_CTX_load_verify_locations(raw, files_.client_ca.c_str(), nullptr) != 1) {
      return Unusable("tls_client_ca", files_.client_ca);
    }
    SSL_CTX_set_client_CA_list(raw, SSL_load_client_CA_file(files_.client_ca.c_str()));
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    // TLS sessions cannot be resumed: the certificate of a client that resumes one would not be
    // checked against authorities that have changed meanwhile.
    SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(raw, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(raw, 0);
  }
  ERR_clear_error();
  return context;
}

SSL* TlsContext::NewSession() const {
  std::shared_ptr<SSL_CTX> context;
  {
    MutexLock lock(&mutex_);
    context = context_;
  }
  return SSL_new(context.get());  // holds its own reference to the context
}

}  // namespace phimap
