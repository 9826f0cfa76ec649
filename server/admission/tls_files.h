// Checks the TLS files before they are used.
//
// A fault is found here when the server starts or reads the files again, and is reported with the
// flag and the file. Otherwise it would show only as broken connections of clients.
#ifndef PHIMAP_SERVER_ADMISSION_TLS_FILES_H_
#define PHIMAP_SERVER_ADMISSION_TLS_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace phimap {

// Paths of PEM files.
struct TlsFiles {
  // The server's certificate, followed by the intermediate certificates up to its authority.
  std::string certificate = {};
  // Private key of the certificate, not encrypted.
  std::string key = {};
  // Certificates of authorities. Clients with a certificate signed by one of these authorities are
  // admitted. If empty, clients are not asked for a certificate.
  std::string client_ca = {};
  // Certificate revocation lists of these authorities. A client whose certificate is on one is
  // refused, and so is every client of an authority without a list that is valid now. If empty,
  // nothing is looked up.
  std::string client_crl = {};

  bool empty() const { return certificate.empty(); }
};

// Returns when the server's certificate expires. Returns FAILED_PRECONDITION (reason
// TLS_FILE_INVALID), naming the flag and the file, if a file cannot be read or parsed, or if the
// key does not belong to the certificate.
absl::StatusOr<absl::Time> CheckTlsFiles(const TlsFiles& files);

// Returns when the first revocation list (PEM) in the file at `path` ends, or InfiniteFuture if
// none does. Errors: FAILED_PRECONDITION (TLS_FILE_INVALID), also if one has ended.
absl::StatusOr<absl::Time> RevocationsEnd(const std::string& path);

// Returns the certificates of authorities (PEM) in the file at `path`, which is the value of the
// flag `flag`. Errors: FAILED_PRECONDITION (TLS_FILE_INVALID), as for CheckTlsFiles.
absl::StatusOr<std::string> ReadAuthorities(const char* flag, const std::string& path);

}  // namespace phimap

#endif  // PHIMAP_SERVER_ADMISSION_TLS_FILES_H_
