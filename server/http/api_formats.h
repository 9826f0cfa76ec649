// The API over HTTP: which call a request is, and in which forms its rows come and go.
//
// A call with one request takes JSON, or, for Transform and Predict, rows as CSV or .npy; it
// answers in JSON, CSV or .npy, as the header accept says. Build, Train and Evaluate take rows as
// CSV or .npy, of any number, and all else in the query; they answer with their result as JSON, or
// with each of their events as a line of JSON (application/x-ndjson). Import takes the bytes of an
// artifact, and Export answers with them.
#ifndef PHIMAP_SERVER_HTTP_API_FORMATS_H_
#define PHIMAP_SERVER_HTTP_API_FORMATS_H_

#include <optional>

#include "server/http/http_format.h"
#include "server/rpc/transport/stream.h"

namespace phimap {

// Sets `target` to what a request calls, or returns why it calls nothing.
std::optional<HttpRefusal> FindApiTarget(const RequestHead& head, HttpTarget& target);

}  // namespace phimap

#endif  // PHIMAP_SERVER_HTTP_API_FORMATS_H_
