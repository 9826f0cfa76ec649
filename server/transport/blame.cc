#include "server/transport/blame.h"

#include <string>

namespace phimap {
namespace {

struct FaultText {
  const char* reason;
  const char* help;
};

FaultText TextOf(ClientFault fault) {
  switch (fault) {
    case ClientFault::kResets:
      return {"resets",
              "the client cancels calls as fast as it makes them; if it is a proxy of many "
              "clients, give its address in --proxy"};
    case ClientFault::kControlFrames:
      return {
          "control_frames",
          "the client sends too many pings or other frames that carry no call; correct the client"};
    case ClientFault::kHeaders:
      return {"headers",
              "the client sends metadata over 16 KiB again and again; correct the client"};
    case ClientFault::kProtocol:
      return {"protocol",
              "the client violated the HTTP/2 protocol (gRPC's C core does so when a call is "
              "cancelled before it is sent); --proxy does not exempt a client from this rule"};
    case ClientFault::kNotHttp2:
      return {"not_http2",
              "something other than a gRPC client connects, perhaps a browser, a probe or a client "
              "that uses TLS where the server does not; the port of --http has the health checks"};
    case ClientFault::kTlsRecords:
      return {"tls_records",
              "the client sends TLS records without data, such as new keys, one after another; "
              "correct the client"};
    case ClientFault::kRefusedCalls:
      return {"refused_calls",
              "the address makes call after call that is refused; correct the client's token, or, "
              "if it is a proxy of many clients, give it in --proxy"};
    case ClientFault::kNoCall:
      return {"no_call",
              "nearly --max_connections are open, many without a call that was admitted; find out "
              "who opens them"};
  }
  return {"", ""};
}

prometheus::Counter& CounterOf(const ConnectionMetrics& metrics, ClientFault fault) {
  switch (fault) {
    case ClientFault::kResets:
      return *metrics.ended_for_resets;
    case ClientFault::kControlFrames:
      return *metrics.ended_for_control_frames;
    case ClientFault::kHeaders:
      return *metrics.ended_for_headers;
    case ClientFault::kNotHttp2:
      return *metrics.ended_for_other_protocol;
    case ClientFault::kTlsRecords:
      return *metrics.ended_for_tls_records;
    case ClientFault::kRefusedCalls:
      return *metrics.ended_for_refused_calls;
    case ClientFault::kNoCall:
      return *metrics.ended_for_no_call;
    case ClientFault::kProtocol:
      break;
  }
  return *metrics.ended_for_protocol;
}

const char* HelpFor(absl::string_view handshake_failure) {
  if (handshake_failure == "not_tls") return "this port requires TLS; have the client use it";
  if (handshake_failure == "no_certificate") {
    return "--tls_client_ca requires a client certificate; give the client one";
  }
  if (handshake_failure == "certificate") {
    return "the client's certificate is not of --tls_client_ca, or the client does not trust the "
           "authority of --tls_certificate";
  }
  if (handshake_failure == "no_http2") return "the client must offer h2 by ALPN, as gRPC does";
  return "see the reason; other versions of TLS or ciphers are a common one";
}

}  // namespace

void Blame::Note(const Peer& peer, ClientFault fault, absl::string_view why) {
  CounterOf(metrics_, fault).Increment();
  if (!logs_.Now()) return;
  const FaultText text = TextOf(fault);
  logger_.Log(LogLevel::kWarning, "connection_ended",
              {{"peer", peer.address},
               {"reason", text.reason},
               {"why", std::string(why)},
               {"help", text.help}});
}

void Blame::NoteHandshake(const Peer& peer, const HandshakeFailure& failure) {
  metrics_.HandshakeFailed(failure.kind);
  if (!logs_handshakes_.Now()) return;
  logger_.Log(LogLevel::kWarning, "handshake_failed",
              {{"peer", peer.address},
               {"reason", failure.kind},
               {"why", failure.why},
               {"help", HelpFor(failure.kind)}});
}

}  // namespace phimap
