// What the server speaks over HTTP as a document of OpenAPI 3.1, for tools that make clients of it.
// It is made of the rules (routes.h), of the descriptors of the messages, and of the comments in
// the protos; so it says of each call what this server reads and prints.
#ifndef PHIMAP_SERVER_HTTP_OPENAPI_H_
#define PHIMAP_SERVER_HTTP_OPENAPI_H_

#include <memory>
#include <string>

#include "server/rpc/transport/stream.h"

namespace phimap {

// Where the document is served.
inline constexpr char kOpenApiPath[] = "/openapi.json";

struct OpenApi {
  std::shared_ptr<const OutputText> text;
  // A quoted text that differs for each document, for the header etag.
  std::string etag;

  // The document of the API. It is made at the first call, in some ten milliseconds.
  static const OpenApi& OfApi();
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_OPENAPI_H_
