// Creates the nghttp2 session of a server connection, with its callbacks and limits.
#ifndef PHIMAP_SERVER_TRANSPORT_SESSION_CALLBACKS_H_
#define PHIMAP_SERVER_TRANSPORT_SESSION_CALLBACKS_H_

#include <nghttp2/nghttp2.h>

#include <string>

namespace phimap {

class Connection;
struct ConnectionLimits;

// Creates a session whose events go to `connection`, with its first SETTINGS frame queued. The
// session itself accepts any number of streams: nghttp2 would end the whole connection of a client
// that has acknowledged a limit and then exceeds it. `connection` resets such streams instead.
nghttp2_session* NewServerSession(Connection& connection, const ConnectionLimits& limits);
// Returns the first SETTINGS frame as sent to the client, with the real limit of streams. Call it
// once, before any other output is taken from the session.
std::string FirstFrame(nghttp2_session* session, const ConnectionLimits& limits);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_SESSION_CALLBACKS_H_
