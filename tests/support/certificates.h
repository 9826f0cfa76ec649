// Generates TLS certificates and keys for tests.
#ifndef PHIMAP_TESTS_SUPPORT_CERTIFICATES_H_
#define PHIMAP_TESTS_SUPPORT_CERTIFICATES_H_

#include <memory>
#include <string>
#include <vector>

namespace phimap::testing {

// A certificate and its private key (P-256), both in PEM.
struct KeyPair {
  std::string certificate;
  std::string key;
};

struct CertificateOptions {
  std::string name = "localhost";
  // Days of validity from now. A negative number makes a certificate that has expired.
  int days = 2;
  // Subject alternative names.
  std::string names = "DNS:localhost,IP:127.0.0.1,IP:::1";
};

// A certificate authority with a newly generated key. The server certificates that it issues are
// valid for localhost, 127.0.0.1 and ::1.
class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& name);
  ~CertificateAuthority();
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;

  // The authority's own certificate, which clients are configured to trust.
  const std::string& certificate() const { return certificate_; }
  KeyPair Issue(const CertificateOptions& options = {});
  // Returns a revocation list (PEM) with these certificates (PEM), valid for so many days from now.
  std::string Revoked(const std::vector<std::string>& certificates, int days = 2) const;

 private:
  struct Signer;
  const std::unique_ptr<Signer> signer_;
  std::string certificate_;
};

// Returns the private key `key` in PEM, encrypted with the passphrase "passphrase".
std::string Encrypted(const std::string& key);

// Replaces the file at `path` atomically: writes `text` to a new file in the same folder and
// renames it. Only the file's owner can read and write it.
void ReplaceFile(const std::string& path, const std::string& text);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_CERTIFICATES_H_
