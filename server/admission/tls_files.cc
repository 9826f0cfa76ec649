#include "server/admission/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/check.h"
#include "core/status/error.h"
#include "core/status/status_macros.h"

namespace phimap {
namespace {

template <auto* kFree>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

absl::Status Wrong(const char* flag, const std::string& path, absl::string_view why) {
  ERR_clear_error();  // OpenSSL keeps errors in a queue of this thread
  return MakeError(absl::StatusCode::kFailedPrecondition, reason::kTlsFileInvalid, flag,
                   absl::StrCat(path, ": ", why), {{"path", path}});
}

absl::StatusOr<Bio> Open(const char* flag, const std::string& path) {
  Bio file(BIO_new_file(path.c_str(), "r"));
  if (file == nullptr) return Wrong(flag, path, std::strerror(errno));
  return file;
}

absl::StatusOr<std::vector<Certificate>> ReadCertificates(const char* flag,
                                                          const std::string& path) {
  PHIMAP_ASSIGN_OR_RETURN(const Bio file, Open(flag, path));
  std::vector<Certificate> certificates;
  while (X509* const next = PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(next);
  }
  // OpenSSL reports the end of the file as an error too: it finds no further certificate.
  const bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!ended) return Wrong(flag, path, "a certificate in it cannot be parsed");
  if (certificates.empty()) return Wrong(flag, path, "expected certificates in PEM, found none");
  return certificates;
}

// Replaces OpenSSL's default, which would prompt on the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

absl::StatusOr<Key> ReadKey(const std::string& path) {
  PHIMAP_ASSIGN_OR_RETURN(const Bio file, Open("tls_key", path));
  Key key(PEM_read_bio_PrivateKey(file.get(), nullptr, NoPassphrase, nullptr));
  if (key != nullptr) return key;
  return Wrong(
      "tls_key", path,
      "expected a private key in PEM that is not encrypted, because no one can type a passphrase");
}

absl::Time TimeOf(const ASN1_TIME& asn1) {
  std::tm time{};
  PHIMAP_CHECK(ASN1_TIME_to_tm(&asn1, &time) == 1);
  return absl::FromTimeT(timegm(&time));
}

}  // namespace

absl::StatusOr<absl::Time> CheckTlsFiles(const TlsFiles& files) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<Certificate> chain,
                          ReadCertificates("tls_certificate", files.certificate));
  PHIMAP_ASSIGN_OR_RETURN(const Key key, ReadKey(files.key));
  if (X509_check_private_key(chain[0].get(), key.get()) != 1) {
    return Wrong(
        "tls_key", files.key,
        absl::StrCat("the key does not belong to the first certificate in ", files.certificate));
  }
  if (!files.client_ca.empty()) {
    PHIMAP_RETURN_IF_ERROR(ReadCertificates("tls_client_ca", files.client_ca).status());
  }
  if (!files.client_crl.empty()) PHIMAP_RETURN_IF_ERROR(RevocationsEnd(files.client_crl).status());
  return TimeOf(*X509_get0_notAfter(chain[0].get()));
}

absl::StatusOr<absl::Time> RevocationsEnd(const std::string& path) {
  constexpr char kFlag[] = "tls_client_crl";
  PHIMAP_ASSIGN_OR_RETURN(const Bio file, Open(kFlag, path));
  int lists = 0;
  absl::Time first_end = absl::InfiniteFuture();
  while (X509_CRL* const next = PEM_read_bio_X509_CRL(file.get(), nullptr, nullptr, nullptr)) {
    const ASN1_TIME* const end = X509_CRL_get0_nextUpdate(next);
    if (end != nullptr) first_end = std::min(first_end, TimeOf(*end));
    X509_CRL_free(next);
    ++lists;
    if (first_end < absl::Now()) {
      return Wrong(kFlag, path, "a revocation list in it has expired; fetch the present one");
    }
  }
  const bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!ended) return Wrong(kFlag, path, "a revocation list in it cannot be parsed");
  if (lists == 0) return Wrong(kFlag, path, "expected revocation lists in PEM, found none");
  return first_end;
}

absl::StatusOr<std::string> ReadAuthorities(const char* flag, const std::string& path) {
  PHIMAP_ASSIGN_OR_RETURN(const std::vector<Certificate> authorities, ReadCertificates(flag, path));
  const Bio text(BIO_new(BIO_s_mem()));
  PHIMAP_CHECK(text != nullptr);
  for (const Certificate& authority : authorities) {
    PHIMAP_CHECK(PEM_write_bio_X509(text.get(), authority.get()) == 1);
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);  // NOLINT(google-runtime-int): OpenSSL's
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace phimap
