// TLS for the API's listener.
#ifndef PHIMAP_SERVER_TLS_CREDENTIALS_H_
#define PHIMAP_SERVER_TLS_CREDENTIALS_H_

#include <memory>

#include "grpcpp/security/server_credentials.h"
#include "server/auth/tls_files.h"

namespace phimap {

// TLS 1.2 and 1.3 with `files`, which are read again every second: connections made after a change
// use what is there then. With files.client_ca a client without a certificate that it signed is
// not let in. REQUIRES: CheckTlsFiles found nothing wrong.
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(const TlsFiles& files);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TLS_CREDENTIALS_H_
