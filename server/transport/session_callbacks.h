// nghttp2's session of a server, with its callbacks and limits.
#ifndef PHIMAP_SERVER_TRANSPORT_SESSION_CALLBACKS_H_
#define PHIMAP_SERVER_TRANSPORT_SESSION_CALLBACKS_H_

#include <nghttp2/nghttp2.h>

#include <string>

namespace phimap {

class Connection;
struct ConnectionLimits;

// A session whose events go to `connection`, with its first settings queued. The session accepts
// any number of streams: nghttp2 would end the connection of a client that knows the limit and
// exceeds it.
nghttp2_session* NewServerSession(Connection& connection, const ConnectionLimits& limits);
// The settings, for the wire, with the limit of streams in them. To be called first, and once.
std::string FirstFrame(nghttp2_session* session, const ConnectionLimits& limits);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_SESSION_CALLBACKS_H_
