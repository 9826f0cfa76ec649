#include "tests/support/certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>

#include "core/status/check.h"

namespace phimap::testing {
namespace {

constexpr long kSecondsPerDay = 86'400;

// Returns the PEM text that `write` writes.
template <typename Write>
std::string Pem(const Write& write) {
  BIO* const memory = BIO_new(BIO_s_mem());
  PHIMAP_CHECK(write(memory) == 1);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory, &bytes);
  const std::string text(bytes, static_cast<size_t>(size));
  BIO_free(memory);
  return text;
}

std::string PemOf(X509* certificate) {
  return Pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

std::string PemOf(EVP_PKEY* key, const EVP_CIPHER* cipher, const std::string& passphrase) {
  return Pem([&](BIO* out) {
    return PEM_write_bio_PKCS8PrivateKey(out, key, cipher, passphrase.data(),
                                         static_cast<int>(passphrase.size()), nullptr, nullptr);
  });
}

// Returns an unsigned certificate for `key`, with the name and the validity in `options`.
X509* Unsigned(const CertificateOptions& options, EVP_PKEY* key) {
  static long serial = 0;
  X509* const certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  // A certificate became valid an hour ago. An expired one, for which `days` is negative, became
  // valid 2·|days| days ago and expired |days| days ago.
  const long from = options.days < 0 ? 2 * options.days * kSecondsPerDay : -3600;
  X509_gmtime_adj(X509_getm_notBefore(certificate), from);
  X509_gmtime_adj(X509_getm_notAfter(certificate), options.days * kSecondsPerDay);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(options.name.c_str()), -1, -1,
                             0);
  PHIMAP_CHECK(X509_set_pubkey(certificate, key) == 1);
  return certificate;
}

void Extend(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  PHIMAP_CHECK(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

}  // namespace

struct CertificateAuthority::Signer {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = nullptr;
  ~Signer() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
};

CertificateAuthority::CertificateAuthority(const std::string& name)
    : signer_(std::make_unique<Signer>()) {
  X509* const own = Unsigned({.name = name, .days = 30}, signer_->key);
  signer_->certificate = own;
  X509_set_issuer_name(own, X509_get_subject_name(own));
  Extend(own, own, NID_basic_constraints, "critical,CA:TRUE");
  Extend(own, own, NID_subject_key_identifier, "hash");
  PHIMAP_CHECK(X509_sign(own, signer_->key, EVP_sha256()) > 0);
  certificate_ = PemOf(own);
}

CertificateAuthority::~CertificateAuthority() = default;

KeyPair CertificateAuthority::Issue(const CertificateOptions& options) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = Unsigned(options, key);
  X509_set_issuer_name(certificate, X509_get_subject_name(signer_->certificate));
  Extend(certificate, signer_->certificate, NID_subject_alt_name, options.names.c_str());
  PHIMAP_CHECK(X509_sign(certificate, signer_->key, EVP_sha256()) > 0);
  KeyPair pair{PemOf(certificate), PemOf(key, nullptr, "")};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return pair;
}

std::string CertificateAuthority::Revoked(const std::vector<std::string>& certificates,
                                          int days) const {
  X509_CRL* const list = X509_CRL_new();
  X509_CRL_set_version(list, 1);
  X509_CRL_set_issuer_name(list, X509_get_subject_name(signer_->certificate));
  ASN1_TIME* const time = X509_gmtime_adj(nullptr, days < 0 ? 2 * days * kSecondsPerDay : -3600);
  X509_CRL_set1_lastUpdate(list, time);
  for (const std::string& text : certificates) {
    BIO* const memory = BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
    X509* const certificate = PEM_read_bio_X509(memory, nullptr, nullptr, nullptr);
    PHIMAP_CHECK(certificate != nullptr);
    X509_REVOKED* const revoked = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(revoked, X509_get_serialNumber(certificate));
    X509_REVOKED_set_revocationDate(revoked, time);
    X509_CRL_add0_revoked(list, revoked);
    X509_free(certificate);
    BIO_free(memory);
  }
  X509_gmtime_adj(time, days * kSecondsPerDay);
  X509_CRL_set1_nextUpdate(list, time);
  PHIMAP_CHECK(X509_CRL_sign(list, signer_->key, EVP_sha256()) > 0);
  const std::string text = Pem([&](BIO* out) { return PEM_write_bio_X509_CRL(out, list); });
  ASN1_TIME_free(time);
  X509_CRL_free(list);
  return text;
}

std::string Encrypted(const std::string& key) {
  BIO* const memory = BIO_new_mem_buf(key.data(), static_cast<int>(key.size()));
  EVP_PKEY* const parsed = PEM_read_bio_PrivateKey(memory, nullptr, nullptr, nullptr);
  PHIMAP_CHECK(parsed != nullptr);
  const std::string text = PemOf(parsed, EVP_aes_256_cbc(), "passphrase");
  EVP_PKEY_free(parsed);
  BIO_free(memory);
  return text;
}

void ReplaceFile(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  std::ofstream(fresh, std::ios::binary) << text;
  PHIMAP_CHECK(chmod(fresh.c_str(), 0600) == 0);
  PHIMAP_CHECK(std::rename(fresh.c_str(), path.c_str()) == 0);
}

}  // namespace phimap::testing
