// nghttp2's session of a server, with its callbacks and limits.
#ifndef PHIMAP_SERVER_TRANSPORT_SESSION_CALLBACKS_H_
#define PHIMAP_SERVER_TRANSPORT_SESSION_CALLBACKS_H_

#include <nghttp2/nghttp2.h>

namespace phimap {

class Connection;
struct ConnectionLimits;

// A session whose events go to `connection`, with its first settings queued.
nghttp2_session* NewServerSession(Connection& connection, const ConnectionLimits& limits);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_SESSION_CALLBACKS_H_
