// A call that maps the rows of a stream of requests. Answers have the order of the requests;
// several requests may be in progress at once. This class is the part that all protocols share.
//
// A protocol derives from this class and implements how its messages are read and written. No step
// may block.
#ifndef PHIMAP_SERVER_TRANSFORM_ROW_STREAM_CALL_H_
#define PHIMAP_SERVER_TRANSFORM_ROW_STREAM_CALL_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/plan/examples.h"
#include "core/plan/rows.h"
#include "core/thread/steady_time.h"
#include "server/registry/version_registry.h"
#include "server/rpc/call.h"
#include "server/transform/row_call.h"
#include "server/transform/row_server.h"

namespace phimap {

// Maximum number of requests of one stream that have been read but not answered.
inline constexpr size_t kStreamWindow = 32;
// Maximum total bytes of the unanswered requests of one stream and their answers. One request is
// always admitted, whatever its size.
inline constexpr int64_t kStreamWindowBytes = int64_t{16} << 20;

// Invariants:
//   1. slots_ holds the requests that have been read but not answered, in their order. Answers are
//      sent from the front of slots_.
//   2. The next request is read only while the window has capacity. So the call's memory is
//      bounded, and HTTP/2 flow control stops a client that does not read its answers.
//   3. Requests go to the engine in their order. A request whose answer does not fit into memory
//      waits, and nothing more is read meanwhile: the stream becomes slower, but is not refused.
//      Earlier requests are computed and sent in the meantime, so the request never waits for
//      capacity that its own call holds. Nothing is read while a version is being loaded either.
//   4. The call ends with OK after the last answer. Some errors of a request end the stream,
//      depending on the protocol. The call then ends with the first such error, after the answers
//      before it.
//
// `Answer` is created for each request, and has
//   PlannedAnswer& message();
//   char* Allocate(const TransformMetrics& metrics);  // as in RowCall
//   absl::Status Complete(const ExamplesView& seen);  // as in RowCall
template <typename Request, typename Answer>
class RowStreamCall : public TypedStreamCall<Request> {
 protected:
  // The call ends if its client is silent for `idle_limit`, and then no longer pins versions.
  RowStreamCall(const CallStart& start, const RowCallEnvironment& environment,
                const absl::Duration& idle_limit)
      : TypedStreamCall<Request>(start), environment_(environment), idle_limit_(idle_limit) {}

  // One request and its answer. The computing thread keeps the slot alive as well.
  struct Slot {
    int64_t number = 0;
    // True if the input is not a valid request. No further request is then read.
    bool unreadable = false;
    absl::Time received;
    // Returned after the request is destroyed.
    RequestMemory::Charge charge;
    Request request;
    VersionHandle version = {};
    ExamplesView rows = RowsView{};
    // Path of the rows in the request, including a final dot.
    absl::string_view field = {};
    absl::Time deadline = absl::InfiniteFuture();
    Answer answer = {};
    // Bytes of the window that the slot takes: request and answer.
    int64_t window_bytes = 0;
    bool done = false;
    absl::Status status = {};
    // Sent to the client instead of the answer, when an error does not end the stream.
    std::shared_ptr<const OutputBytes> told = nullptr;
  };

 private:
  using SlotPointer = std::shared_ptr<Slot>;

  // The next functions are called for each request in this order, each at most once.

  // Checks the request as far as that is possible without its version.
  virtual absl::Status Read(Slot& slot) = 0;
  // Returns the reference by which the version is looked up. It points into the slot or the call.
  // Not called if Read has set the slot's version.
  virtual absl::string_view ReferenceOf(Slot& slot) = 0;
  virtual LivePart PartOf(const Slot&) const { return LivePart::kFeatures; }
  // Checks that the version suits the request, and if so fills in the slot's rows and lays out its
  // answer.
  virtual absl::Status Accept(Slot& slot) = 0;
  // Returns the error with which the stream ends. Returns OK if the stream continues and the slot
  // now has an answer that contains the error. For an unreadable request, it must return an error.
  virtual absl::Status Failed(Slot& slot, const absl::Status& status) = 0;

  void Start() final {
    this->SetIdleLimit(idle_limit_);
    this->ReadNext();
  }

  void OnRequest() final {
    auto slot = std::make_shared<Slot>();
    slot->number = next_number_++;
    slot->received = SteadyNow();
    slot->deadline = this->deadline();
    slot->request.Swap(&this->request());
    slot->charge = this->TakeCharge();
    slots_.push_back(slot);
    slot->window_bytes = slot->charge.bytes();
    window_bytes_ += slot->window_bytes;
    if (absl::Status bad = Read(*slot); !bad.ok()) return SlotDone(*slot, bad);
    if (slot->version) return Plan(slot);
    Resolve(slot);
  }

  // Queues the error for a bad request, so that the earlier requests are answered first.
  void OnBadRequest(const absl::Status& status) final {
    auto slot = std::make_shared<Slot>();
    slot->number = next_number_++;
    slot->unreadable = true;
    slots_.push_back(slot);
    SlotDone(*slot, status);
  }

  void OnRequestsEnd() final {
    reads_done_ = true;
    Advance();
  }

  void OnWritten() final {
    window_bytes_ -= slots_.front()->window_bytes;
    slots_.pop_front();
    Advance();
  }

  bool busy() const final { return !slots_.empty(); }

  void Resolve(const SlotPointer& slot) {
    const absl::Status allowed = CheckReference(*this, ReferenceOf(*slot));
    if (!allowed.ok()) return SlotDone(*slot, allowed);
    resolving_ = true;
    const auto resolved = [this, slot](absl::StatusOr<VersionHandle> version) {
      resolving_ = false;
      if (!version.ok()) return SlotDone(*slot, version.status());
      slot->version = *std::move(version);
      Plan(slot);
    };
    environment_.registry.Acquire(
        ReferenceOf(*slot), PartOf(*slot), LoadPriority::kLast,
        [this, self = this->shared_from_this(), resolved](absl::StatusOr<VersionHandle> version) {
          if (this->OnLoop()) return resolved(std::move(version));
          this->Post([resolved, version = std::move(version)] { resolved(version); });
        });
  }

  void Plan(const SlotPointer& slot) {
    if (absl::Status bad = Accept(*slot); !bad.ok()) return SlotDone(*slot, bad);
    const absl::Status spent = this->Spend(Rated::kRows, slot->rows.rows());
    if (!spent.ok()) return SlotDone(*slot, spent);
    const auto answer_bytes = static_cast<int64_t>(slot->answer.message().size());
    slot->window_bytes += answer_bytes;
    window_bytes_ += answer_bytes;
    waiting_ = slot;
    ServeWaiting();
    Advance();
  }

  // Serves waiting_ if there is memory for its answer. Otherwise waits for it.
  void ServeWaiting() {
    const bool charged = waiting_->answer.message().ChargeOrWait(
        this->environment().memory, this->caller(),
        [call = this->weak_from_this(), this](RequestMemory::Charge charge) {
          const std::shared_ptr<Call> self = call.lock();
          if (self != nullptr) this->OnGranted(std::move(charge));
        },
        waiting_for_memory_);
    if (charged) Serve(std::exchange(waiting_, nullptr));
  }

  void OnGranted(RequestMemory::Charge charge) {
    // A std::function must be copyable.
    const auto granted = std::make_shared<RequestMemory::Charge>(std::move(charge));
    this->Post([this, granted] {
      waiting_->answer.message().Accept(std::move(*granted));
      Serve(std::exchange(waiting_, nullptr));
      Advance();
    });
  }

  void Serve(const SlotPointer& slot) {
    RowRequest request;
    request.version = slot->version;
    request.rows = slot->rows;
    request.field = slot->field;
    request.deadline = slot->deadline;
    request.cancelled = this->cancelled();
    request.received = slot->received;
    request.span = this->span();
    request.others_under_way = slots_.size() > 1;
    request.allocate = [this, slot] { return slot->answer.Allocate(environment_.rows.metrics()); };
    request.done = [this, self = this->shared_from_this(), slot](const absl::Status& status,
                                                                 const ExamplesView& seen) {
      try {
        const absl::Status done =
            status.ok() ? WithFieldPrefix(slot->answer.Complete(seen), slot->field) : status;
        if (this->OnLoop()) return SlotDone(*slot, done);
        this->Post([this, slot, done] { SlotDone(*slot, done); });
      } catch (const std::bad_alloc&) {
        this->CancelWithoutMemory();
      }
    };
    environment_.rows.Serve(std::move(request));
  }

  void SlotDone(Slot& slot, const absl::Status& status) {
    if (this->over()) return;
    slot.done = true;
    if (!status.ok()) slot.status = Failed(slot, status);
    // The request is no longer needed; its answer has its own charge.
    if (this->IsLarge(slot.charge)) {
      this->DestroyElsewhere(std::move(slot.request), std::move(slot.charge));
    } else {
      Request().Swap(&slot.request);
      slot.charge.Release();
    }
    // Requests after one that ends the stream get no answer.
    if (!slot.status.ok()) reads_done_ = true;
    Advance();
  }

  bool WindowIsOpen() const {
    if (slots_.empty()) return true;
    return waiting_ == nullptr && slots_.size() < kStreamWindow &&
           window_bytes_ < kStreamWindowBytes;
  }

  // Does everything that is possible now: sends the answer at the front, ends the call, or reads
  // the next request.
  void Advance() {
    if (this->over() || this->finishing()) return;
    if (!this->writing() && !slots_.empty() && slots_.front()->done) {
      Slot& front = *slots_.front();
      if (!front.status.ok()) return this->Finish(front.status);
      this->Write(front.told != nullptr ? std::move(front.told) : front.answer.message().Release());
    }
    if (reads_done_ && slots_.empty()) return this->Finish(absl::OkStatus());
    if (!reads_done_ && !this->reading() && !resolving_ && WindowIsOpen()) this->ReadNext();
  }

  const RowCallEnvironment& environment_;
  const absl::Duration idle_limit_;
  std::deque<SlotPointer> slots_;
  // The newest slot, while it waits for memory.
  SlotPointer waiting_;
  RequestMemory::Waiting waiting_for_memory_;
  // Whether the newest slot waits for its version.
  bool resolving_ = false;
  int64_t next_number_ = 0;
  int64_t window_bytes_ = 0;
  // Set when no more requests are read: the client has sent all, or a request was faulty.
  bool reads_done_ = false;
};

}  // namespace phimap

#endif  // PHIMAP_SERVER_TRANSFORM_ROW_STREAM_CALL_H_
