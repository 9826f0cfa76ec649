#include "server/rpc/transport/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"
#include "server/rpc/transport/channel.h"
#include "server/rpc/transport/peer.h"

namespace phimap {

namespace {

constexpr unsigned char kHttp2[] = {2, 'h', '2'};
constexpr unsigned char kHttp2OrHttp1[] = {2, 'h', '2', 8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
constexpr unsigned char kSessionId[] = "phimapd";

// Whether the client of this session may speak HTTP/1.1 too. What the session carries for its
// program says so, because all sessions share the context.
bool AllowsHttp1(const SSL* ssl) { return SSL_get_app_data(ssl) != nullptr; }

int SelectProtocol(SSL* ssl, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* chosen = nullptr;
  const bool http1 = AllowsHttp1(ssl);
  const int found =
      SSL_select_next_proto(&chosen, out_size, http1 ? kHttp2OrHttp1 : kHttp2,
                            http1 ? sizeof(kHttp2OrHttp1) : sizeof(kHttp2), offered, offered_size);
  if (found != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

// Returns the subject alternative names of a certificate, as "DNS:NAME".
std::vector<std::string> NamesIn(X509* certificate) {
  std::vector<std::string> names;
  auto* const found = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(found); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(found, i);
    int type = 0;
    const auto* const value = static_cast<ASN1_STRING*>(GENERAL_NAME_get0_value(name, &type));
    if (type != GEN_DNS && type != GEN_URI && type != GEN_EMAIL && type != GEN_IPADD) continue;
    const absl::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                                 static_cast<size_t>(ASN1_STRING_length(value)));
    if (type == GEN_DNS) names.push_back(absl::StrCat("DNS:", absl::AsciiStrToLower(text)));
    if (type == GEN_URI) names.push_back(absl::StrCat("URI:", text));
    if (type == GEN_EMAIL) names.push_back(absl::StrCat("email:", text));
    if (type != GEN_IPADD) continue;
    if (text.size() == sizeof(in_addr)) {
      in_addr address;
      std::memcpy(&address, text.data(), sizeof(address));
      names.push_back(absl::StrCat("IP:", IpAddressText(address)));
    } else if (text.size() == sizeof(in6_addr)) {
      in6_addr address;
      std::memcpy(&address, text.data(), sizeof(address));
      names.push_back(absl::StrCat("IP:", IpAddressText(address)));
    }
  }
  GENERAL_NAMES_free(found);
  return names;
}

// The index of what a context carries for the program besides its owner: which load of the files it
// is.
int LoadIndex() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

// Returns whose certificate was refused, and why.
std::string RefusalOf(X509_STORE_CTX* check) {
  constexpr int kMostSubject = 128;
  std::string why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(check));
  X509* const certificate = X509_STORE_CTX_get_current_cert(check);
  if (certificate == nullptr) return why;
  std::array<char, kMostSubject> subject{};
  X509_NAME_oneline(X509_get_subject_name(certificate), subject.data(), kMostSubject);
  absl::StrAppend(&why, ": ", subject.data());
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1) {
    absl::StrAppend(
        &why, " sha256:",
        absl::BytesToHexString(absl::string_view(reinterpret_cast<char*>(digest.data()), size)));
  }
  return why;
}

absl::Status Unusable(const char* flag, const std::string& path) {
  ERR_clear_error();
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kTlsFileInvalid, flag,
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
  const int64_t number = loads() + 1;
  SSL_CTX_set_app_data(loaded.get(), const_cast<TlsContext*>(this));
  SSL_CTX_set_ex_data(loaded.get(), LoadIndex(), reinterpret_cast<void*>(number));
  {
    MutexLock lock(&mutex_);
    context_ = std::move(loaded);
  }
  loads_.store(number, std::memory_order_release);
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
  SSL_CTX_set_alpn_select_cb(raw, SelectProtocol, nullptr);
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
    if (!files_.client_crl.empty()) {
      X509_STORE* const store = SSL_CTX_get_cert_store(raw);
      if (X509_STORE_load_file(store, files_.client_crl.c_str()) != 1) {
        return Unusable("tls_client_crl", files_.client_crl);
      }
      X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
    }
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

bool TlsContext::Accepts(const SSL* session) const {
  std::shared_ptr<SSL_CTX> context;
  {
    MutexLock lock(&mutex_);
    context = context_;
  }
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> check(X509_STORE_CTX_new(),
                                                                              &X509_STORE_CTX_free);
  const bool accepted = check != nullptr &&
                        X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context.get()),
                                            SSL_get0_peer_certificate(session),
                                            SSL_get_peer_cert_chain(session)) == 1 &&
                        X509_STORE_CTX_set_default(check.get(), "ssl_client") == 1 &&
                        X509_verify_cert(check.get()) == 1;
  ERR_clear_error();
  return accepted;
}

SSL* TlsContext::NewSession(bool http1) const {
  std::shared_ptr<SSL_CTX> context;
  {
    MutexLock lock(&mutex_);
    context = context_;
  }
  SSL* const session = SSL_new(context.get());  // holds its own reference to the context
  static char allowed;
  if (session != nullptr && http1) SSL_set_app_data(session, &allowed);
  return session;
}

namespace {

// A TLS record holds at most 16 KiB.
constexpr size_t kRecordBytes = 16384;
// Maximum records without data between two records with data. OpenSSL handles them within one call,
// 26 us for each change of a key, so without a limit one client could hold the loop for seconds. An
// honest client changes its key once in 2^24 records.
constexpr int kMaxRecordsWithoutData = 8;

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

// `error` is of OpenSSL's queue; 0 if there is none, since the peer has to send more. A peer that
// closes the connection, as a probe does, has not failed.
HandshakeFailure FailureOf(unsigned long error) {
  if (error == 0 || ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING) return {};
  const char* const text = ERR_reason_error_string(error);
  std::string why = text == nullptr ? "an error of OpenSSL" : text;
  switch (ERR_GET_REASON(error)) {
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_UNEXPECTED_MESSAGE:
    case SSL_R_BAD_RECORD_TYPE:
      return {"not_tls", std::move(why)};
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return {"no_certificate", std::move(why)};
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return {"certificate", std::move(why)};
    case SSL_R_NO_APPLICATION_PROTOCOL:
      return {"no_http2", std::move(why)};
    default:
      return {"other", std::move(why)};
  }
}

class Tls final : public Channel {
 public:
  Tls(int fd, SSL* ssl) : Channel(fd), ssl_(ssl) {
    SSL_set_fd(ssl_, fd);
    BIO* const socket = SSL_get_rbio(ssl_);
    BIO_set_callback_ex(socket, BeforeSocket);
    BIO_set_callback_arg(socket, reinterpret_cast<char*>(this));
    SSL_set_msg_callback(ssl_, OnRecord);
    SSL_set_msg_callback_arg(ssl_, this);
    SSL_set_ex_data(ssl_, ChannelIndex(), this);
    SSL_set_verify(ssl_, SSL_get_verify_mode(ssl_), OnVerified);
    const SSL_CTX* const context = SSL_get_SSL_CTX(ssl_);
    context_ = static_cast<const TlsContext*>(SSL_CTX_get_app_data(context));
    checked_load_ = reinterpret_cast<int64_t>(SSL_CTX_get_ex_data(context, LoadIndex()));
  }
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
    if (done != 1) {
      handshake_failure_ = FailureOf(ERR_peek_error());
      if (handshake_failure_.kind != nullptr && !refusal_.empty()) {
        handshake_failure_.why = std::move(refusal_);
      }
      return StateOf(done);
    }
    records_without_data_ = 0;
    // A peer that did not negotiate "h2" by ALPN does not speak HTTP/2.
    const unsigned char* protocol = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &protocol, &size);
    chose_http2_ = size == 2 && std::memcmp(protocol, "h2", 2) == 0;
    if (!chose_http2_ && !AllowsHttp1(ssl_)) {
      handshake_failure_ = {"no_http2", "the client did not offer h2 by ALPN"};
      return State::kClosed;
    }
    if (X509* const certificate = SSL_get1_peer_certificate(ssl_); certificate != nullptr) {
      peer.certificate_verified = SSL_get_verify_result(ssl_) == X509_V_OK;
      std::array<unsigned char, 32> digest;
      unsigned digest_size = 0;
      X509_digest(certificate, EVP_sha256(), digest.data(), &digest_size);
      peer.certificate_digest = absl::BytesToHexString(
          absl::string_view(reinterpret_cast<char*>(digest.data()), digest_size));
      peer.certificate_names = NamesIn(certificate);
      certificate_end_ = EndOf(*certificate);
      X509_free(certificate);
    }
    return State::kDone;
  }

  Result Read(char* data, size_t size) override {
    if (!IsAccepted()) return {State::kDistrusted};
    BlockBrokenPipes();
    ERR_clear_error();
    size_t got = 0;
    const int done = SSL_read_ex(ssl_, data, size, &got);
    if (done == 1) {
      records_without_data_ = 0;
      return {State::kDone, got};
    }
    const State state = StateOf(done);
    return {flooded() ? State::kFlooded : state};
  }

  // OpenSSL requires that a failed write is retried with the same bytes, so they are copied out of
  // the queue.
  State Write(OutputQueue& queue) override {
    if (!IsAccepted()) return State::kDistrusted;
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
  static int ChannelIndex() {
    static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
    return index;
  }
  static int OnVerified(int accepted, X509_STORE_CTX* check) {
    const auto* const ssl = static_cast<const SSL*>(
        X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx()));
    auto* const tls = static_cast<Tls*>(SSL_get_ex_data(ssl, ChannelIndex()));
    if (accepted == 0) tls->refusal_ = RefusalOf(check);
    return accepted;
  }
  static std::time_t EndOf(const X509& certificate) {
    std::tm time{};
    return ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &time) == 1 ? timegm(&time) : 0;
  }
  // Whether the client has no certificate, or one that has not expired and that the files, as last
  // read, accept.
  bool IsAccepted() {
    if (!certificate_end_.has_value()) return true;
    if (std::time(nullptr) > *certificate_end_) return false;
    const int64_t load = context_->loads();
    if (load == checked_load_) return true;
    if (!context_->Accepts(ssl_)) return false;
    checked_load_ = load;
    return true;
  }

  // Counts the records that arrive, when OpenSSL has read the head of one.
  static void OnRecord(int sent, int, int kind, const void*, size_t, SSL*, void* channel) {
    if (sent == 0 && kind == SSL3_RT_HEADER) ++static_cast<Tls*>(channel)->records_without_data_;
  }
  // Called before and after each operation on the socket. Has OpenSSL return, as if nothing more
  // had arrived, when it should read no more records.
  static long BeforeSocket(BIO* socket, int operation, const char*, size_t, int, long, int result,
                           size_t*) {
    if (operation != BIO_CB_READ) return result;
    const auto* const tls = reinterpret_cast<const Tls*>(BIO_get_callback_arg(socket));
    if (!tls->flooded()) return 1;
    BIO_set_retry_read(socket);
    return -1;
  }
  bool flooded() const {
    return SSL_is_init_finished(ssl_) != 0 && records_without_data_ > kMaxRecordsWithoutData;
  }
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
  const TlsContext* context_ = nullptr;
  // When the client's certificate expires; nullopt if it has none.
  std::optional<std::time_t> certificate_end_;
  // The load of the files that last accepted it.
  int64_t checked_load_ = 0;
  // Why the client's certificate was refused.
  std::string refusal_;
  // Records that have arrived since the last one with data, that one included while it arrives.
  int records_without_data_ = 0;
  std::array<char, kRecordBytes> record_;
  size_t record_size_ = 0;
  size_t record_sent_ = 0;
};

}  // namespace

std::unique_ptr<Channel> TlsChannel(int fd, SSL* ssl) {
  if (ssl == nullptr) return nullptr;
  try {
    return std::make_unique<Tls>(fd, ssl);
  } catch (const std::bad_alloc&) {
    SSL_free(ssl);
    return nullptr;
  }
}

}  // namespace phimap
