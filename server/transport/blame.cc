#include "server/transport/blame.h"

#include <string>

#include "server/sync/steady_time.h"

namespace phimap {
namespace {

constexpr absl::Duration kBlameQuiet = absl::Seconds(10);

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
    case ClientFault::kProtocol:
      break;
  }
  return *metrics.ended_for_protocol;
}

}  // namespace

void Blame::Note(const Peer& peer, ClientFault fault, absl::string_view why) {
  CounterOf(metrics_, fault).Increment();
  const absl::Time now = SteadyNow();
  if (now < quiet_until_) return;
  quiet_until_ = now + kBlameQuiet;
  const FaultText text = TextOf(fault);
  logger_.Log(LogLevel::kWarning, "connection_ended",
              {{"peer", peer.address},
               {"reason", text.reason},
               {"why", std::string(why)},
               {"help", text.help}});
}

}  // namespace phimap
