// Creates the nghttp2 session of a server connection, with its callbacks and limits.
#ifndef PHIMAP_SERVER_TRANSPORT_SESSION_CALLBACKS_H_
#define PHIMAP_SERVER_TRANSPORT_SESSION_CALLBACKS_H_

#include <nghttp2/nghttp2.h>

#include <string>

#include "absl/strings/string_view.h"
#include "server/transport/counted_memory.h"

namespace phimap {

class Connection;
struct ConnectionLimits;

// Creates a session whose events go to `connection`, with its first SETTINGS frame queued. The
// session itself accepts any number of streams: nghttp2 would end the whole connection of a client
// that has acknowledged a limit and then exceeds it. `connection` resets such streams instead.
// Returns null if there is no memory. `memory` must outlive the session.
nghttp2_session* NewServerSession(Connection& connection, const ConnectionLimits& limits,
                                  CountedMemory& memory);
// Returns the first SETTINGS frame as sent to the client, with the real limit of streams; empty if
// there is no memory. Call it once, before any other output is taken from the session.
std::string FirstFrame(nghttp2_session* session, const ConnectionLimits& limits);

// The callback by which nghttp2 asks for the body of an answer. The source of the data is the
// Connection.
nghttp2_data_source_read_callback BodyReader();

// Why nghttp2 ends a connection with COMPRESSION_ERROR. It cannot tell an honest field that is too
// long from an attack, and it has then lost the state of the compression, which all later requests
// of the connection need.
inline constexpr absl::string_view kFieldUndecodable =
    "a header or metadata field is over 65536 bytes or wrongly compressed; the calls of this "
    "connection end with it";
// Returns `frame`, a frame of the session's output, with kFieldUndecodable as debug data if it is
// the GOAWAY with that error, for which nghttp2 gives no reason.
std::string Explained(absl::string_view frame);

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSPORT_SESSION_CALLBACKS_H_
