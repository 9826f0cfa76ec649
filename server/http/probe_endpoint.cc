#include "server/http/probe_endpoint.h"

#include <array>
#include <list>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/status/status_macros.h"
#include "core/thread/steady_time.h"
#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "prometheus/registry.h"
#include "prometheus/text_serializer.h"
#include "server/observe/metrics.h"
#include "server/rpc/transport/listening_socket.h"
#include "server/rpc/transport/transport.h"

namespace phimap {
namespace {

constexpr int kMaxConnections = 32;
// Maximum connections whose client has not read its metrics.
constexpr size_t kMaxUnread = 8;
// Age up to which metrics that somebody has not read yet are sent to others too.
constexpr absl::Duration kSharedFor = absl::Seconds(1);

Transport::Options TransportOptions(std::vector<std::string> header_proxies) {
  Transport::Options options;
  options.header_proxies = std::move(header_proxies);
  options.connections_that_stay = kMaxConnections;
  options.max_queued_handshakes = 0;
  options.limits.max_header_bytes = 8 << 10;
  // Ample, because a silent connection keeps nobody out.
  options.limits.handshake_time = absl::Seconds(30);
  options.limits.max_stall = absl::Seconds(10);
  options.limits.max_idle = absl::Minutes(5);
  return options;
}

}  // namespace

// Answers requests. Used on the endpoint's thread only.
class ProbeAnswers final : public StreamAcceptor {
 public:
  ProbeAnswers(std::shared_ptr<const prometheus::Collectable> metrics, ProbeChecks checks,
               HostNames names)
      : metrics_(std::move(metrics)), checks_(std::move(checks)), names_(std::move(names)) {}

  void OnRequest(Stream& stream, const RequestHead& head, bool) override {
    if (head.too_large) return Send(stream, "431", "the head of the request is over 8192 bytes\n");
    if (!names_.MayCall(head)) {
      return Send(stream, "421",
                  "expected an IP address, a name without a dot or one of --http_hosts in the "
                  "header Host\n");
    }
    const absl::string_view target = head.Find(":path");
    const absl::string_view path = target.substr(0, target.find('?'));
    const bool known = path == "/metrics" || path == "/livez" || path == "/readyz";
    if (!known) return Send(stream, "404", "phimapd serves /metrics, /livez and /readyz here\n");
    if (head.Find(":method") != "GET") return Send(stream, "405", "only GET is served\n");
    // What was asked properly is no fault of a stranger.
    stream.NoteAdmitted();
    if (path == "/metrics") return SendMetrics(stream);
    path == "/livez" ? SendCheck(stream, checks_.live(), "")
                     : SendCheck(stream, checks_.ready(), checks_.degraded());
  }

 private:
  // Waits until the metrics of a stream are read.
  class Reader final : public StreamHandler {
   public:
    Reader(std::list<Stream*>& unread, Stream& stream)
        : unread_(unread), place_(unread.insert(unread.end(), &stream)) {}
    void OnData(absl::string_view) override {}
    void OnRequestEnd() override {}
    void OnSent() override {}
    void OnClosed(ResetCode) override { unread_.erase(place_); }

   private:
    std::list<Stream*>& unread_;
    const std::list<Stream*>::iterator place_;
  };

  static void Send(Stream& stream, absl::string_view status, std::string body) {
    Send(stream, status, std::make_shared<OutputText>(std::move(body)), "text/plain");
  }

  static void Send(Stream& stream, absl::string_view status,
                   const std::shared_ptr<const OutputText>& body, absl::string_view type) {
    const std::string length = absl::StrCat(body->bytes().size());
    const std::array<Header, 4> headers = {{{":status", status},
                                            {"content-type", type},
                                            {"content-length", length},
                                            {"x-content-type-options", "nosniff"}}};
    stream.SendHeaders(headers, /*end=*/false);
    stream.Send(body);
    stream.SendTrailers({});
  }

  static void SendCheck(Stream& stream, const std::string& problem, const std::string& degraded) {
    if (!problem.empty()) return Send(stream, "503", problem + "\n");
    Send(stream, "200", degraded.empty() ? "ok\n" : absl::StrCat("ok\ndegraded: ", degraded, "\n"));
  }

  void SendMetrics(Stream& stream) {
    if (unread_.size() >= kMaxUnread) unread_.front()->Reset(ResetCode::kCancel);
    stream.SetHandler(std::make_shared<Reader>(unread_, stream));
    // A crowd that does not read its metrics makes them once a second, and holds them once.
    std::shared_ptr<const OutputText> text = unread_text_.lock();
    if (text == nullptr || SteadyNow() - made_ > kSharedFor) {
      text =
          std::make_shared<OutputText>(prometheus::TextSerializer().Serialize(metrics_->Collect()));
      unread_text_ = text;
      made_ = SteadyNow();
    }
    Send(stream, "200", text, "text/plain; version=0.0.4; charset=utf-8");
  }

  const std::shared_ptr<const prometheus::Collectable> metrics_;
  const ProbeChecks checks_;
  const HostNames names_;
  // Streams whose metrics are not read, the oldest first.
  std::list<Stream*> unread_;
  // The last metrics, as long as somebody has not read them, and when they were made.
  std::weak_ptr<const OutputText> unread_text_;
  absl::Time made_ = absl::InfinitePast();
};

struct ProbeEndpoint::Parts {
  Parts(std::shared_ptr<const prometheus::Collectable> metrics, ProbeChecks checks, HostNames names,
        std::vector<std::string> header_proxies, const Logger& logger)
      : answers(std::move(metrics), std::move(checks), std::move(names)),
        transport(TransportOptions(std::move(header_proxies)), answers, counts, logger) {}

  ProbeAnswers answers;
  // The server's metrics of connections are about calls, so these count for nobody.
  prometheus::Registry registry;
  const ConnectionMetrics counts{registry};
  Transport transport;
};

absl::StatusOr<std::unique_ptr<ProbeEndpoint>> ProbeEndpoint::Listen(
    const std::string& address, std::shared_ptr<const prometheus::Collectable> metrics,
    const Logger& logger, ProbeChecks checks, HostNames names,
    std::vector<std::string> header_proxies) {
  PHIMAP_ASSIGN_OR_RETURN(std::vector<ListeningSocket> sockets,
                          ListeningSocket::Tcp(address, "http"));
  const int port = sockets[0].port();
  auto parts = std::make_unique<Parts>(std::move(metrics), std::move(checks), std::move(names),
                                       std::move(header_proxies), logger);
  std::vector<Transport::Endpoint> endpoints;
  for (ListeningSocket& socket : sockets) {
    endpoints.push_back(
        {std::move(socket), nullptr, {&parts->answers, /*http1=*/true, /*one_answer=*/true}});
  }
  parts->transport.Listen(std::move(endpoints));
  return absl::WrapUnique(new ProbeEndpoint(port, std::move(parts)));
}

ProbeEndpoint::ProbeEndpoint(int port, std::unique_ptr<Parts> parts)
    : port_(port), parts_(std::move(parts)) {}

ProbeEndpoint::~ProbeEndpoint() = default;

}  // namespace phimap
