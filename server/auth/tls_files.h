// The files of TLS, looked at before they are used.
//
// gRPC reads them repeatedly and does not report files that it cannot use: the client sees a broken
// connection. Faults of the files are therefore found here, at the start.
#ifndef PHIMAP_SERVER_AUTH_TLS_FILES_H_
#define PHIMAP_SERVER_AUTH_TLS_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace phimap {

// Paths of PEM files.
struct TlsFiles {
  // The server's certificate, followed by those between it and its authority.
  std::string certificate = {};
  // Private key of the certificate, not encrypted.
  std::string key = {};
  // Authorities whose clients are let in; empty: clients are not asked for a certificate.
  std::string client_ca = {};

  bool empty() const { return certificate.empty(); }
};

// Returns the expiry time of the server's certificate. FAILED_PRECONDITION (reason
// TLS_FILE_INVALID), with flag and file, if a file cannot be read or parsed, or if key and
// certificate do not match.
absl::StatusOr<absl::Time> CheckTlsFiles(const TlsFiles& files);

// The text of a file of authorities (PEM) that `flag` named. FAILED_PRECONDITION (TLS_FILE_INVALID)
// as above.
absl::StatusOr<std::string> ReadAuthorities(const char* flag, const std::string& path);

}  // namespace phimap

#endif  // PHIMAP_SERVER_AUTH_TLS_FILES_H_
