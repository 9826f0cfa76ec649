#include "server/rpc/transform_stream_call.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/status/error.h"
#include "server/rpc/examples_from_proto.h"
#include "server/rpc/features_to_proto.h"
#include "server/rpc/request_message.h"
#include "server/rpc/version_ref_to_proto.h"

namespace phimap {
namespace {

using Code = absl::StatusCode;

// Requests that may wait for the scheduler before no more is read: the one that waits for room, and
// the one that was being read then.
constexpr size_t kLine = 2;

absl::Status GivenUp() { return absl::CancelledError("the client gave the stream up"); }

// The error of a stream says which request it is about.
absl::Status WithRequestNumber(const absl::Status& status, int64_t number) {
  const std::string message = absl::StrCat("request ", number, ": ", status.message());
  std::optional<ErrorDetail> detail = DetailOf(status);
  if (!detail.has_value()) return absl::Status(status.code(), message);
  detail->metadata["request"] = absl::StrCat(number);
  const size_t prefix = detail->field.empty() ? 0 : detail->field.size() + 2;
  return MakeError(status.code(), detail->reason, detail->field,
                   absl::StrCat("request ", number, ": ", status.message().substr(prefix)),
                   detail->metadata, detail->retry_delay_ms);
}

}  // namespace

TransformStreamCall::TransformStreamCall(const TransformEnvironment& environment,
                                         const RpcMethod& method,
                                         const grpc::CallbackServerContext& context)
    : environment_(environment), scope_(context, method, environment.logger) {}

void TransformStreamCall::Start() {
  self_ = shared_from_this();
  if (!scope_.admission().ok()) {
    MutexLock lock(&mutex_);
    broken_ = true;  // ends it before anything is read
  }
  Advance();
}

void TransformStreamCall::OnDone() { self_.reset(); }

void TransformStreamCall::OnCancel() { Break(); }

void TransformStreamCall::OnWriteDone(bool ok) {
  std::unique_ptr<Slot> sent;
  {
    MutexLock lock(&mutex_);
    writing_ = false;
    sent = std::move(slots_.front());
    slots_.pop_front();
    window_bytes_ -= sent->window_bytes;
  }
  // Without the lock: the room that it leaves may be for this very call.
  sent.reset();
  if (!ok) return Break();
  scope_.MessageSent();
  Advance();
}

TransformStreamCall::Slot* TransformStreamCall::Incoming() {
  MutexLock lock(&mutex_);
  return incoming_.get();
}

void TransformStreamCall::ReadsEnded() {
  {
    MutexLock lock(&mutex_);
    incoming_.reset();
    reads_done_ = true;
  }
  Advance();
}

void TransformStreamCall::OnReadDone(bool ok) {
  if (!ok) return ReadsEnded();
  Slot* const slot = Incoming();
  slot->received = absl::Now();
  const absl::Status parsed = ParseRequest(slot->bytes, slot->request);
  {
    MutexLock lock(&mutex_);
    ++outstanding_;
    resolving_ = parsed.ok() && slot->number == 0;
    if (parsed.ok() && !resolving_) Enqueue(slot);
    slots_.push_back(std::move(incoming_));
  }
  if (!parsed.ok()) return SlotDone(slot, parsed);
  scope_.MessageReceived();
  if (slot->number == 0) return Resolve(slot);
  Advance();  // reads on while this one is computed
  SubmitLine();
}

void TransformStreamCall::Resolve(Slot* slot) {
  environment_.registry.Acquire(
      slot->request.reference(),
      [self = shared_from_this(), slot](absl::StatusOr<VersionHandle> version) {
        if (!version.ok()) return self->SlotDone(slot, version.status());
        absl::Status same = CheckDigest(*version, slot->request.expected_digest());
        if (!same.ok()) return self->SlotDone(slot, same);
        self->version_ = *std::move(version);
        RefToProto(self->version_.record(), slot->response.mutable_version());
        {
          MutexLock lock(&self->mutex_);
          self->resolving_ = false;
          self->Enqueue(slot);
        }
        self->Advance();
        self->SubmitLine();
      });
}

absl::Status TransformStreamCall::CheckLater(const Slot& slot) const {
  if (slot.number == 0) return absl::OkStatus();
  if (!slot.request.reference().empty()) {
    return MakeError(Code::kInvalidArgument, "ONLY_FIRST", "reference",
                     "expected in the first request only");
  }
  if (!slot.request.expected_digest().empty()) {
    return MakeError(Code::kInvalidArgument, "ONLY_FIRST", "expected_digest",
                     "expected in the first request only");
  }
  return absl::OkStatus();
}

void TransformStreamCall::Enqueue(Slot* slot) {
  TakeWindow(*slot);
  line_.push_back(slot);
}

void TransformStreamCall::SubmitLine() {
  const auto self = shared_from_this();  // the end of a slot may be the end of the call
  bool read_on = false;
  while (Slot* slot = BeginSubmit()) read_on |= EndSubmit(Submit(slot));
  if (read_on) Advance();
}

TransformStreamCall::Slot* TransformStreamCall::BeginSubmit() {
  MutexLock lock(&mutex_);
  if (submitting_ || waits_for_room_ || line_.empty()) return nullptr;
  submitting_ = true;
  return line_.front();
}

TransformStreamCall::Submitted TransformStreamCall::Submit(Slot* slot) {
  const auto fail = [&](const absl::Status& status) {
    SlotDone(slot, status);
    return Submitted::kYes;
  };
  if (scope_.cancelled()->load()) return fail(GivenUp());
  if (absl::Status later = CheckLater(*slot); !later.ok()) return fail(later);
  absl::StatusOr<ExamplesView> rows = ExamplesFromProto(slot->request.examples());
  if (!rows.ok()) return fail(rows.status());
  if (absl::Status s = version_.CheckTakes(*rows); !s.ok()) return fail(s);
  const Residual* residual = nullptr;
  if (slot->request.residual()) {
    const absl::StatusOr<const Residual*> found = ResidualOf(version_, *rows, "residual");
    if (!found.ok()) return fail(found.status());
    residual = *found;
  }
  const int64_t extra = residual == nullptr ? 0 : kResidualBytes;
  Submitted submitted = Submitted::kYes;
  MapRows(
      environment_, version_,
      {*rows, RowsField(rows->kind()), scope_.deadline(), slot->received, extra}, scope_,
      slot->answer,
      [this, slot, count = rows->rows()] {
        return AllocateFeatures(version_.engine(), count, slot->response.mutable_features());
      },
      [self = shared_from_this(), slot, &submitted, residual](const absl::Status& status,
                                                              const ExamplesView& seen) {
        if (status.ok() && residual != nullptr) {
          AddResiduals(*residual, seen, slot->response.features(),
                       slot->response.mutable_residuals());
        }
        if (!IsLackOfRoom(status)) return self->SlotDone(slot, status);
        submitted = Submitted::kNoRoom;  // here, within MapRows
      });
  return submitted;
}

bool TransformStreamCall::EndSubmit(Submitted submitted) {
  {
    MutexLock lock(&mutex_);
    if (submitted == Submitted::kYes) {
      submitting_ = false;
      const bool line_was_full = line_.size() >= kLine;
      line_.pop_front();
      return line_was_full;
    }
    if (broken_ || listening_) {
      // Refused although it listened: it will hear of room.
      waits_for_room_ = !broken_;
      submitting_ = false;
      return false;
    }
    listening_ = true;
  }
  // Room that came free before it listened is found by trying once more.
  ListenForRoom();
  MutexLock lock(&mutex_);
  submitting_ = false;
  return false;
}

void TransformStreamCall::ListenForRoom() {
  environment_.scheduler.room().Wait([call = weak_from_this()] {
    const std::shared_ptr<TransformStreamCall> self = call.lock();
    if (self == nullptr) return;
    {
      MutexLock lock(&self->mutex_);
      self->listening_ = false;
      self->waits_for_room_ = false;
    }
    self->SubmitLine();
  });
}

void TransformStreamCall::Break() {
  scope_.Cancel();
  {
    MutexLock lock(&mutex_);
    broken_ = true;
    waits_for_room_ = false;
  }
  SubmitLine();
  Advance();
}

void TransformStreamCall::SlotDone(Slot* slot, const absl::Status& status) {
  {
    MutexLock lock(&mutex_);
    --outstanding_;
    slot->done = true;
    slot->status = status.ok() ? status : WithRequestNumber(status, slot->number);
    // Nothing after a request at fault will be answered.
    if (!status.ok()) reads_done_ = true;
  }
  Advance();
}

void TransformStreamCall::TakeWindow(Slot& slot) {
  // The rows are not checked yet: what they claim counts up to what a message may hold.
  const int64_t rows =
      std::clamp<int64_t>(ClaimedRows(slot.request.examples()), 0, kMaxRowsPerMessage);
  slot.window_bytes =
      static_cast<int64_t>(slot.request.ByteSizeLong()) +
      std::min(FeatureBytes(version_, rows) + (slot.request.residual() ? rows * kResidualBytes : 0),
               environment_.limits.max_message_bytes);
  window_bytes_ += slot.window_bytes;
}

bool TransformStreamCall::WindowHasRoom() const {
  if (slots_.empty()) return true;
  return slots_.size() < environment_.limits.stream_window &&
         window_bytes_ < environment_.limits.stream_window_bytes;
}

TransformStreamCall::Step TransformStreamCall::NextStep() {
  Step step;
  if (finished_) return step;
  const bool front_done = !slots_.empty() && slots_.front()->done;
  const bool front_failed = front_done && !slots_.front()->status.ok();
  const bool ended = broken_ || front_failed || (reads_done_ && slots_.empty());
  if (ended && !writing_ && starting_reads_ == 0 && outstanding_ == 0) {
    finished_ = true;
    step.finish = true;
    if (front_failed) step.status = slots_.front()->status;
    if (broken_) step.status = GivenUp();
    return step;
  }
  if (broken_) return step;
  if (!writing_ && front_done && !front_failed) {
    writing_ = true;
    step.write = &slots_.front()->response;
  }
  const bool reads_on = !reads_done_ && !resolving_ && line_.size() < kLine;
  if (reads_on && incoming_ == nullptr && WindowHasRoom()) {
    incoming_ = std::make_unique<Slot>();
    incoming_->number = next_number_++;
    ++starting_reads_;
    step.read = incoming_.get();
  }
  return step;
}

void TransformStreamCall::Advance() {
  // Another thread may end the call as soon as the lock is released.
  const auto self = shared_from_this();
  while (true) {
    Step step;
    {
      MutexLock lock(&mutex_);
      step = NextStep();
    }
    if (step.read != nullptr) StartRead(&step.read->bytes);
    if (step.write != nullptr) StartWrite(step.write);
    if (step.finish) Finish(scope_.Finish(step.status));
    if (step.read == nullptr) return;
    MutexLock lock(&mutex_);
    --starting_reads_;  // and look again: an end may have waited for this
  }
}

}  // namespace phimap
