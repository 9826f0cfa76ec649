// A server for tests. The path of each stream determines what the stream does.
#ifndef PHIMAP_TESTS_SERVER_RPC_TRANSPORT_CONNECTION_FIXTURE_H_
#define PHIMAP_TESTS_SERVER_RPC_TRANSPORT_CONNECTION_FIXTURE_H_

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/rpc/transport/connection.h"
#include "tests/server/support/loop_server.h"

namespace phimap::testing {

inline constexpr Header kOk[] = {{":status", "200"}};
inline constexpr Header kDone[] = {{"done", "yes"}};

// The events that a stream has received. This struct and the classes below are used only on the
// loop's thread.
struct StreamEvents {
  std::string path;
  size_t data_bytes = 0;
  bool request_ended = false;
  int sent = 0;
  int closed = 0;
  ResetCode code = ResetCode::kNoError;
};

// A stream that does what its path says.
class ScriptedStream final : public StreamHandler {
 public:
  ScriptedStream(Stream& stream, StreamEvents& events) : stream_(&stream), events_(events) {
    if (events_.path == "/reset") stream_->Reset(ResetCode::kRefusedStream);
    if (events_.path == "/reset" || events_.path == "/silent") return;
    stream_->SendHeaders(kOk, /*end=*/false);
    // "/large/BYTES" sends an answer of that many bytes.
    if (events_.path.rfind("/large/", 0) == 0) {
      stream_->Send(std::make_shared<OutputText>(std::string(NumberBehind(7), 'x')));
    }
    // "/megabytes/COUNT" sends the same megabyte COUNT times. It is filled only once, because the
    // loop reads its clock once per round. A round that filled a hundred megabytes would look like
    // a client that does not read.
    if (events_.path.rfind("/megabytes/", 0) == 0) {
      const auto megabyte = std::make_shared<OutputText>(std::string(1'000'000, 'x'));
      for (size_t i = NumberBehind(11); i > 0; --i) stream_->Send(megabyte);
    }
  }

  // The number that a path ends with, at most 100 million; 0 of a path that a fuzzer has made up.
  size_t NumberBehind(size_t begin) const {
    return std::min<size_t>(std::strtoul(events_.path.c_str() + begin, nullptr, 10), 100'000'000);
  }

  void OnData(absl::string_view bytes) override {
    events_.data_bytes += bytes.size();
    if (events_.path == "/hold") return;
    stream_->Consume(bytes.size());
    if (events_.path == "/echo") stream_->Send(std::make_shared<OutputText>(std::string(bytes)));
  }
  void OnRequestEnd() override {
    events_.request_ended = true;
    if (events_.path == "/echo" || events_.path == "/count") stream_->SendTrailers(kDone);
  }
  void OnSent() override { ++events_.sent; }
  void OnClosed(ResetCode code) override {
    ++events_.closed;
    events_.code = code;
    stream_ = nullptr;
  }

 private:
  Stream* stream_;
  StreamEvents& events_;
};

class ScriptedAcceptor final : public StreamAcceptor {
 public:
  void OnRequest(Stream& stream, const RequestHead& head, bool) override {
    events.push_back(std::make_unique<StreamEvents>());
    events.back()->path = std::string(head.Find(":path"));
    heads.push_back(head);
    if (head.too_large) return stream.SendHeaders(kOk, /*end=*/true);
    // A path that begins with "/refused" is a call that is not admitted.
    if (events.back()->path.rfind("/refused", 0) == 0) return stream.SendHeaders(kOk, /*end=*/true);
    stream.NoteAdmitted();
    stream.SetHandler(std::make_shared<ScriptedStream>(stream, *events.back()));
  }
  std::vector<std::unique_ptr<StreamEvents>> events;
  std::vector<RequestHead> heads;
};

class ConnectionTest : public ::testing::Test {
 protected:
  void Serve(const ConnectionLimits& limits = {}) {
    server_ = std::make_unique<LoopServer>(acceptor_, limits);
  }
  // Events that the i-th stream has received by now.
  StreamEvents EventsOf(size_t i) {
    StreamEvents events;
    server_->Run([&] { events = *acceptor_.events.at(i); });
    return events;
  }
  // Waits for several rounds of the loop. A round handles at most kEventsPerRound events, and each
  // task that runs here is an event.
  void Settle() {
    for (int i = 0; i < 5 * EventLoop::kEventsPerRound; ++i) server_->Run([] {});
  }
  size_t Streams() {
    size_t count = 0;
    server_->Run([&] { count = acceptor_.events.size(); });
    return count;
  }

  ScriptedAcceptor acceptor_;
  std::unique_ptr<LoopServer> server_;
};

}  // namespace phimap::testing

#endif  // PHIMAP_TESTS_SERVER_RPC_TRANSPORT_CONNECTION_FIXTURE_H_
