// Certificates made for a test.
#ifndef PHIMAP_TESTS_SUPPORT_CERTIFICATES_H_
#define PHIMAP_TESTS_SUPPORT_CERTIFICATES_H_

#include <memory>
#include <string>

namespace phimap::testing {

// A certificate and its private key (P-256), both in PEM.
struct KeyPair {
  std::string certificate;
  std::string key;
};

struct CertificateOptions {
  std::string name = "localhost";
  // Days of validity from now; negative: it has expired.
  int days = 2;
};

// An authority of its own: what it issues nobody else has signed. Certificates of servers hold for
// localhost, 127.0.0.1 and ::1.
class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& name);
  ~CertificateAuthority();
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;

  // Its own certificate: what clients are to trust.
  const std::string& certificate() const { return certificate_; }
  KeyPair Issue(const CertificateOptions& options = {});

 private:
  struct Signer;
  const std::unique_ptr<Signer> signer_;
  std::string certificate_;
};

// `key` encrypted with a passphrase.
std::string Encrypted(const std::string& key);

// Writes `text` to a file beside `path` and renames it: seen whole or not at all, for its user
// alone.
void ReplaceFile(const std::string& path, const std::string& text);

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SUPPORT_CERTIFICATES_H_
