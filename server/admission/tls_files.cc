#include "server/admission/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
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

absl::Time ExpiryOf(const X509& certificate) {
  std::tm time{};
  PHIMAP_CHECK(ASN1_TIME_to_tm(X509_get0_notAfter(&certificate), &time) == 1);
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
  return ExpiryOf(*chain[0]);
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
